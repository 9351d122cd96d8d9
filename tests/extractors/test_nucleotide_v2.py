"""Nucleotide Transformer v2: the contract, the reference's figures, tokens, published layouts."""

from __future__ import annotations

import hashlib
import json
from types import MappingProxyType

import pytest
import torch
from support.encoder_checkpoints import nucleotide_v2, nucleotide_vocabulary
from support.encoder_family import (
    EncoderFamily,
    assert_as_reference,
    assert_published_size,
    golden,
    seeded_folder,
)
from torch.nn import functional

from geneb.errors import InputError
from geneb.extractors.nucleotide_tokenizer import read_nucleotide_tokenizer
from geneb.extractors.nucleotide_v2 import NucleotideV2Extractor, own_name, read_design
from geneb.extractors.options import ModelOptions
from geneb.testing.extractors import bases

CONFIG = {
    "model_type": "esm",
    "vocab_size": 75,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 50,
    "layer_norm_eps": 1e-12,
    "position_embedding_type": "rotary",
    "emb_layer_norm_before": False,
    "token_dropout": False,
    "add_bias_fnn": False,
}
# Of the published files; their sizes at the registry's revisions are from tcztzy/evo.cpp,
# configs/evidence.
SMALL = {
    **CONFIG,
    "vocab_size": 4107,
    "hidden_size": 512,
    "num_hidden_layers": 12,
    "num_attention_heads": 16,
    "intermediate_size": 2048,
    "max_position_embeddings": 2050,
}
PUBLISHED = {
    "50m": (SMALL, 223_642_688),
    "100m": ({**SMALL, "num_hidden_layers": 22}, 391_597_600),
    "250m": (
        {**SMALL, "num_hidden_layers": 24, "hidden_size": 768, "intermediate_size": 3072},
        940_606_173,
    ),
    "50m-3mer": ({**SMALL, "vocab_size": 75, "layer_norm_eps": 1e-5}, 207_152_202),
}
LIMIT = 40


class TestNucleotideV2(EncoderFamily):
    family = NucleotideV2Extractor
    parameters = MappingProxyType({"limit": LIMIT})
    config = CONFIG
    published_shapes = staticmethod(nucleotide_v2)
    model_ids = (
        "nucleotide-transformer-v2-50m-multi-species",
        "nucleotide-transformer-v2-100m-multi-species",
        "nucleotide-transformer-v2-250m-multi-species",
        "nucleotide-transformer-v2-50m-3mer-multi-species",
    )

    @classmethod
    def write_tokenizer(cls, folder):
        (folder / "vocab.txt").write_text(nucleotide_vocabulary(3), encoding="utf-8")

    def variants(self):
        return [self.make(layer="1"), self.make(pooling="cls"), self.make(long_input="windows")]

    @pytest.mark.parametrize(
        ("letters", "tokens", "truncated"),
        [
            (3 * LIMIT - 6, LIMIT - 1, False),
            (3 * LIMIT - 3, LIMIT, False),
            (3 * LIMIT - 2, LIMIT, True),
        ],
    )
    def test_tokens_behind_the_limit_are_cut(self, letters, tokens, truncated):
        """The limit counts ``<cls>``; one letter too many is one token too many."""
        (item,) = self.make().prepare([bases(letters, seed=2)])

        assert (item.length, item.truncated) == (tokens, truncated)

    @pytest.mark.parametrize("field", ["token_dropout", "emb_layer_norm_before"])
    def test_what_the_encoder_does_not_do_is_refused(self, tmp_path, field):
        """Such a checkpoint would load, and be run wrongly."""
        seeded_folder(tmp_path, {"config": {**CONFIG, field: True}}, nucleotide_v2, 1)
        self.write_tokenizer(tmp_path)

        with pytest.raises(InputError, match=rf"{field}: this is the configuration of another"):
            NucleotideV2Extractor(tmp_path, ModelOptions(), limit=LIMIT)

    def test_a_configuration_may_say_the_same_twice(self, tmp_path):
        """That of the published 3-mer model does; two different values are refused."""
        seeded_folder(tmp_path, {"config": CONFIG}, nucleotide_v2, 1)
        self.write_tokenizer(tmp_path)
        text = json.dumps(CONFIG)
        dropout = '"attention_probs_dropout_prob": 0.0'
        config = tmp_path / "config.json"

        config.write_text(f"{text[:-1]}, {dropout}, {dropout}}}", encoding="utf-8")
        model = NucleotideV2Extractor(tmp_path, ModelOptions(), limit=LIMIT)

        assert model.layer_count == 4
        config.write_text(f"{text[:-1]}, {dropout}, {dropout[:-3]}0.1}}", encoding="utf-8")
        with pytest.raises(InputError, match="stands twice, with two values"):
            NucleotideV2Extractor(tmp_path, ModelOptions(), limit=LIMIT)


def test_epsilon_comes_from_the_configuration(tmp_path):
    """That of the 3-mer model is ten million times the others'."""
    config = PUBLISHED["50m-3mer"][0] | {"num_hidden_layers": 1, "hidden_size": 32}
    seeded_folder(tmp_path, {"config": config}, nucleotide_v2, 1)
    (tmp_path / "vocab.txt").write_text(nucleotide_vocabulary(3), encoding="utf-8")
    network = NucleotideV2Extractor(tmp_path, ModelOptions(), limit=LIMIT).network

    assert {part.eps for name, part in network.named_modules() if name.endswith("norm")} == {1e-5}


def test_hidden_states_are_the_references(root, tmp_path):
    """On a checkpoint of the published layout, drawn from the seed that is named there."""
    figures = golden(root, "nucleotide_v2")
    seeded_folder(tmp_path, figures, nucleotide_v2, figures["seed"])
    (tmp_path / "vocab.txt").write_text(nucleotide_vocabulary(3), encoding="utf-8")

    assert_as_reference(NucleotideV2Extractor(tmp_path, ModelOptions(), limit=40), figures)


def test_the_first_half_of_the_inner_matrix_is_the_gate(tmp_path):
    """The doubled matrix is silu(first) times second; the other way round is another model."""
    seeded_folder(tmp_path, {"config": CONFIG}, nucleotide_v2, 1)
    (tmp_path / "vocab.txt").write_text(nucleotide_vocabulary(3), encoding="utf-8")
    part = NucleotideV2Extractor(tmp_path, ModelOptions(), limit=40).network.blocks[0].feed_forward
    hidden = torch.linspace(-1, 1, 32)[None]
    first, second = (hidden @ part.inner.weight.T).split(48, dim=-1)

    found = part(hidden)

    expected = (functional.silu(first) * second) @ part.outer.weight.T
    other = (first * functional.silu(second)) @ part.outer.weight.T
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    assert (found - other).abs().max() > 0.1


@pytest.mark.parametrize(
    ("k", "sha256"),
    [
        (6, "c00e0ad166d6ab3f7540ebc92270392e581bb3106763412f29034b49323e1052"),
        (3, "0976e2b4722307d16c669e2daa57f5912fc7f62e08389540751b5474c93dcfd0"),
    ],
)
def test_the_vocabulary_is_the_published_one(tmp_path, k, sha256):
    """Its digest is that of the file beside the weights; k comes from the file."""
    text = nucleotide_vocabulary(k)
    path = tmp_path / "vocab.txt"
    path.write_text(text, encoding="utf-8")
    rows = text.count("\n") + 1

    tokenizer = read_nucleotide_tokenizer(path, rows)

    assert hashlib.sha256(text.encode()).hexdigest() == sha256
    assert rows == {6: 4107, 3: 75}[k]
    (ids,) = tokenizer.encode([bases(5 * k, 1)])
    assert len(ids) == 5
    assert (tokenizer.prefix, tokenizer.suffix, tokenizer.pad) == ((3,), (), 1)


def test_tokens_by_hand(tmp_path):
    """6-mers from the left, letters where none fits, one unknown for a run of strangers."""
    path = tmp_path / "vocab.txt"
    path.write_text(nucleotide_vocabulary(6), encoding="utf-8")
    tokenizer = read_nucleotide_tokenizer(path, 4107)

    found = tokenizer.encode(["AAAAAATTTTTT", "AAAAAAC", "ANAAAAAA", "acgt", "AUUA", ""])

    a, t, c, n = 4102, 4103, 4104, 4106
    assert [ids.tolist() for ids in found] == [
        [6, 6 + 4095 // 3],
        [6, c],
        [a, n, 6],
        [0],
        [a, 0, a],
        [],
    ]
    assert t == a + 1


@pytest.mark.parametrize("size", PUBLISHED)
def test_full_size(tmp_path, size):
    """The published names and shapes, counted against the size of the published file."""
    config, file_bytes = PUBLISHED[size]

    found = assert_published_size(
        tmp_path,
        config,
        nucleotide_v2(config),
        file_bytes,
        read_design=read_design,
        own_name=own_name,
    )

    expected = {"50m": 52e6, "100m": 94e6, "250m": 230e6, "50m-3mer": 50e6}[size]
    assert found == pytest.approx(expected, rel=0.02)

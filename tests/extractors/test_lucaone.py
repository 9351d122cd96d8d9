"""LucaOne: the reference's figures and token ids, its epsilon, limits, the published layout."""

from __future__ import annotations

from types import MappingProxyType

import pytest
from support.encoder_checkpoints import lucaone
from support.encoder_family import (
    EncoderFamily,
    assert_as_reference,
    assert_published_size,
    golden,
    seeded_folder,
)

from geneb.errors import InputError
from geneb.extractors.lucaone import LucaOneExtractor, gene_tokenizer, own_name, read_design
from geneb.extractors.options import ModelOptions
from geneb.testing.extractors import bases

LIMIT = 80
CONFIG = {
    "vocab_size": 39,
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "ffn_dim": 96,
    "max_position_embeddings": 4096,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
    "hidden_act": "gelu",
    "no_position_embeddings": True,
    "no_token_type_embeddings": False,
    "use_embed_layer_norm": False,
    "use_last_layer_norm": True,
    "embed_scale": 1.0,
    "token_dropout": False,
}


class TestLucaOne(EncoderFamily):
    family = LucaOneExtractor
    parameters = MappingProxyType({"limit": LIMIT})
    config = CONFIG
    published_shapes = staticmethod(lucaone)
    model_ids = ("LucaOne-default-step36M",)
    another = MappingProxyType({"use_last_layer_norm": False})

    def limit(self, extractor):
        return LIMIT - 2

    def variants(self):
        return [self.make(layer="2"), self.make(pooling="max"), self.make(long_input="windows")]

    def test_epsilon_is_not_the_configurations(self):
        """The published code does not hand it on; its norms have torch's own."""
        modules = self.make().network.named_modules()
        found = {part.eps for name, part in modules if name.endswith("norm")}

        assert found == {1e-5}
        assert self.config["layer_norm_eps"] == 1e-12

    @pytest.mark.parametrize(
        "fault",
        [
            {"no_position_embeddings": False},
            {"no_token_type_embeddings": True},
            {"use_embed_layer_norm": True},
            {"embed_scale": 2.0},
            {"token_dropout": True},
        ],
    )
    def test_what_the_encoder_does_not_do_is_refused(self, tmp_path, fault):
        """Such a checkpoint would load, and be run wrongly."""
        seeded_folder(tmp_path, {"config": {**CONFIG, **fault}}, lucaone, 1)

        with pytest.raises(InputError, match=f"{next(iter(fault))}: this is the configuration"):
            LucaOneExtractor(tmp_path, ModelOptions(), limit=LIMIT)


def test_hidden_states_are_the_references(root, tmp_path):
    """On a checkpoint of the published layout, drawn from the seed that is named there."""
    figures = golden(root, "lucaone")
    seeded_folder(tmp_path, figures, lucaone, figures["seed"])

    assert_as_reference(LucaOneExtractor(tmp_path, ModelOptions(), limit=64), figures)


def test_tokens_are_the_references(root):
    """Of either case, U as T, and one token for whatever else there is, white space included."""
    tokens = golden(root, "lucaone")["tokens"]
    tokenizer = gene_tokenizer()

    for sequence, expected in tokens.items():
        (ids,) = tokenizer.encode([sequence])
        assert expected == [*tokenizer.prefix, *ids.tolist(), *tokenizer.suffix]
    assert len(tokens) > 3


def test_what_is_cut_still_ends_as_the_references(root, tmp_path):
    """It overwrites the last token that is left with [SEP]; here there is room left for it."""
    cut = golden(root, "lucaone")["cut"]
    seeded_folder(tmp_path, {"config": CONFIG}, lucaone, 1)

    (item,) = LucaOneExtractor(tmp_path, ModelOptions(), limit=cut["limit"]).prepare([cut["text"]])

    assert item.truncated
    assert cut["ids"] == item.payload.tolist()


def test_official_ids():
    """As recorded by tcztzy/evo.cpp from the tokenizer beside the weights."""
    (ids,) = gene_tokenizer().encode(["ttgcau?NXacgt"])

    assert ids.tolist() == [6, 6, 8, 7, 5, 6, 9, 9, 9, 5, 7, 8, 6]


def test_case_makes_no_difference(tmp_path):
    """Nor does U in the place of T."""
    seeded_folder(tmp_path, {"config": CONFIG}, lucaone, 1)
    model = LucaOneExtractor(tmp_path, ModelOptions(), limit=LIMIT)
    sequence = bases(30, seed=3)

    vectors = model.embed([sequence, sequence.lower(), sequence.replace("T", "U")])

    assert (vectors == vectors[0]).all()


def test_full_size(tmp_path):
    """The published names and shapes; 1,573,639,680 parameters, as tcztzy/evo.cpp counted them."""
    config = {
        **CONFIG,
        "hidden_size": 2560,
        "num_hidden_layers": 20,
        "num_attention_heads": 40,
        "ffn_dim": 10_240,
    }

    found = assert_published_size(
        tmp_path,
        config,
        lucaone(config),
        4_930_881_120 + 1_390_366_196,
        read_design=read_design,
        own_name=own_name,
    )

    assert found == 1_573_639_680

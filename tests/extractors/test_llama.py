"""METAGENE-1, OmniNA and GENERator: published layout, tokens, presets and limits."""

from __future__ import annotations

import hashlib
import json
from typing import ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.family import RotaryFamily, assert_full_size, decoder_shapes
from support.native_checkpoint import bpe_tokenizer, seeded, write_checkpoint
from tokenizers import normalizers, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM

from geneb.embedding.engine import Engine
from geneb.errors import InputError
from geneb.extractors.base import LAST, Batch
from geneb.extractors.kmer_tokenizers import GeneratorTokenizer, generator_vocabulary
from geneb.extractors.llama import (
    GeneratorExtractor,
    MetageneExtractor,
    OmninaExtractor,
    llama_network,
)
from geneb.extractors.native import causal_name
from geneb.extractors.options import ModelOptions
from geneb.extractors.registry import models
from geneb.testing import ExtractorContract
from geneb.testing.extractors import bases

LIMIT = 48

TINY = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "max_position_embeddings": LIMIT,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "rope_scaling": None,
    "hidden_act": "silu",
    "attention_bias": False,
    "mlp_bias": False,
    "tie_word_embeddings": False,
    "pad_token_id": -1,
    "torch_dtype": "float32",
}


class Llama(RotaryFamily):
    @classmethod
    def reference(cls):
        config = LlamaConfig(**(dict(cls.config) | {"pad_token_id": None}))
        return seeded(LlamaForCausalLM, config)


class TestMetagene(Llama):
    family = MetageneExtractor
    parameters: ClassVar = {"limit": LIMIT}
    config = TINY | {"vocab_size": 17}

    @classmethod
    def write_tokenizer(cls, folder):
        specials = ("[UNK]", "[CLS]", "[SEP]", "[PAD]", "[EOS]", "[BOS]", "_")
        tokenizer = bpe_tokenizer(specials[:6], unknown="[UNK]", letters="_ACGTN")
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="_", prepend_scheme="always")
        tokenizer.save(str(folder / "tokenizer.json"))

    def variants(self):
        return (self.make(preset="reference"), self.make(pooling="last"), self.make(layer="1"))

    @pytest.mark.parametrize("pieces", [LIMIT - 3, LIMIT - 2, LIMIT - 1])
    def test_the_limit_keeps_the_end_token(self, pieces):
        """``_`` in front, pieces, and [EOS]; what is over is cut at the right before [EOS]."""
        (item,) = self.make().prepare(["ACGT" * pieces])

        assert item.length == min(pieces + 2, LIMIT)
        assert item.truncated == (pieces > LIMIT - 2)
        assert [*item.payload[:2], *item.payload[-2:]] == [6, 14, 14, 4]

    def test_an_end_token_alone_stands_behind(self):
        """No token stands in front at the published revision, so there is none to pool by."""
        (item,) = self.make().prepare([""])

        assert item.payload.tolist() == [4]
        with pytest.raises(InputError, match="puts no token in front"):
            self.make(pooling="cls")


class TestMetageneAsPublished(ExtractorContract):
    """The preset ``reference``: the mean over all places of a padded batch."""

    folder = None

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def checkpoint(cls, tmp_path_factory):
        cls.folder = tmp_path_factory.mktemp("reference")
        write_checkpoint(cls.folder, TestMetagene.config, TestMetagene.reference().state_dict())
        TestMetagene.write_tokenizer(cls.folder)

    def make(self):
        options = ModelOptions(preset="reference")
        return MetageneExtractor(self.folder, options, limit=LIMIT)

    def published(self, sequences, batch_size=8):
        """Return what the published extractor does, with Transformers' model and mask."""
        model = TestMetagene.reference()
        items = self.make().prepare(sequences)
        rows = []
        for first in range(0, len(items), batch_size):
            batch = items[first : first + batch_size]
            width = max(item.length for item in batch)
            ids = torch.full((len(batch), width), 3)
            mask = torch.zeros(len(batch), width, dtype=torch.long)
            for row, item in enumerate(batch):
                ids[row, : item.length] = torch.from_numpy(item.payload)
                mask[row, : item.length] = 1
            with torch.inference_mode():
                output = model(input_ids=ids, attention_mask=mask, output_hidden_states=True)
            rows += list(output.hidden_states[-1].mean(dim=1).numpy())
        return np.stack(rows)

    def test_padding_enters_as_it_did(self):
        """In file order, eight at a time, padded to the longest of each batch."""
        sequences = [bases(length, seed=length) for length in (9, 80, 33, 50, 4, 7, 61, 40, 30, 12)]
        engine = Engine(self.make(), 4096)

        found = engine.embed(engine.prepare(sequences))

        # The same class on the same padded batches.
        np.testing.assert_allclose(found, self.published(sequences), rtol=1e-5, atol=1e-5)

    def test_it_is_another_thing_than_masked(self):
        """A short row beside a long one: its vector is mostly that of padding."""
        sequences = ["ACGTAC", bases(90, seed=1)]
        masked = MetageneExtractor(self.folder, ModelOptions(), limit=LIMIT)
        reference = self.make()
        items = masked.prepare(sequences)
        batch = Batch(items, max(item.length for item in items))

        clean, leaking = (model.forward(batch, (LAST,))[LAST] for model in (masked, reference))

        assert np.abs(clean[0] - leaking[0]).max() > 0.1
        np.testing.assert_allclose(clean[1], leaking[1], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(clean[0], masked.embed(["ACGTAC"])[0], rtol=1e-5, atol=1e-5)

    def test_it_is_run_as_it_was(self):
        model = self.make()

        assert (model.batching, model.batch_size) == ("file-order", 8)
        assert model.describe().parameters["preset"] == "reference"

    def test_another_pooling_is_refused(self):
        """There is nothing published that it would repeat."""
        with pytest.raises(InputError, match="are means"):
            MetageneExtractor(
                self.folder, ModelOptions(preset="reference", pooling="last"), limit=LIMIT
            )


class TestOmnina(Llama):
    family = OmninaExtractor
    # Of the time before these had names: the class's defaults are meant.
    config: ClassVar = {
        name: value
        for name, value in (TINY | {"vocab_size": 14, "rms_norm_eps": 1e-6}).items()
        if name not in ("num_key_value_heads", "rope_theta", "attention_bias", "mlp_bias")
    }
    torch_file = True

    @classmethod
    def published(cls, tensors):
        frequencies = torch.ones(4, dtype=torch.bfloat16)
        return tensors | {
            f"model.layers.{layer}.self_attn.rotary_emb.inv_freq": frequencies for layer in range(2)
        }

    @classmethod
    def write_tokenizer(cls, folder):
        tokenizer = bpe_tokenizer(
            ("<unk>", "<s>", "</s>"), unknown="<unk>", letters="\u2581ACGTN", fuse_unk=True
        )
        tokenizer.normalizer = normalizers.Sequence(
            [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]
        )
        tokenizer.add_special_tokens(["[PAD]"])
        tokenizer.save(str(folder / "tokenizer.json"))

    def test_nothing_is_cut(self):
        """The published extractor's limit is unbounded, the configuration's is not heeded."""
        model = self.make()
        sequence = "ACGT" * (3 * LIMIT)

        (item,) = model.prepare([sequence])

        assert model.max_length is None
        assert item.length == 3 * LIMIT + 2
        assert not item.truncated
        assert np.isfinite(model.embed([sequence])).all()

    def test_the_first_token_is_pooled(self):
        (item,) = self.make().prepare(["ACGT"])

        assert item.payload.tolist() == [1, 3, 11]


class TestGenerator(Llama):
    family = GeneratorExtractor
    parameters: ClassVar = {"limit": LIMIT}
    config = TINY | {
        "architectures": ["GENERatorForCausalLM"],
        "vocab_size": 4128,
        "num_key_value_heads": 2,
        "rope_theta": 500000.0,
    }

    @pytest.mark.parametrize("kmers", [LIMIT - 3, LIMIT - 2, LIMIT - 1])
    def test_the_limit_counts_both_first_tokens(self, kmers):
        (item,) = self.make().prepare([bases(6 * kmers, seed=1)])

        assert item.length == min(kmers + 2, LIMIT)
        assert item.truncated == (kmers > LIMIT - 2)
        assert item.payload[:2].tolist() == [1, 1]

    def test_the_model_must_have_the_vocabulary(self, tmp_path):
        write_checkpoint(tmp_path, self.config | {"vocab_size": 4129}, self.tensors())

        with pytest.raises(InputError, match="another vocabulary"):
            GeneratorExtractor(tmp_path, ModelOptions(), limit=LIMIT)


def test_generator_vocabulary_is_the_published_one():
    """By the digest of ``vocab.txt``: a token, a space and its id a line."""
    lines = [f"{token} {number}\n" for token, number in generator_vocabulary().items()]

    assert hashlib.sha256("".join(lines).encode()).hexdigest() == (
        "068e0d76ca42ac672ade448afb2462ce4bd800a1fc1ad863d0b65992d90cf881"
    )


@pytest.mark.parametrize(
    ("sequence", "ids"),
    [
        # Recorded by a third party from the published tokenizer.
        ("ACGTNACGTNAC", [0, 0]),
        ("AAAAAATTTTTT", [32, 1397]),
        # Worked out by hand.
        ("", []),
        ("ACGTA", []),
        ("AAAAAA" + "ACGTA", [32]),
        ("GGGGGGU", [4127]),
        ("aaaaaa", [0] * 6),
        ("ACGTac", [0, 0, 0]),
        ("ACGTACac", [32 + 0 * 1024 + 2 * 256 + 3 * 64 + 1 * 16 + 0 * 4 + 2]),
        ("é-\n \U0001f9ecA", [0] * 6),
        ("<s>AAA", [0] * 4),
    ],
)
def test_generator_tokens(sequence, ids):
    """Sixes of capitals from the left; the rest behind the last multiple of six is left out."""
    (found,) = GeneratorTokenizer().encode([sequence])

    assert ids == found.tolist()


@given(st.text(alphabet="ACGT", max_size=60))
def test_generator_tokens_spell_the_sequence(sequence):
    """A sequence of known letters comes back from its tokens, but for the rest."""
    spelled = list(generator_vocabulary())

    (found,) = GeneratorTokenizer().encode([sequence])

    assert "".join(spelled[token] for token in found) == sequence[: len(sequence) // 6 * 6]


@given(st.text(max_size=40))
def test_generator_takes_any_text(sequence):
    """No text is refused, and no token has no row."""
    (found,) = GeneratorTokenizer().encode([sequence])

    assert len(found) <= len(sequence)
    assert set(found.tolist()) <= {0, *range(32, 4128)}


@pytest.mark.parametrize(
    ("sizes", "count"),
    [
        # METAGENE-1: parameters counted by tcztzy/evo.cpp.
        ((1024, 4096, 11008, 32, 32, 32), 6_484_660_224),
        # OmniNA-220m: the published file holds 1,336,083,259 bytes, names and pickle included.
        ((32001, 1024, 4096, 16, 16, 16), 334_007_296),
        # GENERator 1.2B: of the published file's 4,648,274,384 bytes, 27,088 are its header.
        ((4128, 2048, 5632, 26, 32, 4), (4_648_274_384 - 27_088) // 4),
        # GENERator 3B: 11,993,051,136 bytes of float32 in three files, by tcztzy/evo.cpp.
        ((4128, 3072, 8448, 30, 32, 4), 11_993_051_136 // 4),
    ],
    ids=["METAGENE-1", "OmniNA-220m", "GENERator-1.2B", "GENERator-3B"],
)
def test_the_full_size_fits_the_published_names(sizes, count):
    names = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers")
    names += ("num_attention_heads", "num_key_value_heads")
    sized = TINY | dict(zip(names, sizes, strict=True)) | {"pad_token_id": None}
    config = LlamaConfig(**sized)

    assert_full_size(lambda: llama_network(config), decoder_shapes(sized), causal_name, count)


def test_a_token_without_a_row_is_refused(tmp_path):
    """A tokenizer of another model must not index beyond the embeddings."""
    TestMetagene.write_tokenizer(tmp_path)
    config = TestMetagene.config | {"vocab_size": 12}
    write_checkpoint(tmp_path, config, seeded(LlamaForCausalLM, LlamaConfig(**config)).state_dict())
    model = MetageneExtractor(tmp_path, ModelOptions(), limit=LIMIT)

    with pytest.raises(InputError, match="no vector for"):
        model.prepare(["ACGT"])


def test_a_tokenizer_without_the_end_token_is_refused(tmp_path):
    TestMetagene.write_tokenizer(tmp_path)
    text = (tmp_path / "tokenizer.json").read_text(encoding="utf-8")
    content = json.loads(text.replace("[EOS]", "[END]"))
    (tmp_path / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    write_checkpoint(tmp_path, TestMetagene.config, TestMetagene.reference().state_dict())

    with pytest.raises(InputError, match="lacks a token"):
        MetageneExtractor(tmp_path, ModelOptions(), limit=LIMIT)


def test_the_registry_names_all():
    entries = models()

    assert entries["METAGENE-1"].parameters == {"limit": 512}
    assert entries["OmniNA-220m"].parameters == {}
    for size in ("1.2b", "3b"):
        assert entries[f"GENERator-eukaryote-{size}-base"].parameters == {"limit": 16384}

"""GPT2-gene: published layout, no special tokens, limits."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
import torch
from support.family import NativeFamily, assert_full_size
from support.native_checkpoint import bpe_tokenizer, seeded
from transformers import GPT2Config, GPT2LMHeadModel

from geneb.errors import InputError
from geneb.extractors.gpt2 import Gpt2Extractor, gpt2_network, own_name
from geneb.extractors.options import ModelOptions
from geneb.extractors.registry import models

LIMIT = 48

TINY = {
    "architectures": ["GPT2LMHeadModel"],
    "model_type": "gpt2",
    "vocab_size": 11,
    "n_embd": 32,
    "n_layer": 2,
    "n_head": 4,
    "n_inner": None,
    "n_positions": LIMIT,
    "n_ctx": LIMIT,
    "layer_norm_epsilon": 1e-5,
    "activation_function": "gelu_new",
    "resid_pdrop": 0.1,
    "embd_pdrop": 0.1,
    "attn_pdrop": 0.1,
    "torch_dtype": "float32",
}


class TestGpt2(NativeFamily):
    family = Gpt2Extractor
    parameters: ClassVar = {"limit": LIMIT}
    config = TINY

    @classmethod
    def reference(cls):
        return seeded(GPT2LMHeadModel, GPT2Config(**cls.config))

    @classmethod
    def published(cls, tensors):
        """The head is the embeddings, and not stored twice."""
        del tensors["lm_head.weight"]
        return tensors

    @classmethod
    def write_tokenizer(cls, folder):
        tokenizer = bpe_tokenizer(("<|endoftext|>", "<pad>"), unknown=None)
        tokenizer.save(str(folder / "tokenizer.json"))

    @pytest.mark.parametrize("pieces", [LIMIT - 1, LIMIT, LIMIT + 1])
    def test_the_limit_is_the_number_of_positions(self, pieces):
        (item,) = self.make().prepare(["ACGT" * pieces])

        assert item.length == min(pieces, LIMIT)
        assert item.truncated == (pieces > LIMIT)
        assert {9} == set(item.payload.tolist())

    def test_a_sequence_without_a_known_letter_is_zeros(self):
        """There are no special tokens, and none for what is unknown."""
        model = self.make()

        vectors = model.embed(["", "zzz", "A"])

        assert [item.length for item in model.prepare(["", "zzz", "A"])] == [0, 0, 1]
        np.testing.assert_array_equal(vectors[:2], np.zeros((2, 32), np.float32))
        assert vectors[2].any()

    def test_there_is_no_first_token_to_pool_by(self):
        with pytest.raises(InputError, match="puts no token in front"):
            self.make(pooling="cls")

    def test_positions_that_end_before_the_limit_are_refused(self):
        with pytest.raises(InputError, match="too few positions"):
            Gpt2Extractor(self.folder, ModelOptions(), limit=LIMIT + 1)

    def test_stored_causal_masks_are_left_out(self, tmp_path):
        """Old versions wrote them into the weights, under names like those of a bias."""
        masks = {
            f"transformer.h.{layer}.attn.bias": torch.ones(1, 1, LIMIT, LIMIT) for layer in (0, 1)
        }

        model = self.altered(tmp_path, self.tensors() | masks)

        np.testing.assert_array_equal(model.embed(["ACGT"]), self.make().embed(["ACGT"]))


def test_the_full_size_fits_the_published_names():
    """148 tensors of 694,290,432 bytes in float32, counted by tcztzy/evo.cpp."""
    wide = (768,)
    published = {
        "transformer.wte.weight": (115_000, 768),
        "transformer.wpe.weight": (256, 768),
        "transformer.ln_f.weight": wide,
        "transformer.ln_f.bias": wide,
    }
    for layer in range(12):
        block = f"transformer.h.{layer}"
        published |= {
            f"{block}.attn.c_attn.weight": (768, 2304),
            f"{block}.attn.c_attn.bias": (2304,),
            f"{block}.attn.c_proj.weight": (768, 768),
            f"{block}.attn.c_proj.bias": wide,
            f"{block}.mlp.c_fc.weight": (768, 3072),
            f"{block}.mlp.c_fc.bias": (3072,),
            f"{block}.mlp.c_proj.weight": (3072, 768),
            f"{block}.mlp.c_proj.bias": wide,
        }
        published |= {
            f"{block}.{norm}.{part}": wide
            for norm in ("ln_1", "ln_2")
            for part in ("weight", "bias")
        }
    config = GPT2Config(
        **TINY
        | {"vocab_size": 115_000, "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 256}
    )

    assert len(published) == 148
    assert_full_size(lambda: gpt2_network(config), published, own_name, 694_290_432 // 4)


def test_the_registry_names_both():
    for name in ("gpt2_gene_multi_v2_ft", "gpt2_gene_v1"):
        assert models()[name].parameters == {"limit": 256}

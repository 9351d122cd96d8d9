"""GenomeOcean: published layout, tokens, limits, and padding on either side."""

from __future__ import annotations

from typing import ClassVar

import pytest
from support.family import RotaryFamily, assert_full_size, decoder_shapes
from support.native_checkpoint import seeded, whitespace_bpe
from transformers import MistralConfig, MistralForCausalLM

from geneb.extractors.mistral import GenomeOceanExtractor, mistral_network
from geneb.extractors.native import causal_name
from geneb.extractors.registry import models

LIMIT = 48

TINY = {
    "architectures": ["MistralForCausalLM"],
    "model_type": "mistral",
    "vocab_size": 14,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 32768,
    "sliding_window": None,
    "rms_norm_eps": 1e-5,
    "rope_theta": 1000000.0,
    "hidden_act": "silu",
    "attention_dropout": 0.0,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}


class TestGenomeOcean(RotaryFamily):
    family = GenomeOceanExtractor
    parameters: ClassVar = {"limit": LIMIT}
    config = TINY

    @classmethod
    def reference(cls):
        return seeded(MistralForCausalLM, MistralConfig(**cls.config))

    @classmethod
    def write_tokenizer(cls, folder):
        whitespace_bpe().save(str(folder / "tokenizer.json"))

    @pytest.mark.parametrize("pieces", [LIMIT - 3, LIMIT - 2, LIMIT - 1])
    def test_the_limit_counts_special_tokens(self, pieces):
        """[CLS] and [SEP] stay, what is over is cut at the right."""
        (item,) = self.make().prepare(["ACGT" * pieces])

        assert item.length == min(pieces + 2, LIMIT)
        assert item.truncated == (pieces > LIMIT - 2)
        assert [*item.payload[:2], *item.payload[-2:]] == [1, 12, 12, 2]


@pytest.mark.parametrize(
    ("sizes", "count"),
    [
        # GenomeOcean-4B: parameters counted by tcztzy/evo.cpp.
        ((3072, 16384, 24, 12, 4), 4_253_174_784),
        # GenomeOcean-500M: of the published file's 1,082,234,168 bytes, 14,648 are its header.
        ((1536, 6144, 14, 8, 8), (1_082_234_168 - 14_648) // 2),
    ],
    ids=["4B", "500M"],
)
def test_the_full_size_fits_the_published_names(sizes, count):
    names = ("hidden_size", "intermediate_size", "num_hidden_layers")
    names += ("num_attention_heads", "num_key_value_heads")
    sized = TINY | {"vocab_size": 4096} | dict(zip(names, sizes, strict=True))
    config = MistralConfig(**sized)

    assert_full_size(lambda: mistral_network(config), decoder_shapes(sized), causal_name, count)


def test_the_registry_names_both():
    """With the limits of the current extractor."""
    assert models()["GenomeOcean-4B"].parameters == {"limit": 10240}
    assert models()["GenomeOcean-500M"].parameters == {"limit": 1024}

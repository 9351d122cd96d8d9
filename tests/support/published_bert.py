"""Fields that the published configurations of BERT's descendants share, and their tokenizers."""

from __future__ import annotations

from pathlib import Path

from tokenizers import pre_tokenizers

from support.native_checkpoint import bpe_tokenizer

BASE = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "vocab_size": 4096,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
    "position_embedding_type": "absolute",
}
"""Of the size that most were published in."""

TINY = {
    **BASE,
    "vocab_size": 16,
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "intermediate_size": 40,
}

SPECIALS = ("[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]")


def write_base_tokenizer(folder: Path, *, at_white_space: bool) -> None:
    """Write a ``tokenizer.json`` of the five special tokens, the four bases and a few pairs."""
    tokenizer = bpe_tokenizer(SPECIALS, unknown="[UNK]", letters="ACGT")
    if at_white_space:
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))

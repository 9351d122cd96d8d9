"""A tiny ESM checkpoint in the published layout: 6-mers by the rule, configuration, safetensors."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import EsmConfig, EsmForMaskedLM

DIM = 32
POSITIONS = 1026
CONFIG = {
    "architectures": ["EsmForMaskedLM"],
    "model_type": "esm",
    "vocab_size": 4105,
    "hidden_size": DIM,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": POSITIONS,
    "position_embedding_type": "absolute",
    "emb_layer_norm_before": False,
    "layer_norm_eps": 1e-12,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "token_dropout": False,
    "mask_token_id": 2,
    "pad_token_id": 1,
    "tie_word_embeddings": False,
}


def vocabulary(k: int = 6) -> Sequence[str]:
    """The tokens of Nucleotide Transformer v1 in their order."""
    words = ("".join(letters) for letters in itertools.product("ATCG", repeat=k))
    return ["<unk>", "<pad>", "<mask>", "<cls>", *words, *"ATCGN", "<eos>", "<bos>"]


def write_tiny_esm(folder: Path, seed: int = 0) -> Path:
    """Write the three files; another seed makes other weights."""
    folder.mkdir(parents=True, exist_ok=True)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = EsmForMaskedLM(EsmConfig(**CONFIG))
    tensors = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    (folder / "vocab.txt").write_text("\n".join(vocabulary()), encoding="utf-8")
    return folder

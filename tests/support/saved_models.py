"""Small models of Transformers with random numbers, saved as their authors do."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import nn

SPECIALS = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "[PAD]": 3, "[MASK]": 4}
LETTERS = {letter: 5 + place for place, letter in enumerate("ACGT")}
PAIRS = {"AC": 9, "GT": 10, "ACGT": 11}
VOCABULARY = {**SPECIALS, **LETTERS, **PAIRS}


def shaken(model: nn.Module) -> nn.Module:
    """The model with the same numbers each time: noise, about one where norms have ones."""
    generator = torch.Generator().manual_seed(20250520)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "embed_positions" not in name:  # sines and cosines, never trained
                noise = 0.2 * torch.randn(weight.shape, generator=generator)
                weight.copy_(weight.mean().round() + noise)
    return model.eval()


def write_byte_pairs(path: Path) -> None:
    """A ``tokenizer.json`` of DNABERT-2's kind: byte pairs over upper case, no N."""
    tokenizer = Tokenizer(
        models.BPE(VOCABULARY, [("A", "C"), ("G", "T"), ("AC", "GT")], unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(list(SPECIALS))
    tokenizer.save(str(path))


def write_safetensors(folder: Path, tensors: dict[str, torch.Tensor], config: dict) -> Path:
    """A folder with ``model.safetensors`` and ``config.json``."""
    folder.mkdir(exist_ok=True, parents=True)
    save_file(
        {name: one.contiguous() for name, one in tensors.items()}, folder / "model.safetensors"
    )
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    return folder

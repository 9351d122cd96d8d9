"""Tiny checkpoints in published layouts: configurations, weights and tokenizers, for tests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers

SEED = 11
LETTERS = "ACGTN"
MERGES = (("A", "C"), ("G", "T"), ("AC", "GT"), ("C", "G"))


def seeded(model_class: type, config: Any) -> torch.nn.Module:
    """Return a model with random weights, always the same, large enough to tell letters apart."""
    torch.manual_seed(SEED)
    model = model_class(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" not in name.lower() and "ln_" not in name:
                parameter.copy_(torch.randn(parameter.shape) * parameter.shape[-1] ** -0.5)
    return model


def shaken(model: torch.nn.Module) -> torch.nn.Module:
    """Return a model whose norms are random too: noise about one where they have ones."""
    generator = torch.Generator().manual_seed(SEED)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "embed_positions" not in name:  # sines and cosines, never trained
                noise = 0.2 * torch.randn(weight.shape, generator=generator)
                weight.copy_(weight.mean().round() + noise)
    return model.eval()


def write_checkpoint(
    folder: Path,
    config: Mapping[str, Any],
    tensors: Mapping[str, torch.Tensor],
    *,
    torch_file: bool = False,
) -> None:
    """Write ``config.json`` and the weights, as safetensors or as a torch file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    own = {name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}
    if torch_file:
        torch.save(own, folder / "pytorch_model.bin")
    else:
        save_file(own, folder / "model.safetensors")


def bpe_tokenizer(
    specials: Sequence[str],
    *,
    unknown: str | None,
    letters: str = LETTERS,
    **options: Any,
) -> Tokenizer:
    """Return a byte-pair tokenizer of a few letters and merges, special tokens first."""
    pieces = [*specials, *letters, *("".join(pair) for pair in MERGES)]
    tokenizer = Tokenizer(
        models.BPE(
            vocab={piece: number for number, piece in enumerate(pieces)},
            merges=list(MERGES),
            unk_token=unknown,
            **options,
        )
    )
    tokenizer.add_special_tokens(list(specials))
    return tokenizer


def whitespace_bpe() -> Tokenizer:
    """Return one as DNABERT-2's and its followers': five special tokens, split at white space."""
    specials = ("[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]")
    tokenizer = bpe_tokenizer(specials, unknown="[UNK]")
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return tokenizer

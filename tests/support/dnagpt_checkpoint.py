"""A small DNA-GPT checkpoint with the published names."""

from __future__ import annotations

from pathlib import Path

import torch

WIDTH = 32


def tensors(vocabulary: int, *, context: int, layers: int, width: int = WIDTH):
    """Random numbers by the published names, heads included."""
    generator = torch.Generator().manual_seed(20230711)

    def normal(*shape: int, spread: float = 0.1) -> torch.Tensor:
        return spread * torch.randn(shape, generator=generator)

    found = {
        "transformer.wte.weight": normal(vocabulary, width, spread=1.0),
        "transformer.wpe.weight": normal(context, width, spread=1.0),
        "transformer.ln_f.weight": 1 + normal(width),
        "number_embedding.0.weight": normal(width, 1),
        "num_regression.3.weight": normal(1, width),
        "mlm_head.2.weight": normal(width),
    }
    for layer in range(layers):
        prefix = f"transformer.h.{layer}."
        found |= {
            f"{prefix}ln_1.weight": 1 + normal(width),
            f"{prefix}attn.c_attn.weight": normal(3 * width, width),
            f"{prefix}attn.c_proj.weight": normal(width, width),
            f"{prefix}ln_2.weight": 1 + normal(width),
            f"{prefix}mlp.c_fc.weight": normal(4 * width, width),
            f"{prefix}mlp.c_proj.weight": normal(width, 4 * width),
        }
    return found


def write(path: Path, found: dict[str, torch.Tensor]) -> Path:
    torch.save(found, path)
    return path

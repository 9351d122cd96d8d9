"""A small transformer encoder with fixed random weights: a real masked model, for tests.

Loaded as ``--extractor tests/support/tiny_torch_encoder.py:TinyTorchEncoder``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from geneb.extractors.base import Batch, Description, Extractor, Item

ALPHABET = "ACGTN"
UNKNOWN = ALPHABET.index("N")
PADDING = len(ALPHABET)
TOKENS = {letter: token for token, base in enumerate(ALPHABET) for letter in (base, base.lower())}
LIMIT = 256
DIM = 64
HEADS = 4
LAYERS = 2
SEED = 7


class TinyTorchEncoder(Extractor):
    """Letters as tokens, learnt positions, masked attention and a masked mean in float32.

    Letters other than A, C, G and T of either case are N; an empty sequence is zeros; what is
    longer than 256 letters is cut at the right.
    """

    name = "tiny-torch"
    batching = "masked"
    max_length = LIMIT

    def __init__(self, device: str = "cpu") -> None:
        self._device = torch.device(device)
        layer = nn.TransformerEncoderLayer(DIM, HEADS, 2 * DIM, batch_first=True)
        self._tokens = nn.Embedding(PADDING + 1, DIM)
        self._positions = nn.Embedding(LIMIT, DIM)
        # The nested-tensor path would take the padding out, and with it the fixed shapes.
        self._encoder = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self._modules = nn.ModuleList([self._tokens, self._positions, self._encoder])
        self._fill(torch.Generator().manual_seed(SEED))
        self._weights = self._digest()
        self._modules.to(self._device).eval()

    def prepare(self, sequences: Sequence[str]) -> list[Item]:
        """Turn letters into token ids."""
        items = []
        for sequence in sequences:
            tokens = [TOKENS.get(letter, UNKNOWN) for letter in sequence[:LIMIT]]
            items.append(Item(tokens, len(tokens), truncated=len(sequence) > LIMIT))
        return items

    @torch.inference_mode()
    def forward(self, batch: Batch, layers: Sequence[str]) -> dict[str, np.ndarray]:
        """Pad every row to the batch's padded length and average over its own letters."""
        width = max(1, batch.padded_length)  # one column at least, for a batch of empty sequences
        ids = torch.full((len(batch.items), width), PADDING)
        for row, item in enumerate(batch.items):
            ids[row, : item.length] = torch.tensor(item.payload, dtype=torch.long)
        ids = ids.to(self._device)
        inside = ids != PADDING
        # A row in which everything is masked would be NaN; its first column is looked at and then
        # multiplied by nothing.
        seen = inside.clone()
        seen[:, 0] = True
        hidden = self._tokens(ids) + self._positions.weight[:width]
        hidden = self._encoder(hidden, src_key_padding_mask=~seen)
        weight = inside.unsqueeze(-1).to(hidden.dtype)
        pooled = (hidden * weight).sum(dim=1) / weight.sum(dim=1).clamp(min=1)
        return dict.fromkeys(layers, pooled.float().cpu().numpy())

    def describe(self) -> Description:
        """Return everything that the numbers come from."""
        return Description(
            parameters={
                "alphabet": ALPHABET,
                "limit": LIMIT,
                "layer": LAYERS,
                "pooling": "mean",
                "case": "upper",
                "U": "N",
                "other letters": "N",
                "empty": "zeros",
            },
            weights=self._weights,
        )

    def _fill(self, generator: torch.Generator) -> None:
        with torch.no_grad():
            for name, weight in self._modules.named_parameters():
                if "norm" in name:
                    continue
                spread = weight.shape[-1] ** -0.5
                weight.copy_(torch.randn(weight.shape, generator=generator) * spread)

    def _digest(self) -> str:
        state = hashlib.sha256()
        for name, weight in sorted(self._modules.state_dict().items()):
            state.update(f"{name} {tuple(weight.shape)} {weight.dtype}\n".encode())
            state.update(weight.numpy().tobytes())
        return state.hexdigest()

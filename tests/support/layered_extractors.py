"""Extractors with layers, windows, batches in file order and overflows, without torch.

Each is given to geneb as a file of somebody's own: ``layered_extractors.py:Layered``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from geneb.extractors.base import LAST, Batch, Description, Extractor, Item

LAYERS = 3
LIMIT = 50


class Layered(Extractor):
    """Shares of A, C, G and T and the length, times the layer's number plus one.

    What is longer than 50 letters is cut, or embedded in windows.
    """

    name = "layered"
    max_length = LIMIT

    def __init__(self, layer: str | None = None, long_input: str | None = None) -> None:
        self.layer_count = LAYERS
        self._layer = LAYERS - 1 if layer in (None, LAST) else int(layer)
        self._long_input = long_input or "truncate"

    def prepare(self, sequences: Sequence[str]) -> list[Item]:
        return [self._item(sequence) for sequence in sequences]

    def _item(self, sequence: str) -> Item:
        if len(sequence) <= LIMIT:
            return Item(sequence, len(sequence))
        if self._long_input == "truncate":
            return Item(sequence[:LIMIT], LIMIT, truncated=True)
        starts = [*range(0, len(sequence) - LIMIT, LIMIT), len(sequence) - LIMIT]
        pieces = [sequence[start : start + LIMIT] for start in starts]
        windows = tuple(Item(piece, LIMIT, weight=1.0 + i) for i, piece in enumerate(pieces))
        return Item(None, LIMIT * len(windows), windows=windows)

    def forward(self, batch: Batch, layers: Sequence[str]) -> dict[str, np.ndarray]:
        rows = [
            [*(item.payload.upper().count(base) / 100 for base in "ACGT"), item.length / 100]
            for item in batch.items
        ]
        vectors = np.array(rows, dtype=np.float32)
        return {layer: vectors * np.float32(self._number(layer) + 1) for layer in layers}

    def _number(self, layer: str) -> int:
        return self._layer if layer == LAST else int(layer)

    def describe(self) -> Description:
        return Description({"layer": self._layer, "long input": self._long_input})


class FileOrder(Layered):
    """Lets its batch into its vectors: what is padded to, and the mean of all rows."""

    name = "file-order"
    batching = "file-order"
    batch_size = 8

    def forward(self, batch: Batch, layers: Sequence[str]) -> dict[str, np.ndarray]:
        found = super().forward(batch, layers)
        return {
            layer: vectors + vectors.mean(axis=0) + np.float32(batch.padded_length)
            for layer, vectors in found.items()
        }


class Overflowing(Layered):
    """In half precision, where layers from the second on overflow for many A."""

    name = "overflowing"

    def forward(self, batch: Batch, layers: Sequence[str]) -> dict[str, np.ndarray]:
        found = super().forward(batch, layers)
        for layer, vectors in found.items():
            if self._number(layer) > 0:
                vectors[vectors[:, 0] > 0.2 * (self._number(layer) + 1), 1] = np.inf
        return found

    def forward_in_float32(
        self, batch: Batch, layers: Sequence[str]
    ) -> dict[str, np.ndarray] | None:
        return super().forward(batch, layers)

    def describe(self) -> Description:
        return Description({"layer": self._layer}, compute_dtype="float16")


class NotEvenInFloat32(Overflowing):
    """Overflows in float32 too."""

    name = "not-even"

    def forward_in_float32(
        self, batch: Batch, layers: Sequence[str]
    ) -> dict[str, np.ndarray] | None:
        return self.forward(batch, layers)


class Uneven(Layered):
    """Layers of several widths."""

    name = "uneven"

    def forward(self, batch: Batch, layers: Sequence[str]) -> dict[str, np.ndarray]:
        found = super().forward(batch, layers)
        return {layer: vectors[:, : 3 + self._number(layer)] for layer, vectors in found.items()}

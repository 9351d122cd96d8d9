"""Extractors that do what real ones do to us, each given to geneb as a file of somebody's own.

All are `Letters` with something wrong, or something to observe.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from geneb.extractors.base import Batch, Item, SimpleExtractor

CANARY_BATCHES = 17
"""Calls of `forward` before the first block of a run: each of 16 alone, then all together."""


class Letters(SimpleExtractor):
    """Shares of A, C, G and T, and the length in thousands of letters."""

    name = "letters"

    def embed(self, sequences: Sequence[str]) -> np.ndarray:
        rows = [
            [*(text.upper().count(base) / max(1, len(text)) for base in "ACGT"), len(text) / 1000]
            for text in sequences
        ]
        return np.array(rows, dtype=np.float32)


class Counting(Letters):
    """Appends every sequence that it embeds to the file that EMBEDDED_LOG names."""

    def embed(self, sequences: Sequence[str]) -> np.ndarray:
        with Path(os.environ["EMBEDDED_LOG"]).open("a", encoding="utf-8") as stream:
            stream.writelines(f"{sequence}\n" for sequence in sequences)
        return super().embed(sequences)


class NotFinite(Letters):
    """An overflow for sequences with a run of eight A."""

    def embed(self, sequences: Sequence[str]) -> np.ndarray:
        vectors = super().embed(sequences)
        vectors[["A" * 8 in sequence for sequence in sequences], 2] = np.inf
        return vectors


class Drifting(Letters):
    """Other numbers from the same file: a library that changed, played by FACTOR."""

    def embed(self, sequences: Sequence[str]) -> np.ndarray:
        return super().embed(sequences) * np.float32(os.environ.get("FACTOR", "1"))


class Unmasked(Letters):
    """Lets padding into the mean, though it says that it is masked."""

    def forward(self, batch: Batch, layers: Sequence[str]) -> dict[str, np.ndarray]:
        vectors = self.embed([item.payload.ljust(batch.padded_length) for item in batch.items])
        return dict.fromkeys(layers, vectors)


class Neighbourly(Letters):
    """Centres each batch on itself, as a layer left in training mode does."""

    batching = "equal-length"

    def embed(self, sequences: Sequence[str]) -> np.ndarray:
        vectors = super().embed(sequences)
        return vectors - vectors.mean(axis=0) + 1


class Noisy(Letters):
    """Prints to stdout wherever it can."""

    def __init__(self) -> None:
        print("constructed")  # noqa: T201

    def prepare(self, sequences: Sequence[str]) -> list[Item]:
        print("prepared")  # noqa: T201
        return super().prepare(sequences)

    def embed(self, sequences: Sequence[str]) -> np.ndarray:
        print("embedded")  # noqa: T201
        sys.stdout.flush()
        return super().embed(sequences)


class Signalling(Letters):
    """Sends itself SIGNALS (numbers), one after the other, in the batch numbered SIGNAL_AT."""

    batches = 0

    def embed(self, sequences: Sequence[str]) -> np.ndarray:
        self.batches += 1
        if self.batches == CANARY_BATCHES + int(os.environ.get("SIGNAL_AT", "-100")):
            for number in os.environ["SIGNALS"].split():
                signal.raise_signal(int(number))
        return super().embed(sequences)


class Failing(Letters):
    """A mistake in somebody's code, met only with an N."""

    def embed(self, sequences: Sequence[str]) -> np.ndarray:
        if any("NNNN" in sequence for sequence in sequences):
            raise KeyError("N")
        return super().embed(sequences)


class Overflowing(Letters):
    """Finite in float32, too large for float16."""

    def embed(self, sequences: Sequence[str]) -> np.ndarray:
        return super().embed(sequences) * np.float32(1e6)

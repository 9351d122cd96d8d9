"""k-mer frequencies: the baseline that every model should beat."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from geneb.errors import InputError
from geneb.extractors.base import Description, SimpleExtractor
from geneb.extractors.letters import BASES, OTHER, base_codes

MAX_K = 8
# Work goes in slabs of so many letters and so many counters (32 MiB), whatever the input.
_SLAB_LETTERS = 1 << 20
_SLAB_COUNTERS = 1 << 22


class KmerExtractor(SimpleExtractor):
    """How often each k-mer occurs, as a share of the windows counted.

    Sequences are upper-cased; a window that holds anything but A, C, G and T (U among the rest)
    is skipped; counts are divided by the number of counted windows in float64 and rounded to
    float32; k-mers stand in lexicographic order. A sequence without a counted window (empty,
    shorter than k, all N) is a row of zeros.

    Parameters
    ----------
    k
        Length of the words, 1 to 8.

    Attributes
    ----------
    dim
        4 to the power of k.
    """

    name = "kmer"
    batching = "masked"

    def __init__(self, k: int) -> None:
        if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MAX_K:
            raise InputError(
                "this cannot be a word length",
                where="k",
                expected=f"a whole number from 1 to {MAX_K}",
                found=repr(k),
            )
        self.k = k
        self.dim = len(BASES) ** k

    def embed(self, sequences: Sequence[str]) -> np.ndarray:
        """Return k-mer frequencies.

        Returns
        -------
        ndarray of float32, shape (n, 4 ** k)
        """
        vectors = np.empty((len(sequences), self.dim), dtype=np.float32)
        for rows in self._slabs(sequences):
            counts = self._count_slab(sequences[rows])
            windows = counts.sum(axis=1, keepdims=True)
            vectors[rows] = counts / np.maximum(windows, 1)
        return vectors

    def describe(self) -> Description:
        """Return k and what is done with letters that are not upper-case A, C, G or T."""
        return Description(
            parameters={
                "k": self.k,
                "limit": None,
                "case": "upper",
                "U": "window skipped",
                "other letters": "window skipped",
                "empty": "zeros",
            }
        )

    def _slabs(self, sequences: Sequence[str]) -> Iterator[slice]:
        """Yield runs of rows that are counted together; a very long row is a run of its own."""
        most_rows = max(1, _SLAB_COUNTERS // self.dim)
        first = letters = 0
        for row, sequence in enumerate(sequences):
            full = row - first == most_rows or letters + len(sequence) > _SLAB_LETTERS
            if row > first and full:
                yield slice(first, row)
                first, letters = row, 0
            letters += len(sequence)
        if sequences:
            yield slice(first, len(sequences))

    def _count_slab(self, sequences: Sequence[str]) -> np.ndarray:
        if len(sequences) > 1:
            return self._count(sequences)
        # Pieces overlap by k - 1 letters, so that every window is in exactly one of them.
        (sequence,) = sequences
        counts = np.zeros((1, self.dim), dtype=np.int64)
        for start in range(0, len(sequence), _SLAB_LETTERS):
            counts += self._count([sequence[start : start + _SLAB_LETTERS + self.k - 1]])
        return counts

    def _count(self, sequences: Sequence[str]) -> np.ndarray:
        """Count the k-mers of each sequence: int64, shape (n, 4 ** k)."""
        # The N between two sequences keeps windows from reaching over the border.
        codes = base_codes("N".join(sequences))
        windows = max(0, len(codes) - self.k + 1)
        kmers = np.zeros(windows, dtype=np.int64)
        counted = np.ones(windows, dtype=bool)
        for offset in range(self.k):
            letters = codes[offset : offset + windows]
            kmers = kmers * len(BASES) + letters
            counted &= letters != OTHER
        rows = np.repeat(np.arange(len(sequences)), [len(sequence) + 1 for sequence in sequences])
        cells = rows[:windows][counted] * self.dim + kmers[counted]
        counts = np.bincount(cells, minlength=len(sequences) * self.dim)
        return counts.reshape(len(sequences), self.dim)

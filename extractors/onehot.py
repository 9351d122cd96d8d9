"""One-hot letters: what a linear probe can read off the sequence itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from geneb.errors import InputError
from geneb.extractors.base import Description, SimpleExtractor
from geneb.extractors.letters import BASES, OTHER, base_codes

# One row a code; the row of OTHER is all zeros.
_ONE_HOT = np.eye(OTHER + 1, len(BASES), dtype=np.float32)


class OneHotExtractor(SimpleExtractor):
    """The first letters of a sequence, four numbers each.

    A, C, G and T of either case have a one in their place; any other letter (U among them), and
    every position beyond the end, is four zeros. Longer sequences are cut at the right.

    Parameters
    ----------
    positions
        How many letters are looked at.

    Attributes
    ----------
    dim
        4 times the number of positions.
    """

    name = "onehot"
    batching = "masked"

    def __init__(self, positions: int) -> None:
        if isinstance(positions, bool) or not isinstance(positions, int) or positions < 1:
            raise InputError(
                "this cannot be a number of letters",
                where="positions",
                expected="a whole number, 1 or more",
                found=repr(positions),
            )
        self.positions = self.limit = positions
        self.dim = len(BASES) * positions

    def embed(self, sequences: Sequence[str]) -> np.ndarray:
        """Return one-hot letters.

        Returns
        -------
        ndarray of float32, shape (n, 4 * positions)
        """
        width = self.positions
        text = "".join(sequence[:width].ljust(width, "N") for sequence in sequences)
        return _ONE_HOT[base_codes(text)].reshape(len(sequences), self.dim)

    def describe(self) -> Description:
        """Return the number of positions and what is done with other letters."""
        return Description(
            parameters={
                "positions": self.positions,
                "limit": self.limit,
                "case": "upper",
                "U": "zeros",
                "other letters": "zeros",
                "empty": "zeros",
            }
        )

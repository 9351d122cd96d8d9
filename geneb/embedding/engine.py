"""From items to vectors: batching, order, memory and the check that every number is finite."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from geneb.embedding.batches import plan_batches
from geneb.errors import WorkError
from geneb.extractors.base import LAST, Batch, Extractor, Item


class NonFiniteError(WorkError):
    """Raised when a model gave NaN or infinity.

    Attributes
    ----------
    rows
        int64 positions among the items that were embedded.
    """

    def __init__(self, rows: np.ndarray) -> None:
        super().__init__(
            f"the model gave NaN or infinity for {len(rows)} sequence(s)",
            fix="look at these sequences; an overflow in half precision is the usual cause",
        )
        self.rows = rows


class Engine:
    """Runs one extractor.

    Parameters
    ----------
    extractor
        What to run.
    token_budget
        Padded tokens a batch.

    Attributes
    ----------
    tokens
        Tokens embedded so far, padding not counted.
    out_of_memory_splits
        How often a batch had to be halved.
    """

    def __init__(self, extractor: Extractor, token_budget: int) -> None:
        self.extractor = extractor
        self.token_budget = token_budget
        self.tokens = 0
        self.out_of_memory_splits = 0
        self._dim: int | None = None

    def prepare(self, sequences: Sequence[str]) -> list[Item]:
        """Make sequences ready; safe in any thread.

        Raises
        ------
        WorkError
            If the extractor does not give one item a sequence.
        """
        items = self.extractor.prepare(sequences)
        if len(items) != len(sequences):
            raise WorkError(
                f"extractor {self.extractor.name} changed the number of rows",
                expected=f"{len(sequences)} items",
                found=f"{len(items)}",
                fix="prepare() must return one item a sequence, in order",
            )
        return items

    def embed(self, items: Sequence[Item]) -> np.ndarray:
        """Embed items.

        Returns
        -------
        ndarray of float32, shape (n, dim)
            In the order of the items.

        Raises
        ------
        NonFiniteError
            Naming the rows that are not finite.
        WorkError
            If the extractor breaks its contract.
        """
        lengths = [item.length for item in items]
        vectors: np.ndarray | None = None
        for plan in plan_batches(lengths, self.extractor.batching, self.token_budget):
            chosen = [items[row] for row in plan.rows]
            rows = self._forward(chosen, plan.padded_length)
            if vectors is None:
                vectors = np.empty((len(items), rows.shape[1]), dtype=np.float32)
            vectors[plan.rows] = rows
        assert vectors is not None, "there is always at least one item"
        bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        if len(bad):
            raise NonFiniteError(bad)
        self.tokens += sum(lengths)
        return vectors

    def _forward(self, items: Sequence[Item], width: int) -> np.ndarray:
        """Run one batch; where memory runs out, its halves at the same padded length."""
        try:
            rows = self.extractor.forward(Batch(items, width), (LAST,))[LAST]
        except Exception as error:
            if len(items) == 1 or not _is_out_of_memory(error):
                raise
            rows = None
        if rows is None:  # outside the handler, where the failed batch's memory is free again
            self.out_of_memory_splits += 1
            half = len(items) // 2
            return np.concatenate(
                [self._forward(items[:half], width), self._forward(items[half:], width)]
            )
        return self._checked(rows, len(items))

    def _checked(self, rows: np.ndarray, count: int) -> np.ndarray:
        if (
            not isinstance(rows, np.ndarray)
            or rows.dtype != np.float32
            or rows.ndim != 2
            or rows.shape[0] != count
            or rows.shape[1] != (self._dim or rows.shape[1])
            or rows.shape[1] == 0
        ):
            raise WorkError(
                f"extractor {self.extractor.name} broke its contract",
                expected=f"float32 of shape ({count}, {self._dim or 'dim'})",
                found=f"{getattr(rows, 'dtype', type(rows).__name__)} "
                f"of shape {getattr(rows, 'shape', '?')}",
            )
        self._dim = rows.shape[1]
        return rows


def _is_out_of_memory(error: BaseException) -> bool:
    # By name: torch's error, on any device, is recognised without importing torch.
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"

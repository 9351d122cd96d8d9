"""From items to vectors: batching, order, memory and the check that every number is finite."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from geneb.embedding.batches import padded_length, plan_batches
from geneb.errors import GenebError, WorkError
from geneb.extractors.base import LAST, Batch, Extractor, Item
from geneb.extractors.source import describe_failure


class RowError(WorkError):
    """Raised when some of the sequences cannot be embedded.

    Attributes
    ----------
    rows
        int64 positions among the items that were to be embedded.
    """

    def __init__(self, problem: str, rows: np.ndarray, **details: str) -> None:
        super().__init__(problem, **details)
        self.rows = rows


class NonFiniteError(RowError):
    """Raised when a model gave NaN or infinity."""

    def __init__(self, rows: np.ndarray) -> None:
        super().__init__(
            f"the model gave NaN or infinity for {len(rows)} sequence(s)",
            rows,
            fix="look at these sequences; an overflow in half precision is the usual cause",
        )


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
        Tokens embedded so far by `embed`, padding not counted.
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
            If the extractor fails, or does not give one item a sequence.
        """
        try:
            items = self.extractor.prepare(sequences)
        except GenebError:
            raise
        except (Exception, SystemExit) as error:
            raise WorkError(
                f"extractor {self.extractor.name} failed in prepare()",
                found=self._describe(error),
            ) from error
        self._check_items(items, len(sequences))
        return items

    def embed(self, items: Sequence[Item]) -> np.ndarray:
        """Embed items.

        Returns
        -------
        ndarray of float32, shape (n, dim)
            In the order of the items, at least one.

        Raises
        ------
        RowError
            Naming the rows that are not finite, or with which the extractor failed.
        WorkError
            If the extractor breaks its contract.
        """
        vectors = self._in_batches(items)
        self.tokens += sum(item.length for item in items)
        return _finite(vectors)

    def embed_alone(self, items: Sequence[Item]) -> np.ndarray:
        """Embed each item in a batch of its own and without padding: what others must agree with.

        Returns and raises what `embed` does.
        """
        single = [
            self._forward(items, np.array([row]), item.length).copy()  # a buffer may be used again
            for row, item in enumerate(items)
        ]
        return _finite(np.concatenate(single))

    def embed_together(self, items: Sequence[Item]) -> np.ndarray:
        """Embed items in the largest batches, and with the most padding, that `batching` allows.

        Returns and raises what `embed` does.
        """
        if self.extractor.batching != "masked":
            return _finite(self._in_batches(items))
        widest = padded_length(max(item.length for item in items), self.extractor.max_length)
        return _finite(self._forward(items, np.arange(len(items)), widest))

    def _in_batches(self, items: Sequence[Item]) -> np.ndarray:
        lengths = [item.length for item in items]
        vectors: np.ndarray | None = None
        extractor = self.extractor
        for plan in plan_batches(
            lengths, extractor.batching, self.token_budget, extractor.max_length
        ):
            batch = self._forward(items, plan.rows, plan.padded_length)
            if vectors is None:
                vectors = np.empty((len(items), batch.shape[1]), dtype=np.float32)
            vectors[plan.rows] = batch
        assert vectors is not None, "there is always at least one item"
        return vectors

    def _forward(self, items: Sequence[Item], rows: np.ndarray, width: int) -> np.ndarray:
        """Run one batch; where memory runs out, its halves at the same padded length."""
        try:
            layers = self.extractor.forward(Batch([items[row] for row in rows], width), (LAST,))
        except GenebError:
            raise
        except (Exception, SystemExit) as error:
            if not _is_out_of_memory(error):
                raise RowError(
                    f"extractor {self.extractor.name} failed in forward()",
                    rows,
                    found=self._describe(error),
                ) from error
            if len(rows) == 1:
                raise RowError(
                    "there is not enough memory for one sequence alone",
                    rows,
                    found=f"{width:,} padded tokens; {type(error).__name__}",
                    fix="use a device with more memory, or a model with a smaller limit",
                ) from error
        else:
            return self._checked(layers, len(rows))
        # Outside the handler: the failed batch's memory is free again.
        self.out_of_memory_splits += 1
        half = len(rows) // 2
        first = self._forward(items, rows[:half], width).copy()  # a buffer may be used again
        return np.concatenate([first, self._forward(items, rows[half:], width)])

    def _check_items(self, items: Any, count: int) -> None:
        right = isinstance(items, list) and all(
            isinstance(item, Item) and item.length >= 0 for item in items
        )
        if not right or len(items) != count:
            raise WorkError(
                f"extractor {self.extractor.name} broke its contract in prepare()",
                expected=f"a list of {count} items, one a sequence, in order",
                found=f"{len(items)} items" if right else "something else than such a list",
            )

    def _checked(self, layers: Any, count: int) -> np.ndarray:
        rows = layers.get(LAST) if isinstance(layers, dict) else layers
        if (
            not isinstance(layers, dict)
            or not isinstance(rows, np.ndarray)
            or rows.dtype != np.float32
            or rows.ndim != 2
            or rows.shape[0] != count
            or rows.shape[1] != (self._dim or rows.shape[1])
            or rows.shape[1] == 0
        ):
            shape = f" of shape {rows.shape}" if isinstance(rows, np.ndarray) else ""
            raise WorkError(
                f"extractor {self.extractor.name} broke its contract in forward()",
                expected=f"for layer {LAST!r} an array of float32 of shape "
                f"({count}, {self._dim or 'dim'})",
                found=f"{getattr(rows, 'dtype', type(rows).__name__)}{shape}",
            )
        self._dim = rows.shape[1]
        return rows

    def _describe(self, error: BaseException) -> str:
        """Return an error of the extractor's, and the line of its file that it came from."""
        module = sys.modules.get(type(self.extractor).__module__)
        return describe_failure(error, Path(getattr(module, "__file__", None) or "unknown"))


def as_stored(vectors: np.ndarray, dtype: str) -> np.ndarray:
    """Return finite vectors in what they are stored as: ``float32`` or ``float16``.

    Raises
    ------
    RowError
        If a number is too large for float16.
    """
    if dtype == "float32":
        return vectors
    with np.errstate(over="ignore"):  # looked for in the next line
        stored = vectors.astype(dtype)
    bad = np.flatnonzero(~np.isfinite(stored).all(axis=1))
    if len(bad):
        raise RowError(
            f"a number is too large for {dtype}", bad, fix="store the vectors in float32"
        )
    return stored


def _finite(vectors: np.ndarray) -> np.ndarray:
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad):
        raise NonFiniteError(bad)
    return vectors


def _is_out_of_memory(error: BaseException) -> bool:
    # By name: torch's error, on any device, is recognised without importing torch.
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"

"""From items to vectors: batching, order, memory and the check that every number is finite."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from geneb.embedding.batches import BatchPlan, padded_length, plan_batches, plan_file_order
from geneb.errors import GenebError, WorkError
from geneb.extractors.base import LAST, Batch, Extractor, Item, Parts, combine, flatten
from geneb.extractors.source import describe_failure

Vectors = dict[str, np.ndarray]
"""For each layer float32 of shape (rows, dim)."""


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
    """Raised when a model gave NaN or infinity, in full precision too where it has any."""

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
        Padded tokens a batch; not looked at where batches are in file order.

    Attributes
    ----------
    tokens
        Tokens embedded so far by `embed` and `embed_layers`, padding not counted.
    out_of_memory_splits
        How often a batch had to be halved.
    float32_retries
        Rows (or windows of rows) that were not finite, and were run once more in float32.
    """

    def __init__(self, extractor: Extractor, token_budget: int) -> None:
        self.extractor = extractor
        self.token_budget = token_budget
        self.tokens = 0
        self.out_of_memory_splits = 0
        self.float32_retries = 0
        self._dims: dict[str, int] = {}

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
        """Embed items by the extractor's own layer.

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
        return self.embed_layers(items, (LAST,))[LAST]

    def embed_layers(self, items: Sequence[Item], layers: Sequence[str]) -> Vectors:
        """Embed items by several layers in one pass; returns and raises what `embed` does."""
        parts = flatten(items)
        vectors = self._whole(parts, self._plans(parts), layers)
        self.tokens += sum(part.length for part in parts.items)
        return vectors

    def embed_alone(self, items: Sequence[Item], layers: Sequence[str] = (LAST,)) -> Vectors:
        """Embed each item in a batch of its own and without padding: what others must agree with.

        Returns and raises what `embed_layers` does.
        """
        parts = flatten(items)
        plans = [BatchPlan(np.array([row]), part.length) for row, part in enumerate(parts.items)]
        return self._whole(parts, plans, layers)

    def embed_together(self, items: Sequence[Item], layers: Sequence[str] = (LAST,)) -> Vectors:
        """Embed items in the largest batches, and with the most padding, that `batching` allows.

        Returns and raises what `embed_layers` does.
        """
        parts = flatten(items)
        if self.extractor.batching != "masked":
            return self._whole(parts, self._plans(parts), layers)
        longest = max(part.length for part in parts.items)
        widest = padded_length(longest, self.extractor.max_length)
        return self._whole(parts, [BatchPlan(np.arange(len(parts.items)), widest)], layers)

    def _plans(self, parts: Parts) -> list[BatchPlan]:
        extractor, lengths = self.extractor, [part.length for part in parts.items]
        if extractor.batching == "file-order":
            return plan_file_order(lengths, parts.owners, extractor.batch_size)
        return plan_batches(lengths, extractor.batching, self.token_budget, extractor.max_length)

    def _whole(self, parts: Parts, plans: Sequence[BatchPlan], layers: Sequence[str]) -> Vectors:
        """Run batches, put rows back into order, and windows together."""
        vectors: Vectors = {}
        try:
            for plan in plans:
                for layer, rows in self._run(parts.items, plan, layers).items():
                    if layer not in vectors:
                        shape = (len(parts.items), rows.shape[1])
                        vectors[layer] = np.empty(shape, dtype=np.float32)
                    vectors[layer][plan.rows] = rows
        except RowError as error:
            error.rows = np.unique(parts.owners[error.rows])
            raise
        combined = {layer: combine(rows, parts) for layer, rows in vectors.items()}
        bad = np.flatnonzero(_not_finite(combined))
        if len(bad):
            raise NonFiniteError(bad)
        return combined

    def _run(self, items: Sequence[Item], plan: BatchPlan, layers: Sequence[str]) -> Vectors:
        """Run one batch; rows that are not finite once more in float32, where that is more."""
        vectors = self._forward(items, plan, layers, precise=False)
        bad = np.flatnonzero(_not_finite(vectors))
        if not len(bad):
            return vectors
        precise = self._forward(
            items, BatchPlan(plan.rows[bad], plan.padded_length), layers, precise=True
        )
        if not precise:
            return vectors
        self.float32_retries += len(bad)
        mended = {}
        for layer, rows in vectors.items():
            # A layer that is finite keeps its numbers: those it has when it is asked for alone.
            broken = ~np.isfinite(rows[bad]).all(axis=1)
            mended[layer] = rows.copy()
            mended[layer][bad[broken]] = precise[layer][broken]
        return mended

    def _forward(
        self, items: Sequence[Item], plan: BatchPlan, layers: Sequence[str], *, precise: bool
    ) -> Vectors:
        """Run one batch; where memory runs out, its halves at the same padded length.

        With ``precise``, in float32; nothing is returned where that is what it is always run in.
        """
        rows, width = plan.rows, plan.padded_length
        run = self.extractor.forward_in_float32 if precise else self.extractor.forward
        try:
            found = run(Batch([items[row] for row in rows], width), tuple(layers))
        except GenebError:
            raise
        except (Exception, SystemExit) as error:
            if not _is_out_of_memory(error):
                raise RowError(
                    f"extractor {self.extractor.name} failed in {run.__name__}()",
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
            if precise and found is None:
                return {}
            return self._checked(found, layers, len(rows))
        # Outside the handler: the failed batch's memory is free again.
        self.out_of_memory_splits += 1
        half = len(rows) // 2
        first, second = (
            # A copy: a buffer may be used again.
            _copied(self._forward(items, BatchPlan(part, width), layers, precise=precise))
            for part in (rows[:half], rows[half:])
        )
        return {layer: np.concatenate([first[layer], second[layer]]) for layer in first}

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

    def _checked(self, found: Any, layers: Sequence[str], count: int) -> Vectors:
        for layer in layers:
            rows = found.get(layer) if isinstance(found, dict) else found
            dim = self._dims.get(layer)
            if (
                not isinstance(found, dict)
                or not isinstance(rows, np.ndarray)
                or rows.dtype != np.float32
                or rows.ndim != 2
                or rows.shape[0] != count
                or rows.shape[1] != (dim or rows.shape[1])
                or rows.shape[1] == 0
            ):
                shape = f" of shape {rows.shape}" if isinstance(rows, np.ndarray) else ""
                raise WorkError(
                    f"extractor {self.extractor.name} broke its contract in forward()",
                    expected=f"for layer {layer!r} an array of float32 of shape "
                    f"({count}, {dim or 'dim'})",
                    found=f"{getattr(rows, 'dtype', type(rows).__name__)}{shape}",
                )
            self._dims[layer] = rows.shape[1]
        return {layer: found[layer] for layer in layers}

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


def _not_finite(vectors: Vectors) -> np.ndarray:
    """Return for each row whether any layer of it holds NaN or infinity."""
    finite = [np.isfinite(rows).all(axis=1) for rows in vectors.values()]
    return ~np.logical_and.reduce(finite)


def _copied(vectors: Vectors) -> Vectors:
    return {layer: rows.copy() for layer, rows in vectors.items()}


def _is_out_of_memory(error: BaseException) -> bool:
    # By name: torch's error, on any device, is recognised without importing torch.
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"

"""Doing one block job: its sequences in, its rows in the store."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from geneb.embedding.engine import Engine, RowError, as_stored
from geneb.embedding.plan import BlockJob, Copy, TaskPlan
from geneb.errors import CorruptionError, StoreError, WorkError
from geneb.extractors.base import Item
from geneb.stores import layout
from geneb.stores.arrays import BlockArray
from geneb.stores.model import Counts
from geneb.stores.zarr_store import Writer
from geneb.tasks.read import Task, sequence_counts


@dataclass(frozen=True)
class PreparedBlock:
    """A block whose sequences are ready for the model.

    Attributes
    ----------
    items
        One for each row that is computed here, in order.
    """

    job: BlockJob
    items: list[Item]


@dataclass(frozen=True)
class _SourceBlock:
    """A block that rows are copied from, and the ids of its rows."""

    key: tuple[str, str, int]
    rows: np.ndarray
    row_ids: np.ndarray


class TaskWorker:
    """Does the block jobs of one task.

    Parameters
    ----------
    engine
        Embeds.
    writer
        The store; this process holds the task's claim.
    task
        The task's text.
    """

    def __init__(self, engine: Engine, writer: Writer, task: Task) -> None:
        self._engine = engine
        self._writer = writer
        self._task = task
        self._truncated: Counter[str] = Counter()
        self._arrays: dict[tuple[str, str], BlockArray] = {}
        self._source: _SourceBlock | None = None

    def intact(self, job: BlockJob) -> bool:
        """Return whether the block is in the store and passes its checksum."""
        try:
            self._array(job.task, job.split).read_block(job.block)
        except CorruptionError:
            return False
        return True

    def prepare(self, job: BlockJob) -> PreparedBlock:
        """Tokenise, and count what was cut, copied rows included; one block at a time."""
        sequences = self._task.splits[job.split].sequences[job.first : job.last]
        try:
            items = self._engine.prepare(sequences)
        except WorkError as error:
            error.where = f"task {job.task}, {job.split}, rows {job.first} to {job.last - 1}"
            raise
        self._truncated[job.split] += sum(item.truncated for item in items)
        return PreparedBlock(job, [items[row] for row in job.compute])

    def compute(self, prepared: PreparedBlock) -> np.ndarray:
        """Embed the rows that this block owns.

        Returns
        -------
        ndarray of the store's float32 or float16, shape (rows of the block, dim)
            Copied rows are not filled in yet.

        Raises
        ------
        RowError
            Naming task, split and rows.
        """
        job, fingerprint = prepared.job, self._writer.fingerprint
        if not job.copies:
            return self._vectors(prepared)
        # NaN: a row that nobody fills in must never pass for a vector.
        shape = (job.last - job.first, fingerprint.dim)
        rows = np.full(shape, np.nan, dtype=fingerprint.store_dtype)
        if prepared.items:
            rows[job.compute] = self._vectors(prepared)
        return rows

    def _vectors(self, prepared: PreparedBlock) -> np.ndarray:
        try:
            vectors = self._engine.embed(prepared.items)
            return as_stored(vectors, self._writer.fingerprint.store_dtype)
        except RowError as error:
            error.where = _name_rows(prepared.job, prepared.job.compute[error.rows])
            raise

    def write(self, job: BlockJob, rows: np.ndarray) -> None:
        """Fill in the copied rows and write the block; blocks are written in order.

        Raises
        ------
        WorkError
            If another process has replaced a task that rows are copied from.
        """
        for copy in job.copies:
            rows[copy.target] = self._source_rows(job, copy, rows)[copy.source]
        self._writer.write_block(job.task, job.split, job.block, rows)

    def _source_rows(self, job: BlockJob, copy: Copy, own: np.ndarray) -> np.ndarray:
        key = (copy.task, copy.split, copy.block)
        if key == (job.task, job.split, job.block):
            return own
        if self._source is None or self._source.key != key:
            self._source = self._read_source(copy, job.task)
        # Another process may have replaced the task since this one was planned.
        split = self._task.splits[job.split]
        wanted, found = split.row_ids[job.first + copy.target], self._source.row_ids
        if copy.source.max() >= len(found) or not np.array_equal(found[copy.source], wanted):
            raise self._replaced(copy.task)
        return self._source.rows

    def _read_source(self, copy: Copy, task: str) -> _SourceBlock:
        writer = self._writer
        try:
            arrays = writer.split_arrays(copy.task, copy.split)
            if copy.block >= arrays.embeddings.blocks:
                raise self._replaced(copy.task)
            # The ids last: if the task is replaced in between, they are not those of the plan.
            rows = arrays.embeddings.read_block(copy.block)
            first, last = layout.block_span(arrays.rows, writer.fingerprint.dim, copy.block)
            row_ids = arrays.row_id.read()[first:last]
        except (StoreError, FileNotFoundError) as error:
            # Of a task that is complete, or our own, this is damage.
            if copy.task == task or writer.store.manifest(copy.task) is not None:
                raise
            raise self._replaced(copy.task) from error
        return _SourceBlock((copy.task, copy.split, copy.block), rows, row_ids)

    def _replaced(self, task: str) -> WorkError:
        return WorkError(
            "a task that rows are copied from changed while the run was under way",
            where=f"{self._writer.path}, task {task}",
            fix="run the same command again",
        )

    def _array(self, task: str, split: str) -> BlockArray:
        if (task, split) not in self._arrays:
            self._arrays[task, split] = self._writer.split_arrays(task, split).embeddings
        return self._arrays[task, split]

    def counts(self, plan: TaskPlan) -> dict[str, Counts]:
        """Return what a manifest says of each split, once every block has been prepared."""
        counts = {}
        for name, split in self._task.splits.items():
            computed, copied = plan.counts(name)
            facts = sequence_counts(split.sequences)
            counts[name] = Counts(
                truncated=self._truncated[name],
                non_acgt=facts.non_acgt,
                empty=facts.empty,
                computed=computed,
                copied=copied,
            )
        return counts


def _name_rows(job: BlockJob, rows: np.ndarray) -> str:
    listed = ", ".join(str(job.first + row) for row in rows[:10].tolist())
    more = f" and {len(rows) - 10} more" if len(rows) > 10 else ""
    return f"task {job.task}, {job.split}, row {listed}{more} (counted from 0 within the split)"

"""Doing one block job: its sequences in, its rows in the store, or in one store a layer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from geneb.embedding.batches import whole_batches
from geneb.embedding.engine import Engine, RowError, Vectors, as_stored
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
        What goes through the model, in order.
    rows
        int64 positions of the items within the block; beyond its ends where a batch in file
        order begins or ends there: such items are only company.
    """

    job: BlockJob
    items: list[Item]
    rows: np.ndarray


@dataclass(frozen=True)
class _SourceBlock:
    """A block that rows are copied from, and the ids of its rows."""

    key: tuple[str, str, int]
    rows: np.ndarray
    row_ids: np.ndarray


class BlockOutput:
    """Where one layer's blocks of one task go.

    Parameters
    ----------
    layer
        What the extractor calls it.
    writer
        The store; this process holds the task's claim.
    task
        The task's text.
    """

    def __init__(self, layer: str, writer: Writer, task: Task) -> None:
        self.layer = layer
        self._writer = writer
        self._task = task
        self._arrays: dict[tuple[str, str], BlockArray] = {}
        self._source: _SourceBlock | None = None

    def intact(self, job: BlockJob) -> bool:
        """Return whether the block is in the store and passes its checksum."""
        try:
            self._array(job.task, job.split).read_block(job.block)
        except CorruptionError:
            return False
        return True

    def rows(self, prepared: PreparedBlock, vectors: np.ndarray | None) -> np.ndarray:
        """Return the block's rows, those that are copied not filled in yet.

        Parameters
        ----------
        vectors
            Of the prepared items; None where there are none.

        Returns
        -------
        ndarray of the store's float32 or float16, shape (rows of the block, dim)

        Raises
        ------
        RowError
            Naming the items that do not fit the store's type.
        """
        job, fingerprint = prepared.job, self._writer.fingerprint
        shape = (job.last - job.first, fingerprint.dim)
        if vectors is not None:
            vectors = as_stored(vectors, fingerprint.store_dtype)
            if len(prepared.items) == len(job.compute) == shape[0]:
                return vectors
        # NaN: a row that nobody fills in must never pass for a vector.
        rows = np.full(shape, np.nan, dtype=fingerprint.store_dtype)
        if vectors is not None:
            own = (prepared.rows >= 0) & (prepared.rows < shape[0])
            rows[prepared.rows[own]] = vectors[own]
        return rows

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


class TaskWorker:
    """Does the block jobs of one task.

    Parameters
    ----------
    engine
        Embeds.
    outputs
        Where each layer's rows go.
    task
        The task's text.
    """

    def __init__(self, engine: Engine, outputs: Sequence[BlockOutput], task: Task) -> None:
        self._engine = engine
        self._outputs = outputs
        self._task = task
        self._truncated: Counter[str] = Counter()

    def intact(self, job: BlockJob) -> bool:
        """Return whether the block is in each store and passes its checksum there."""
        return all(output.intact(job) for output in self._outputs)

    def prepare(self, job: BlockJob) -> PreparedBlock:
        """Tokenise, and count what was cut, copied rows included; one block at a time."""
        split = self._task.splits[job.split]
        begin, end = job.first, job.last
        extractor = self._engine.extractor
        if extractor.batching == "file-order":
            begin, end = whole_batches(begin, end, len(split.sequences), extractor.batch_size)
        try:
            items = self._engine.prepare(split.sequences[begin:end])
        except WorkError as error:
            error.where = f"task {job.task}, {job.split}, rows {begin} to {end - 1}"
            raise
        own = items[job.first - begin : job.last - begin]
        self._truncated[job.split] += sum(item.truncated for item in own)
        if len(items) > len(own):
            return PreparedBlock(job, items, np.arange(begin, end) - job.first)
        return PreparedBlock(job, [own[row] for row in job.compute], job.compute)

    def compute(self, prepared: PreparedBlock) -> Vectors:
        """Embed the rows that this block owns.

        Returns
        -------
        dict of str to ndarray
            Each layer's rows of the block, those that are copied not filled in yet.

        Raises
        ------
        RowError
            Naming task, split and rows.
        """
        layers = [output.layer for output in self._outputs]
        try:
            vectors: Vectors = {}
            if prepared.items:
                vectors = self._engine.embed_layers(prepared.items, layers)
            return {
                output.layer: output.rows(prepared, vectors.get(output.layer))
                for output in self._outputs
            }
        except RowError as error:
            job = prepared.job
            error.where = name_rows(job.task, job.split, job.first + prepared.rows[error.rows])
            raise

    def write(self, job: BlockJob, rows: Vectors) -> None:
        """Write the block of each layer; raises what `BlockOutput.write` does."""
        for output in self._outputs:
            output.write(job, rows[output.layer])

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


def name_rows(task: str, split: str, rows: np.ndarray) -> str:
    """Return where rows are, the first ten of them by their numbers within the split."""
    listed = ", ".join(map(str, rows[:10].tolist()))
    more = f" and {len(rows) - 10} more" if len(rows) > 10 else ""
    return f"task {task}, {split}, row {listed}{more} (counted from 0 within the split)"

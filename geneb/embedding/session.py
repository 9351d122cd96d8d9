"""One process's hold on a store while it embeds: opening, task by task, and the end."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from geneb.base.progress import Progress
from geneb.benchmark.spec import load_spec
from geneb.embedding.agreement import (
    check_begun,
    check_complete,
    class_warnings,
    is_begun,
    is_complete,
)
from geneb.embedding.blocks import TaskWorker
from geneb.embedding.canary import check_drift, check_sequences, tolerance
from geneb.embedding.engine import Engine
from geneb.embedding.executors import run_serial
from geneb.embedding.plan import BlockJob, TaskPlan, plan_tasks
from geneb.embedding.record import EmbedSummary, RunClock, run_record
from geneb.errors import InputError, WorkError
from geneb.stores.model import Root, RunRecord
from geneb.stores.reader import Store
from geneb.stores.zarr_store import Writer, create_store
from geneb.tasks.read import Split, SplitRows, Task, TaskRows, read_task


class _Stopped(Exception):  # noqa: N818 - not an error
    """Raised to leave a run that was asked to stop."""


@dataclass(frozen=True)
class TaskInput:
    """A task that is to be embedded: its CSV, and what was found in it."""

    path: Path
    rows: TaskRows

    @property
    def id(self) -> str:
        """The task's id."""
        return self.rows.id

    def read(self) -> Task:
        """Read the sequences.

        Raises
        ------
        WorkError
            If its rows, labels or classes are not what they were when it was scanned.
        """
        task = read_task(self.path, list(self.rows.splits))
        same = task.classes == self.rows.classes and all(
            _same_rows(task.splits[split], entry) for split, entry in self.rows.splits.items()
        )
        if not same:
            raise WorkError(
                "this file changed while the run was under way",
                where=str(self.path),
                fix="embed again once nothing writes to it",
            )
        return task


def _same_rows(read: Split, scanned: SplitRows) -> bool:
    if read.labels is None or scanned.labels is None:
        same_labels = read.labels is scanned.labels
    else:
        same_labels = np.array_equal(read.labels, scanned.labels)
    return same_labels and np.array_equal(read.row_ids, scanned.row_ids)


class Session:
    """One process's embedding run on one store.

    Parameters
    ----------
    writer
        The store, entered for the length of the session.
    engine
        Embeds; its token budget becomes that of the store.
    summary
        Filled in as the run goes on.
    clock, options
        For the run's record.
    progress, stop
        Told how far the run is; asked before each task and for each block, whether it is
        computed or was found, whether it shall stop.
    """

    def __init__(
        self,
        writer: Writer,
        engine: Engine,
        summary: EmbedSummary,
        *,
        clock: RunClock,
        options: Mapping[str, Any],
        progress: Progress,
        stop: Callable[[], bool],
    ) -> None:
        self.summary = summary
        self._writer = writer
        self._engine = engine
        self._clock = clock
        self._options = options
        self._progress = progress
        self._stop = stop
        self._recorded = False
        self._to_replace: dict[str, tuple[int, int] | None] = {}

    def open(self, root: Root, canary: np.ndarray, batch_tokens: int | None) -> None:
        """Create the store, or compare the one that is there with what would be created.

        Raises
        ------
        FingerprintError
            If it holds another kind of embedding.
        InputError
            If it has another name or token budget.
        DriftError
            If the model's vectors are no longer those of the canary.
        """
        self._recorded = create_store(self._writer.path, root, canary, self._record(None))
        store = self._writer.open(root.fingerprint)
        if self._recorded:
            return
        if store.model_id != root.model.id:
            raise InputError(
                "this store belongs to a model of another name",
                where=str(store.path),
                expected=store.model_id,
                found=root.model.id,
                fix="name another --store, or the same model",
            )
        budget = store.root.token_budget
        if batch_tokens not in (None, budget):
            raise InputError(
                "the token budget is fixed when a store is created",
                where=str(store.path),
                expected=f"--batch-tokens {budget}, or none",
                found=f"--batch-tokens {batch_tokens}",
                fix="leave --batch-tokens out, or name another --store",
            )
        self._engine.token_budget = budget
        check_sequences(store)
        allowed = tolerance(root.fingerprint.compute_dtype, root.fingerprint.store_dtype)
        check_drift(canary, store.canary(), allowed, str(store.path))

    def embed_tasks(self, tasks: Sequence[TaskInput], replace: Collection[str]) -> None:
        """Embed what is not complete, task by task, until done or stopped.

        A task to be replaced is dropped once its turn has come, unless it is the beginning of
        just what is wanted, or another process has replaced it since this one was planned.

        Raises
        ------
        StoreError
            Before anything is written, if a task of the store does not agree with its CSV.
        WorkError
            If the model breaks its contract; complete tasks stay complete.
        """
        self._to_replace = {name: self._writer.stamp(name) for name in replace}
        plans = self._plan([task.rows for task in tasks], replace)
        if not plans:
            return
        inputs = {task.id: task for task in tasks}
        self._writer.unseal()
        try:
            self._announce(plans)
            for plan in plans:
                self._embed_task(plan, inputs[plan.rows.id])
        except _Stopped:
            self.summary.stopped = True
        finally:
            self._progress.finish()

    def finish(self) -> None:
        """Complete the run's record, and seal the store if nothing is open in it."""
        summary = self.summary
        if self._recorded:
            self._writer.record_run(self._record("stopped" if summary.stopped else "finished"))
        summary.unsealed = "the run was stopped" if summary.stopped else self._writer.seal()
        summary.seconds = self._clock.seconds

    def _plan(self, scanned: Sequence[TaskRows], replace: Collection[str]) -> list[TaskPlan]:
        """Compare the store with the CSVs, and plan what it lacks."""
        store = self._writer.store
        complete = [name for name in store.task_ids() if name not in replace]
        begun = [name for name in store.incomplete() if name not in replace]
        for rows in scanned:
            self.summary.warnings += class_warnings(rows)
            if rows.id in complete:
                check_complete(store, rows)
                self.summary.complete.append(rows.id)
            elif rows.id in begun:
                check_begun(store, rows)
        ahead = [rows for rows in scanned if rows.id not in complete]
        return plan_tasks(ahead, _stored_row_ids(store, complete), store.fingerprint.dim)

    def _announce(self, plans: Sequence[TaskPlan]) -> None:
        fingerprint = self._writer.fingerprint
        jobs = [job for plan in plans for job in plan.jobs]
        rows = sum(job.last - job.first for job in jobs)
        copied = rows - sum(len(job.compute) for job in jobs)
        itemsize = 4 if fingerprint.store_dtype == "float32" else 2
        size = rows * fingerprint.dim * itemsize
        self._progress.say(
            f"{len(plans)} tasks, {rows:,} rows ({copied:,} of them copies), "
            f"{len(jobs):,} blocks, {size / 1e6:,.1f} MB"
        )
        self._progress.start(rows, "rows")

    def _embed_task(self, plan: TaskPlan, task: TaskInput) -> None:
        """Hold the task's claim, and embed it unless another process has done so meanwhile."""
        self._leave_if_stopped()
        with self._writer.claim(task.id, self._waiting_for(task.id)):
            if task.id in self._to_replace:
                self._drop_unless_replaced(plan.rows)
            store = self._writer.store
            if store.manifest(task.id) is not None:
                check_complete(store, plan.rows)
                self.summary.complete.append(task.id)
                self._progress.advance(sum(job.last - job.first for job in plan.jobs), task.id)
                return
            self._embed_claimed(plan, task)

    def _drop_unless_replaced(self, rows: TaskRows) -> None:
        """Drop a task that is to be replaced; called by the holder of its claim."""
        writer = self._writer
        store = writer.store
        unchanged = writer.stamp(rows.id) == self._to_replace[rows.id]
        replaced = not unchanged and is_complete(store, rows.id)
        if not replaced and not is_begun(store, rows):
            writer.drop_task(rows.id)

    def _waiting_for(self, name: str) -> Callable[[], None]:
        """Return what a claim calls again and again while another process holds it."""
        said = False

        def waiting() -> None:
            nonlocal said
            self._leave_if_stopped()
            if not said:
                self._progress.say(f"{name}: another process is at it; waiting until it is done")
            said = True

        return waiting

    def _leave_if_stopped(self) -> None:
        if self._stop():
            raise _Stopped

    def _embed_claimed(self, plan: TaskPlan, task: TaskInput) -> None:
        writer = self._writer
        if not self._recorded:
            writer.record_run(self._record(None))
            self._recorded = True
        splits = plan.rows.splits
        writer.create_task(
            task.id, {name: (entry.row_ids, entry.labels) for name, entry in splits.items()}
        )
        check_begun(writer.store, plan.rows)
        content = task.read()
        worker = TaskWorker(self._engine, writer, content)
        todo = self._jobs_left(plan, worker)
        if not run_serial(todo, worker, stop=self._stop, done=self._block_written):
            raise _Stopped
        # Of the scan, as the labels that were stored are: the file may have changed since.
        classes = list(plan.rows.classes) or None
        writer.commit_task(task.id, worker.counts(plan), classes, plan.rows.left_out)
        self.summary.embedded.append(task.id)

    def _jobs_left(self, plan: TaskPlan, worker: TaskWorker) -> list[BlockJob]:
        """Return the jobs whose blocks are missing or damaged."""
        left = []
        for job in plan.jobs:
            if worker.intact(job):
                self._leave_if_stopped()
                worker.prepare(job)  # a manifest's counts need every block's items
                self._progress.advance(job.last - job.first, job.task)
            else:
                left.append(job)
        return left

    def _block_written(self, job: BlockJob) -> None:
        computed = len(job.compute)
        self.summary.blocks += 1
        self.summary.rows_computed += computed
        self.summary.rows_copied += job.last - job.first - computed
        self._progress.advance(job.last - job.first, job.task)

    def _record(self, outcome: str | None) -> RunRecord:
        self.summary.tokens = self._engine.tokens
        self.summary.out_of_memory_splits = self._engine.out_of_memory_splits
        return run_record(self.summary, self._clock, self._options, outcome)


def _stored_row_ids(store: Store, complete: Sequence[str]) -> dict[tuple[str, str], np.ndarray]:
    """Return the row ids of complete tasks: official ones first, in the benchmark's order."""
    position = {name: number for number, name in enumerate(load_spec().task_ids)}
    ordered = sorted(complete, key=lambda name: (position.get(name, len(position)), name))
    found = {}
    for name in ordered:
        task = store.task(name)
        for split in task.splits:
            found[name, split] = task.row_ids(split)
    return found

"""One process's hold on its stores while it embeds: opening, task by task, and the end."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from geneb.base.progress import Progress
from geneb.benchmark.spec import load_spec
from geneb.embedding.agreement import class_warnings
from geneb.embedding.blocks import TaskWorker
from geneb.embedding.engine import Engine
from geneb.embedding.executors import run_serial
from geneb.embedding.plan import BlockJob, TaskPlan, plan_tasks
from geneb.embedding.record import EmbedSummary, RunClock, run_record
from geneb.embedding.targets import Target
from geneb.errors import GenebError, WorkError
from geneb.stores.model import RunRecord
from geneb.stores.reader import Store
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
    """One process's embedding run on one store, or on one store for each layer.

    Several stores are kept in step: a task is done once it is complete in all of them, and one
    pass through the model fills the blocks of those that lack it.

    Parameters
    ----------
    targets
        The stores, entered for the length of the session; of vectors of one width.
    engine
        Embeds; its token budget becomes that of the stores.
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
        targets: Sequence[Target],
        engine: Engine,
        summary: EmbedSummary,
        *,
        clock: RunClock,
        options: Mapping[str, Any],
        progress: Progress,
        stop: Callable[[], bool],
    ) -> None:
        self.summary = summary
        self._targets = targets
        self._engine = engine
        self._clock = clock
        self._options = options
        self._progress = progress
        self._stop = stop
        self._troubles = _troubles(engine)

    def open(self, batch_tokens: int | None) -> None:
        """Create the stores, or compare those that are there with what would be created.

        Raises
        ------
        FingerprintError, InputError, DriftError
            See `Target.open`.
        """
        asked = batch_tokens
        # Those that are there first: their token budget is that of whatever is created beside.
        for target in sorted(self._targets, key=lambda target: not target.path.exists()):
            budget = target.open(self._record(None), self._engine.token_budget, asked)
            asked = self._engine.token_budget = budget

    def embed_tasks(self, tasks: Sequence[TaskInput], replace: Collection[str]) -> None:
        """Embed what is not complete, task by task, until done or stopped.

        A task to be replaced is dropped once its turn has come, unless it is the beginning of
        just what is wanted, or another process has replaced it since this one was planned.

        Raises
        ------
        StoreError
            Before anything is written, if a task of a store does not agree with its CSV.
        WorkError
            If the model breaks its contract; complete tasks stay complete.
        """
        for target in self._targets:
            target.stamp(replace)
        plans = self._plan([task.rows for task in tasks], replace)
        if not plans:
            return
        inputs = {task.id: task for task in tasks}
        for target in self._targets:
            target.writer.unseal()
        try:
            self._announce(plans)
            for plan in plans:
                self._embed_task(plan, inputs[plan.rows.id])
        except _Stopped:
            self.summary.stopped = True
        except Exception:
            self._record_failure()
            raise
        finally:
            self._progress.finish()

    def finish(self) -> None:
        """Complete the run's records, and seal each store if nothing is open in it."""
        summary = self.summary
        record = self._record("stopped" if summary.stopped else "finished")
        reasons = []
        for target in self._targets:
            if target.recorded:
                target.writer.record_run(record)
            reasons.append("the run was stopped" if summary.stopped else target.writer.seal())
        summary.unsealed = next(filter(None, reasons), None)
        summary.seconds = self._clock.seconds

    def _plan(self, scanned: Sequence[TaskRows], replace: Collection[str]) -> list[TaskPlan]:
        """Compare the stores with the CSVs, and plan what any of them lacks."""
        complete = set.intersection(
            *(target.check_agreement(scanned, replace) for target in self._targets)
        )
        for rows in scanned:
            self.summary.warnings += class_warnings(rows)
        self.summary.complete += [rows.id for rows in scanned if rows.id in complete]
        ahead = [rows for rows in scanned if rows.id not in complete]
        store = self._targets[0].store
        return plan_tasks(
            ahead,
            _stored_row_ids(store, complete),
            store.fingerprint.dim,
            copying=self._engine.extractor.batching != "file-order",
        )

    def _announce(self, plans: Sequence[TaskPlan]) -> None:
        fingerprint = self._targets[0].writer.fingerprint
        jobs = [job for plan in plans for job in plan.jobs]
        rows = sum(job.last - job.first for job in jobs)
        copied = rows - sum(len(job.compute) for job in jobs)
        itemsize = 4 if fingerprint.store_dtype == "float32" else 2
        size = rows * fingerprint.dim * itemsize * len(self._targets)
        layers = f"{len(self._targets)} layers, " if len(self._targets) > 1 else ""
        self._progress.say(
            f"{layers}{len(plans)} tasks, {rows:,} rows ({copied:,} of them copies), "
            f"{len(jobs):,} blocks, {size / 1e6:,.1f} MB"
        )
        self._progress.start(rows, "rows")

    def _embed_task(self, plan: TaskPlan, task: TaskInput) -> None:
        """Hold the task's claims, and embed it where no other process has done so meanwhile."""
        self._leave_if_stopped()
        with contextlib.ExitStack() as claims:
            waiting = self._waiting_for(task.id)
            # In one order in every process, so that no two wait for each other.
            for target in self._targets:
                claims.enter_context(target.writer.claim(task.id, waiting))
                target.drop_unless_replaced(plan.rows)
            lacking = [target for target in self._targets if not target.holds(plan.rows)]
            if lacking:
                self._embed_claimed(plan, task, lacking)
            else:
                self.summary.complete.append(task.id)
                self._progress.advance(sum(job.last - job.first for job in plan.jobs), task.id)

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

    def _embed_claimed(self, plan: TaskPlan, task: TaskInput, targets: Sequence[Target]) -> None:
        for target in targets:
            if not target.recorded:
                target.writer.record_run(self._record(None))
                target.recorded = True
            target.begin(plan.rows)
        content = task.read()
        worker = TaskWorker(self._engine, [target.output(content) for target in targets], content)
        todo = self._jobs_left(plan, worker)
        ended = run_serial(
            todo,
            worker,
            stop=self._stop,
            computed=self._record_troubles,
            done=self._block_written,
        )
        if not ended:
            raise _Stopped
        counts = worker.counts(plan)
        # Of the scan, as the labels that were stored are: the file may have changed since.
        classes = list(plan.rows.classes) or None
        for target in targets:
            target.writer.commit_task(task.id, counts, classes, plan.rows.left_out)
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

    def _record_troubles(self) -> None:
        """Record halved batches and rows run again before their block is there to be kept.

        A run that is killed writes no record at its end, and its blocks stay.
        """
        if (troubles := _troubles(self._engine)) != self._troubles:
            self._troubles = troubles
            for target in self._targets:
                if target.recorded:
                    target.writer.record_run(self._record(None))

    def _record_failure(self) -> None:
        record = self._record("failed")
        for target in self._targets:
            if target.recorded:
                # The error that is under way says more than a disk that is full.
                with contextlib.suppress(OSError, GenebError):
                    target.writer.record_run(record)

    def _record(self, outcome: str | None) -> RunRecord:
        engine, summary = self._engine, self.summary
        summary.tokens = engine.tokens
        summary.out_of_memory_splits = engine.out_of_memory_splits
        summary.float32_retries = engine.float32_retries
        return run_record(summary, self._clock, self._options, outcome)


def _troubles(engine: Engine) -> tuple[int, int]:
    return engine.out_of_memory_splits, engine.float32_retries


def _stored_row_ids(store: Store, complete: Collection[str]) -> dict[tuple[str, str], np.ndarray]:
    """Return the row ids of complete tasks: official ones first, in the benchmark's order."""
    position = {name: number for number, name in enumerate(load_spec().task_ids)}
    ordered = sorted(complete, key=lambda name: (position.get(name, len(position)), name))
    found = {}
    for name in ordered:
        task = store.task(name)
        for split in task.splits:
            found[name, split] = task.row_ids(split)
    return found

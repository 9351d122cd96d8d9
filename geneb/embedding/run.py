"""``embed``: from a folder of task CSVs to a store, top to bottom."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np

from geneb.base import env
from geneb.base.files import check_name
from geneb.base.progress import Progress, Silent
from geneb.benchmark.spec import Spec, load_spec
from geneb.embedding.batches import DEFAULT_TOKEN_BUDGET
from geneb.embedding.blocks import TaskWorker
from geneb.embedding.canary import canary_digest, check_drift, make_canary, tolerance
from geneb.embedding.engine import Engine
from geneb.embedding.executors import run_serial
from geneb.embedding.plan import BlockJob, TaskPlan, plan_tasks
from geneb.errors import InputError, StoreError
from geneb.extractors.registry import load
from geneb.stores.model import (
    FORMAT,
    VERSION,
    CanaryRef,
    Fingerprint,
    ModelRef,
    Root,
    RunRecord,
)
from geneb.stores.reader import Store, ordered_splits
from geneb.stores.zarr_store import Writer, check_rows, create_store
from geneb.tasks.read import TaskRows, class_report, read_task, scan_task
from geneb.tasks.select import find_task_files

DEFAULT_SPLITS = ("train", "test")


@dataclass
class EmbedSummary:
    """What an embedding run did.

    Attributes
    ----------
    embedded, complete
        Ids of the tasks embedded now, and of those that were complete before.
    rows_computed, rows_copied
        Rows of the blocks written now.
    tokens
        Embedded tokens, padding not counted.
    seconds
        Of the whole run.
    stopped
        Whether it was stopped; the store can be resumed.
    unsealed
        Why the store was not sealed; None once it is.
    """

    store: str
    model: str
    fingerprint: str
    run: str
    dim: int
    embedded: list[str] = field(default_factory=list)
    complete: list[str] = field(default_factory=list)
    blocks: int = 0
    rows_computed: int = 0
    rows_copied: int = 0
    tokens: int = 0
    out_of_memory_splits: int = 0
    seconds: float = 0.0
    stopped: bool = False
    unsealed: str | None = None
    warnings: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return the summary as a JSON value."""
        return asdict(self)


def embed(
    model: str,
    *,
    data: Path | str,
    store: Path | str,
    tasks: Sequence[str] = (),
    splits: Sequence[str] = (),
    available: bool = False,
    replace_tasks: Sequence[str] = (),
    batch_tokens: int | None = None,
    store_dtype: Literal["float32", "float16"] = "float32",
    device: str = "cpu",
    weights: str | None = None,
    model_id: str | None = None,
    progress: Progress | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> EmbedSummary:
    """Write a model's frozen embeddings of tasks into a store, resuming where it stopped.

    Parameters
    ----------
    model
        A model id, or ``path/to/file.py:ClassName`` for an extractor of one's own.
    data
        Folder of task CSVs.
    store
        The store; created where it does not exist.
    tasks
        Ids, labels, categories or globs; all 100 tasks of the benchmark where none are given.
    splits
        Splits of the CSVs to embed besides train and test.
    available
        Take the tasks whose CSVs are there instead of asking for all 100.
    replace_tasks
        Ids of tasks to drop from the store and embed anew.
    batch_tokens
        Padded tokens a batch; of an existing store, it must be what the store was created with.
    store_dtype
        What vectors are stored as.
    device, weights
        Passed to the extractor.
    model_id
        The name under which the store is known; by default the model's id or the class's name.
    progress, stop
        Told how far the run is; asked before each block whether it shall stop.

    Returns
    -------
    EmbedSummary

    Raises
    ------
    InputError, NotFoundError
        Before anything is written, if a CSV, a name or an option is wrong.
    FingerprintError, DriftError
        If the store was made in another way, or by a model that has changed since.
    WorkError
        If the model breaks its contract; what was complete before stays complete.
    """
    began = time.monotonic()
    progress = progress or Silent()
    wanted = ordered_splits({*DEFAULT_SPLITS, *splits})
    files = find_task_files(Path(data), list(tasks), load_spec(), available=available)
    scanned = [scan_task(path, wanted) for path in files]
    _check_replacements(replace_tasks, scanned)
    loaded = load(model, device=device, weights=weights)
    engine = Engine(loaded.extractor, batch_tokens or DEFAULT_TOKEN_BUDGET)
    canary = make_canary(engine)
    engine.tokens = 0  # the canary's do not count
    fingerprint = _fingerprint(engine, canary.shape[1], store_dtype)
    run = _Run(
        writer=Writer(Path(store)),
        engine=engine,
        fingerprint=fingerprint,
        model=_model_ref(model_id or loaded.model_id),
        options={
            "model": Path(model).name,
            "tasks": list(tasks),
            "splits": wanted,
            "available": available,
            "replace_tasks": list(replace_tasks),
            "batch_tokens": batch_tokens,
            "store_dtype": store_dtype,
            "device": device,
            "weights": weights and Path(weights).name,
        },
        progress=progress,
        stop=stop,
    )
    with run.writer:
        run.open(canary, batch_tokens)
        paths = {rows.id: path for path, rows in zip(files, scanned, strict=True)}
        run.embed_tasks(scanned, paths, frozenset(replace_tasks))
        run.finish(time.monotonic() - began)
    return run.summary


def _check_replacements(names: Sequence[str], scanned: Sequence[TaskRows]) -> None:
    unknown = sorted(set(names) - {rows.id for rows in scanned})
    if unknown:
        raise InputError(
            f"--replace-task names {', '.join(unknown)}, which this run does not embed",
            expected="ids among the run's tasks",
            fix="name the task with --tasks too",
        )


def _fingerprint(
    engine: Engine, dim: int, store_dtype: Literal["float32", "float16"]
) -> Fingerprint:
    extractor = engine.extractor
    description = extractor.describe()
    return Fingerprint(
        extractor=extractor.name,
        numerics_version=extractor.numerics_version,
        parameters=dict(description.parameters),
        weights=description.weights,
        tokenizer=description.tokenizer,
        file=description.file,
        compute_dtype=description.compute_dtype,
        matmul_precision=description.matmul_precision,
        store_dtype=store_dtype,
        dim=dim,
    )


def _model_ref(model_id: str) -> ModelRef:
    return ModelRef(
        id=check_name(model_id, "model"), display=model_id, params=None, licence=None, source=None
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class _Run:
    """One process's embedding run: what it holds, and its steps in order."""

    def __init__(
        self,
        *,
        writer: Writer,
        engine: Engine,
        fingerprint: Fingerprint,
        model: ModelRef,
        options: Mapping[str, Any],
        progress: Progress,
        stop: Callable[[], bool],
    ) -> None:
        self.writer = writer
        self._engine = engine
        self._fingerprint = fingerprint
        self._model = model
        self._options = dict(options)
        self._progress = progress
        self._stop = stop
        self._started = _now()
        self._recorded = False
        self.summary = EmbedSummary(
            store=str(writer.path),
            model=model.id,
            fingerprint=fingerprint.id,
            run=secrets.token_hex(8),
            dim=fingerprint.dim,
        )

    def open(self, canary: np.ndarray, batch_tokens: int | None) -> None:
        """Create the store or open what is there, and compare fingerprint and canary."""
        path, record = self.writer.path, self._run_record()
        self._recorded = create_store(path, self._root(load_spec()), canary, record)
        store = self.writer.open(self._fingerprint)
        if self._recorded:
            return
        if store.model_id != self._model.id:
            raise InputError(
                "this store belongs to a model of another name",
                where=str(store.path),
                expected=store.model_id,
                found=self._model.id,
                fix="name another --store",
            )
        budget = store.root.token_budget
        if batch_tokens not in (None, budget):
            raise InputError(
                "the token budget is fixed when a store is created",
                where=str(store.path),
                expected=f"--batch-tokens {budget}, or none",
                found=f"--batch-tokens {batch_tokens}",
            )
        self._engine.token_budget = budget
        allowed = tolerance(self._fingerprint.compute_dtype, self._fingerprint.store_dtype)
        check_drift(canary, store.canary(), allowed, str(store.path))

    def _root(self, spec: Spec) -> Root:
        return Root(
            format=FORMAT,
            version=VERSION,
            fingerprint_id=self._fingerprint.id,
            fingerprint=self._fingerprint,
            model=self._model,
            canary=CanaryRef(sequences_sha256=canary_digest()),
            token_budget=self._engine.token_budget,
            dataset={
                "repository": spec.data.repo,
                "revision": spec.data.revision,
                "compared": False,
            },
            created_by=self.summary.run,
            seal=None,
        )

    def embed_tasks(
        self, scanned: Sequence[TaskRows], paths: Mapping[str, Path], replace: frozenset[str]
    ) -> None:
        """Embed what is not complete, task by task."""
        store = self.writer.store
        complete = [name for name in store.task_ids() if name not in replace]
        for rows in scanned:
            self.summary.warnings += _class_warnings(rows)
            if rows.id in complete:
                _check_complete(store, rows)
                self.summary.complete.append(rows.id)
        ahead = [rows for rows in scanned if rows.id not in complete]
        plans = plan_tasks(ahead, _stored_row_ids(store, complete), self._fingerprint.dim)
        if plans:
            self._announce(plans)
            self.writer.unseal()
        for plan in plans:
            if not self._embed_task(plan, paths[plan.rows.id], replace=plan.rows.id in replace):
                self.summary.stopped = True
                break
        self._progress.finish()

    def _announce(self, plans: Sequence[TaskPlan]) -> None:
        jobs = [job for plan in plans for job in plan.jobs]
        rows = sum(job.last - job.first for job in jobs)
        copied = rows - sum(len(job.compute) for job in jobs)
        itemsize = 4 if self._fingerprint.store_dtype == "float32" else 2
        size = rows * self._fingerprint.dim * itemsize
        self._progress.say(
            f"{len(plans)} tasks, {rows:,} rows ({copied:,} of them copies), "
            f"{len(jobs):,} blocks, {size / 1e6:,.1f} MB"
        )
        self._progress.start(rows, "rows")

    def _embed_task(self, plan: TaskPlan, path: Path, *, replace: bool) -> bool:
        name = plan.rows.id

        def waiting() -> None:
            self._progress.say(f"{name}: another process is at it; waiting until it is done")

        with self.writer.claim(name, waiting):
            if replace:
                self.writer.drop_task(name)
            store = self.writer.store
            if name in store.task_ids():  # another process has been here meanwhile
                _check_complete(store, plan.rows)
                self.summary.complete.append(name)
                self._progress.advance(sum(job.last - job.first for job in plan.jobs), name)
                return True
            return self._embed_claimed(plan, path)

    def _embed_claimed(self, plan: TaskPlan, path: Path) -> bool:
        if not self._recorded:
            self.writer.record_run(self._run_record())
            self._recorded = True
        name, rows = plan.rows.id, plan.rows
        self.writer.create_task(
            name, {split: (entry.row_ids, entry.labels) for split, entry in rows.splits.items()}
        )
        self._check_begun(rows)
        task = read_task(path, list(rows.splits))
        for split, entry in rows.splits.items():
            if not np.array_equal(task.splits[split].row_ids, entry.row_ids):
                raise InputError("this file changed while it was being read", where=str(path))
        worker = TaskWorker(self._engine, self.writer, task)
        todo = []
        for job in plan.jobs:
            if worker.intact(job):
                worker.prepare(job)  # a manifest's counts need every block's items
                self._progress.advance(job.last - job.first, name)
            else:
                todo.append(job)
        if not run_serial(todo, worker, stop=self._stop, done=self._done):
            return False
        classes = list(task.classes) if task.classes else None
        self.writer.commit_task(name, worker.counts(plan), classes, task.left_out)
        self.summary.embedded.append(name)
        return True

    def _check_begun(self, rows: TaskRows) -> None:
        """Compare a task that an earlier run began with what is about to be embedded."""
        store = self.writer.store
        where = f"{store.path}, task {rows.id}"
        begun = store.files.names(f"tasks/{rows.id}")
        if sorted(rows.splits) != begun:
            raise StoreError(
                "this task was begun with other splits",
                where=where,
                expected=", ".join(ordered_splits(begun)),
                found=", ".join(rows.splits),
                fix="give the same --splits, or start the task anew with --replace-task",
            )
        for split, entry in rows.splits.items():
            arrays = self.writer.split_arrays(rows.id, split)
            check_rows(arrays, entry.row_ids, entry.labels, f"{where}, {split}")

    def _done(self, job: BlockJob) -> None:
        computed = len(job.compute)
        self.summary.blocks += 1
        self.summary.rows_computed += computed
        self.summary.rows_copied += job.last - job.first - computed
        self._progress.advance(job.last - job.first, job.task)

    def finish(self, seconds: float) -> None:
        """Complete the run's record and seal the store if nothing is open in it."""
        summary = self.summary
        summary.tokens = self._engine.tokens
        summary.out_of_memory_splits = self._engine.out_of_memory_splits
        summary.seconds = round(seconds, 3)
        if self._recorded:
            outcome = "stopped" if summary.stopped else "finished"
            self.writer.record_run(self._run_record(outcome))
        summary.unsealed = "the run was stopped" if summary.stopped else self.writer.seal()

    def _run_record(self, outcome: str | None = None) -> RunRecord:
        summary = self.summary
        return RunRecord(
            run=summary.run,
            started=self._started,
            ended=_now() if outcome else None,
            outcome=outcome,
            options=self._options,
            versions=env.versions(),
            platform={
                "processor": env.processor(),
                "cores": env.cores(),
                "blas": env.blas(),
                "device": self._options["device"],
            },
            blocks=summary.blocks,
            rows_computed=summary.rows_computed,
            rows_copied=summary.rows_copied,
            tokens=summary.tokens,
            seconds=summary.seconds if outcome else None,
            out_of_memory_splits=summary.out_of_memory_splits,
        )


def _stored_row_ids(store: Store, complete: Sequence[str]) -> dict[tuple[str, str], np.ndarray]:
    """Return the row ids of complete tasks: official ones first, in the benchmark's order."""
    position = {task.id: number for number, task in enumerate(load_spec().tasks)}
    ordered = sorted(complete, key=lambda name: (position.get(name, len(position)), name))
    found = {}
    for name in ordered:
        task = store.task(name)
        for split in task.splits:
            found[name, split] = task.row_ids(split)
    return found


def _check_complete(store: Store, rows: TaskRows) -> None:
    """Compare a complete task with its CSV, so that a changed CSV never goes unnoticed."""
    task = store.task(rows.id)
    where = f"{store.path}, task {rows.id}"
    if missing := [split for split in rows.splits if split not in task.splits]:
        raise StoreError(
            f"the stored task lacks the split {', '.join(missing)}",
            where=where,
            fix="embed it anew with --replace-task",
        )
    for split, entry in rows.splits.items():
        check_rows(task.arrays(split), entry.row_ids, entry.labels, f"{where}, {split}")
    stored = tuple(task.classes or ())
    if stored != rows.classes:
        raise StoreError(
            "the CSV's classes are not those in the store",
            where=where,
            expected=", ".join(stored)[:200],
            found=", ".join(rows.classes)[:200],
            fix="embed the CSV that the store was made from, or --replace-task",
        )


def _class_warnings(rows: TaskRows) -> list[str]:
    if not rows.classes:
        return []
    report = class_report(rows)
    found = (("train", report.only_in_train), ("test", report.only_in_test))
    return [
        f"{rows.id}: class {', '.join(classes)} is only in {split}"
        for split, classes in found
        if classes
    ]

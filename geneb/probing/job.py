"""The probe of one store: which fits are missing, making them, writing them down."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from geneb.base import env
from geneb.base.progress import Progress
from geneb.errors import Fault, GenebError, WorkError
from geneb.probing.backends import Backend
from geneb.probing.fit import TaskArrays, probe_task
from geneb.probing.folder import check_folder, open_for_writing
from geneb.probing.protocol import Protocol
from geneb.results import (
    Fit,
    Origin,
    ResultsFolder,
    RunInfo,
    TaskResults,
    complete_regimes,
)
from geneb.stores import Store

_KEY_PACKAGES = ("scikit-learn", "scipy", "numpy")


@dataclass(frozen=True)
class StoreOutcome:
    """What came of one store.

    Attributes
    ----------
    info
        The run key and environment of its results.
    results
        The selected tasks that are done, in order: the regimes asked for, whether fitted now or
        kept from an earlier run.
    failures
        Tasks that could not be probed, and why.
    folder
        Where the results lie; None where they are only returned.
    """

    info: RunInfo
    results: list[TaskResults]
    failures: list[Fault]
    folder: Path | None

    @property
    def fits(self) -> list[Fit]:
        """All fits of all tasks."""
        return [fit for task in self.results for fit in task.fits]


def describe_run(store: Store, protocol: Protocol, backend: Backend) -> RunInfo:
    """Return the run key and environment of results made of a store here and now."""
    threads = env.blas()
    return RunInfo(
        model_id=store.model_id,
        store_fingerprint=store.fingerprint_id,
        protocol=protocol.id,
        seeds=list(protocol.seeds),
        probe=protocol.probe.describe(),
        backend=backend.name,
        versions={name: env.version(name) or "unknown" for name in _KEY_PACKAGES},
        blas=[row for row in threads if row.get("user_api") == "blas"],
        regimes=[regime.name for regime in protocol.regimes],
        environment={
            "versions": env.versions(),
            "processor": env.processor(),
            "cores": env.cores(),
            "threads": threads,
            "cuml_accel": env.cuml_accel_active(),
        },
    )


class StoreJob:
    """The probe of one store.

    Parameters
    ----------
    store, task_ids
        What is probed, in the order in which it is done.
    out
        Folder for the results; None to write nothing.

    Raises
    ------
    InputError
        If ``out`` holds results of this model that were made otherwise; see `check_folder`.
    """

    def __init__(
        self,
        store: Store,
        task_ids: Sequence[str],
        protocol: Protocol,
        backend: Backend,
        out: Path | None,
        progress: Progress,
    ) -> None:
        self._store = store
        self._task_ids = task_ids
        self._protocol = protocol
        self._backend = backend
        self._progress = progress
        self._info = describe_run(store, protocol, backend)
        self._out = out
        self._folder: ResultsFolder | None = None
        self._kept: dict[str, dict[str, list[Fit]]] = {}
        if out is not None:
            check_folder(out, self._info, task_ids)

    def open(self) -> None:
        """Open the results folder and look at what is done already; before all else.

        Raises
        ------
        InputError
            If nothing can be written there.
        """
        if self._out is not None:
            self._folder, note = open_for_writing(self._out, self._info, self._task_ids)
            if note:
                self._progress.say(note)
        self._kept = {task_id: self._read_kept(task_id) for task_id in self._task_ids}

    def fits_ahead(self) -> int:
        """Return the number of fits that `run` makes if no task fails."""
        return sum(self._missing(task_id).fits for task_id in self._task_ids)

    def run(self) -> StoreOutcome:
        """Probe every task that is not done; one that fails does not stop the others."""
        results, failures = [], []
        try:
            for task_id in self._task_ids:
                try:
                    with self._failing_alone(task_id):
                        results.append(self._probe(task_id))
                except GenebError as error:
                    failures.append(_fault(error, f"{self._store.path}, task {task_id}"))
                    self._progress.say(f"{task_id} failed: {error.problem}")
        finally:
            # Also of a run that was interrupted: what is done shows.
            if self._folder is not None:
                try:
                    self._folder.write_summary()
                except GenebError as error:
                    failures.append(_fault(error, str(self._folder.path)))
        folder = self._folder.path if self._folder else None
        return StoreOutcome(self._info, results, failures, folder)

    @contextlib.contextmanager
    def _failing_alone(self, task_id: str) -> Iterator[None]:
        """Make what one task's numbers or size can raise a failure of that task."""
        again = f"`geneb probe {self._store.path} --tasks {task_id}`"
        try:
            yield
        except GenebError:
            raise
        except MemoryError as error:
            raise WorkError(
                "there was not enough memory to fit this task",
                where=f"{self._store.path}, task {task_id}",
                found=str(error) or "memory ran out",
                fix=f"free memory or take a larger machine, then {again}",
            ) from error
        except (ValueError, ArithmeticError) as error:
            raise WorkError(
                "this task could not be fitted",
                where=f"{self._store.path}, task {task_id}",
                found=f"{type(error).__name__}: {error}",
                fix=f"check its embeddings with `geneb store verify {self._store.path}`, "
                f"then {again}",
            ) from error

    def _read_kept(self, task_id: str) -> dict[str, list[Fit]]:
        """Return the fits of each regime that an earlier run has left complete."""
        if self._folder is None or not self._folder.task_path(task_id).exists():
            return {}
        try:
            results = self._folder.read_task(task_id)
            if results.origin != self._origin(task_id):
                return {}
        except GenebError as error:
            self._progress.say(f"{task_id} is probed again: {error.where}: {error.problem}")
            return {}
        return complete_regimes(results, self._info.seeds)

    def _origin(self, task_id: str) -> Origin:
        return Origin(
            model=self._info.model_id,
            store_fingerprint=self._info.store_fingerprint,
            embeddings_digest=self._store.task(task_id).manifest.digest,
            task=task_id,
            backend=self._info.backend,
            protocol=self._info.protocol,
            run_key=self._info.key,
        )

    def _missing(self, task_id: str) -> Protocol:
        """Return the protocol narrowed to the regimes that this task still lacks."""
        return self._protocol.without(self._kept[task_id])

    def _probe(self, task_id: str) -> TaskResults:
        """Return a task's results: what was kept, and what was missing."""
        origin = self._origin(task_id)
        done = dict(self._kept[task_id])
        missing = self._missing(task_id)
        if missing.regimes:
            if self._folder and not done:
                # Results of other embeddings must not outlive a task that fails now.
                self._folder.remove_task(task_id)
            for fit in self._fit(task_id, missing):
                done.setdefault(fit.regime, []).append(fit)
            if self._folder:
                self._folder.write_task(TaskResults.join(origin, done))
        asked = {one.name: done[one.name] for one in self._protocol.regimes}
        return TaskResults.join(origin, asked)

    def _fit(self, task_id: str, protocol: Protocol) -> list[Fit]:
        # The arrays live only as long as this call: one task is in memory at a time.
        task = self._store.task(task_id)
        arrays = TaskArrays(
            train=task.embeddings("train"),
            train_labels=task.labels("train"),
            train_row_ids=task.row_ids("train"),
            test=task.embeddings("test"),
            test_labels=task.labels("test"),
            test_row_ids=task.row_ids("test"),
        )
        outcomes = probe_task(
            arrays,
            protocol,
            self._backend,
            fitted=lambda regime: self._progress.advance(1, f"{task_id}, {regime.name}"),
        )
        return [outcome.fit for outcome in outcomes]


def _fault(error: GenebError, where: str) -> Fault:
    return Fault(error.where or where, error.problem, error.expected, error.found, error.fix)

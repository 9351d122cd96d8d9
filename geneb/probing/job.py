"""The results of one store's probe: what is missing, writing it down, what failed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from geneb.base import env
from geneb.base.progress import Progress
from geneb.errors import Fault, GenebError, WorkError
from geneb.probing.backends import Backend
from geneb.probing.fit import Outcome
from geneb.probing.folder import check_folder, open_for_writing
from geneb.probing.protocol import Protocol
from geneb.probing.schedule import Work
from geneb.results import (
    Fit,
    Origin,
    ResultsFolder,
    RunInfo,
    TaskResults,
    complete_regimes,
)
from geneb.stores import Store


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


def describe_run(
    store: Store, protocol: Protocol, backend: Backend, threads: list[dict[str, Any]]
) -> RunInfo:
    """Return the run key and environment of results made of a store here and now.

    Parameters
    ----------
    threads
        What `geneb.base.env.blas` says in the processes that fit.
    """
    return RunInfo(
        model_id=store.model_id,
        store_fingerprint=store.fingerprint_id,
        protocol=protocol.id,
        seeds=list(protocol.seeds),
        probe=protocol.probe.describe(),
        backend=backend.name,
        versions={name: env.version(name) or "unknown" for name in backend.packages},
        blas=[row for row in threads if row.get("user_api") == "blas"],
        regimes=[regime.name for regime in protocol.regimes],
        environment={
            "versions": env.versions(),
            "processor": env.processor(),
            "device": backend.device,
            "cores": env.cores(),
            "threads": threads,
            "cuml_accel": env.cuml_accel_active(),
        },
    )


class StoreJob:
    """The probe of one store, without the fits themselves.

    Parameters
    ----------
    place
        Of this store among those that are probed.
    store, task_ids
        What is probed, in the order in which it is reported.
    threads
        See `describe_run`.
    out
        Folder for the results; None to write nothing.

    Attributes
    ----------
    store : Store

    Raises
    ------
    InputError
        If ``out`` holds results of this model that were made otherwise; see `check_folder`.
    """

    def __init__(
        self,
        place: int,
        store: Store,
        task_ids: Sequence[str],
        protocol: Protocol,
        backend: Backend,
        threads: list[dict[str, Any]],
        out: Path | None,
        progress: Progress,
    ) -> None:
        self.store = store
        self._place = place
        self._task_ids = task_ids
        self._protocol = protocol
        self._progress = progress
        self._info = describe_run(store, protocol, backend, threads)
        self._out = out
        self._folder: ResultsFolder | None = None
        self._kept: dict[str, dict[str, list[Fit]]] = {}
        self._results: dict[str, TaskResults] = {}
        self._failures: dict[str, Fault] = {}
        if out is not None:
            check_folder(out, self._info, task_ids)

    def open(self) -> list[Work]:
        """Open the results folder, and return what is not done already; before all else.

        Raises
        ------
        InputError
            If nothing can be written there.
        """
        if self._out is not None:
            self._folder, note = open_for_writing(self._out, self._info, self._task_ids)
            if note:
                self._progress.say(note)
        works = []
        for task_id in self._task_ids:
            self._kept[task_id] = self._read_kept(task_id)
            missing = self._protocol.without(self._kept[task_id])
            try:
                if missing.regimes:
                    works.append(self._describe_work(task_id, missing))
                else:
                    self._keep(task_id, {})
            except GenebError as error:
                self.fail(task_id, error)
        return works

    def fitted(self, task_id: str, regime: str) -> None:
        """Tell that one fit was made."""
        self._progress.advance(1, f"{task_id}, {regime}")

    def record(self, task_id: str, outcomes: Sequence[Outcome]) -> None:
        """Write a task's results down, beside those that an earlier run left complete."""
        new: dict[str, list[Fit]] = {}
        for outcome in outcomes:
            new.setdefault(outcome.fit.regime, []).append(outcome.fit)
        try:
            with failing_alone(self.store.path, task_id):
                results = self._keep(task_id, new)
                if self._folder:
                    self._folder.write_task(results)
        except GenebError as error:
            self.fail(task_id, error)

    def fail(self, task_id: str, error: GenebError) -> None:
        """Note that a task could not be probed; results of other embeddings do not outlive it."""
        self._results.pop(task_id, None)
        self._failures[task_id] = _fault(error, f"{self.store.path}, task {task_id}")
        self._progress.say(f"{task_id} failed: {error.problem}")
        if self._folder and not self._kept[task_id]:
            with contextlib.suppress(GenebError):  # another run's results are not ours to remove
                self._folder.remove_task(task_id)

    def finish(self) -> StoreOutcome:
        """Write the summary, also of a run that was interrupted, so that what is done shows."""
        failures = [self._failures[name] for name in self._task_ids if name in self._failures]
        if self._folder is not None:
            try:
                self._folder.write_summary()
            except GenebError as error:
                failures.append(_fault(error, str(self._folder.path)))
        regimes = [regime.name for regime in self._protocol.regimes]
        results = [
            TaskResults.join(done.origin, {name: done.by_regime()[name] for name in regimes})
            for name in self._task_ids
            if (done := self._results.get(name))
        ]
        folder = self._folder.path if self._folder else None
        return StoreOutcome(self._info, results, failures, folder)

    def _describe_work(self, task_id: str, missing: Protocol) -> Work:
        manifest = self.store.task(task_id).manifest
        rows = {split: stated.rows for split, stated in manifest.splits.items()}
        return Work(
            place=self._place,
            task_id=task_id,
            protocol=missing,
            n_train=rows.get("train", 0),  # loading refuses a task without
            n_test=rows.get("test", 0),
            dim=manifest.dim,
            classes=len(manifest.classes or ()),
        )

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
            embeddings_digest=self.store.task(task_id).manifest.digest,
            task=task_id,
            backend=self._info.backend,
            protocol=self._info.protocol,
            run_key=self._info.key,
        )

    def _keep(self, task_id: str, new: dict[str, list[Fit]]) -> TaskResults:
        """Remember what is done of a task: what was kept, and what is new."""
        results = TaskResults.join(self._origin(task_id), {**self._kept[task_id], **new})
        self._results[task_id] = results
        return results


def how_again(path: Path, task_id: str) -> str:
    """Return the command that probes one task again."""
    return f"`geneb probe {path} --tasks {task_id}`"


@contextlib.contextmanager
def failing_alone(path: Path, task_id: str) -> Iterator[None]:
    """Make what one task's numbers or size can raise a failure of that task."""
    try:
        yield
    except MemoryError as error:
        raise WorkError(
            "there was not enough memory to fit this task",
            where=f"{path}, task {task_id}",
            found=str(error) or "memory ran out",
            fix=f"free memory or take a larger machine, then {how_again(path, task_id)}",
        ) from error
    except GenebError:
        raise
    except (ValueError, ArithmeticError) as error:
        raise WorkError(
            "this task could not be fitted",
            where=f"{path}, task {task_id}",
            found=f"{type(error).__name__}: {error}",
            fix=f"check its embeddings with `geneb store verify {path}`, "
            f"then {how_again(path, task_id)}",
        ) from error


def _fault(error: GenebError, where: str) -> Fault:
    return Fault(error.where or where, error.problem, error.expected, error.found, error.fix)

"""Loading and probing tasks one after another, in whichever process this runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from geneb.errors import GenebError
from geneb.probing.backends import Backend
from geneb.probing.fit import Outcome, TaskArrays, probe_task
from geneb.probing.job import StoreJob, failing_alone
from geneb.probing.schedule import Work
from geneb.stores import Store

Loaded = tuple[Work, TaskArrays | GenebError]


def run_here(
    works: Sequence[Work], jobs: Sequence[StoreJob], backend: Backend, *, ahead: bool
) -> None:
    """Probe tasks in this process, in order; each store's job is told of what came of its own.

    Parameters
    ----------
    jobs
        One a store; a work's place is that of its job.
    ahead
        Whether a task is loaded while the one before it is fitted.
    """
    stores = [job.store for job in jobs]
    with contextlib.closing(load_in_turn(iter(works), stores, ahead=ahead)) as loaded:
        for work, arrays in loaded:
            job = jobs[work.place]
            try:
                outcomes = probe_loaded(work, arrays, job.store.path, backend, job.fitted)
            except GenebError as error:
                job.fail(work.task_id, error)
            else:
                job.record(work.task_id, outcomes)
            del arrays  # before the task after the next is loaded


def load_in_turn(
    works: Iterator[Work], stores: Sequence[Store], *, ahead: bool = True
) -> Iterator[Loaded]:
    """Yield each work with its arrays, or with the error that loading them met.

    Two tasks are in memory at most: the one that was yielded last, and the next.

    Parameters
    ----------
    works
        Asked for the next one in a thread of its own.
    stores
        In the order of the works' places.
    ahead
        Whether the next is loaded before it is asked for.
    """
    with ThreadPoolExecutor(1, "load") as loader:
        loading: Future[Loaded | None] = loader.submit(_load_next, works, stores)
        while (loaded := loading.result()) is not None:
            if ahead:
                loading = loader.submit(_load_next, works, stores)
            yield loaded
            if not ahead:
                del loaded, loading
                loading = loader.submit(_load_next, works, stores)


def _load_next(works: Iterator[Work], stores: Sequence[Store]) -> Loaded | None:
    work = next(works, None)
    if work is None:
        return None
    store = stores[work.place]
    try:
        with failing_alone(store.path, work.task_id):
            return work, load_task(store, work.task_id)
    except GenebError as error:
        return work, error


def load_task(store: Store, task_id: str) -> TaskArrays:
    """Load what a probe needs of one task; checksums are verified on the way."""
    task = store.task(task_id)
    return TaskArrays(
        train=task.embeddings("train"),
        train_labels=task.labels("train"),
        train_row_ids=task.row_ids("train"),
        test=task.embeddings("test"),
        test_labels=task.labels("test"),
        test_row_ids=task.row_ids("test"),
    )


def probe_loaded(
    work: Work,
    arrays: TaskArrays | GenebError,
    path: Path,
    backend: Backend,
    fitted: Callable[[str, str], None],
) -> list[Outcome]:
    """Make the missing fits of a task that `load_in_turn` has yielded.

    Parameters
    ----------
    path
        Of the store, for messages.
    fitted
        Told of each fit: ids of task and regime.

    Raises
    ------
    GenebError
        If it could not be loaded or cannot be probed.
    """
    if isinstance(arrays, GenebError):
        raise arrays
    with failing_alone(path, work.task_id):
        return probe_task(
            arrays, work.protocol, backend, lambda regime: fitted(work.task_id, regime.name)
        )

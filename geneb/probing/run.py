"""The probe, top to bottom: from stores to results."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from geneb.base import env
from geneb.base.progress import Progress, Silent
from geneb.base.text import name_some
from geneb.benchmark.spec import load_spec
from geneb.errors import GenebError, InputError, WorkError
from geneb.probing.backends import Backend, SklearnBackend, open_backend
from geneb.probing.execute import run_here
from geneb.probing.job import StoreJob, StoreOutcome
from geneb.probing.probes import check_backend
from geneb.probing.protocol import GENEB_LR_1, Protocol, choose_protocol
from geneb.probing.schedule import announce, plan
from geneb.probing.workers import Workers, threads_per_worker
from geneb.results import COLUMNS
from geneb.stores import Store, open_store
from geneb.tasks.select import select

AnyStore = Store | str | os.PathLike[str]


class ProbeError(WorkError):
    """Raised when some tasks could not be probed and all others were.

    Attributes
    ----------
    results : DataFrame
        The rows of those that were.
    """

    results: pd.DataFrame


def probe(
    stores: AnyStore | Sequence[AnyStore],
    out: str | os.PathLike[str] | None = None,
    tasks: Sequence[str] = (),
    regimes: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
    *,
    protocol: str | Protocol = GENEB_LR_1.id,
    backend: str = SklearnBackend.name,
    jobs: int = 1,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Probe the embeddings of one store or several.

    Parameters
    ----------
    stores
        Embedding stores: their paths, or what `geneb.open_store` returned.
    out
        Folder for the results, one sub-folder a model; an interrupted probe is resumed from it.
        Default is None: nothing is written.
    tasks
        Ids, labels, categories or globs. Default is every complete task of each store that has
        labels.
    regimes, seeds
        Default is the protocol's. Other seeds give results another protocol's name.
    protocol, backend
        Default is the published protocol on scikit-learn. `geneb.probing.protocol` has others:
        their ids in ``PROTOCOLS``, and ``own_protocol`` for an estimator of your own.
    jobs
        Processes. Default is 1: this one. Others are started anew and import the calling script,
        which must call this below ``if __name__ == "__main__":``. Each has its share of the
        cores: the number of BLAS threads is recorded and may change the last digits.
    progress
        Default is None: nothing is shown.

    Returns
    -------
    DataFrame
        One row a fit, with the columns `geneb.results.COLUMNS`. The full regime has one row,
        without a seed, because every seed gives the same fit.

    Raises
    ------
    InputError, NotFoundError, StoreError
        If nothing was started: a wrong argument, something that is not a store, a task without
        labels that ``tasks`` means, an ``out`` that holds other results or cannot be written to.
    ProbeError
        If tasks failed; all others are done.

    Examples
    --------
    >>> frame = geneb.probe("kmer.zarr", tasks=["demo_*"])  # doctest: +SKIP
    >>> frame.groupby(["task", "regime"])["MCC"].mean()  # doctest: +SKIP
    """
    outcomes = run_probe(
        [stores] if isinstance(stores, Store | str | os.PathLike) else stores,
        out=None if out is None else Path(out),
        tasks=tasks,
        protocol=choose_protocol(protocol, regimes, seeds),
        backend=open_backend(backend),
        jobs=jobs,
        progress=progress or Silent(),
    )
    rows = [row for one in outcomes for task in one.results for row in task.rows()]
    frame = pd.DataFrame(rows, columns=list(COLUMNS)).astype({"seed": "Int64"})
    failures = [fault for one in outcomes for fault in one.failures]
    if failures:
        error = ProbeError(
            f"{len(failures)} tasks could not be probed", found="\n".join(map(str, failures))
        )
        error.results = frame
        raise error
    return frame


def run_probe(
    stores: Sequence[AnyStore],
    *,
    out: Path | None,
    tasks: Sequence[str],
    protocol: Protocol,
    backend: Backend,
    progress: Progress,
    jobs: int = 1,
) -> list[StoreOutcome]:
    """Probe stores: `probe` in parts, for whoever reports on failures itself.

    Everything that can be refused is refused before the first fit.

    Returns
    -------
    list of StoreOutcome
        In the order of the stores, each with its tasks in the spec's order.

    Raises
    ------
    GenebError
        If nothing was started.
    """
    if jobs < 1:
        raise InputError("there must be a job to probe with", expected="1 or more", found=str(jobs))
    check_backend(protocol.probe, backend)
    opened = [one if isinstance(one, Store) else open_store(one) for one in stores]
    _refuse_twins(opened, out)
    chosen = [(store, _select_tasks(store, tasks, progress)) for store in opened]
    with contextlib.ExitStack() as stack:
        workers = None
        if jobs > 1:
            paths = [store.path for store in opened]
            threads = threads_per_worker(jobs)
            workers = stack.enter_context(Workers(paths, backend, protocol, threads))
        libraries = workers.libraries if workers else env.blas()
        parts = [
            StoreJob(place, store, task_ids, protocol, backend, libraries, out, progress)
            for place, (store, task_ids) in enumerate(chosen)
        ]
        works = [work for part in parts for work in part.open()]
        free = env.free_memory_bytes()
        way = plan(works, jobs, free)
        progress.say(announce(works, way, jobs, free))
        progress.start(sum(work.protocol.fits for work in works), "fits")
        try:
            if workers:
                workers.run(works, parts, way.jobs, ahead=way.ahead)
            else:
                run_here(works, parts, backend, ahead=way.ahead)
        finally:
            outcomes = [part.finish() for part in parts]
            progress.finish()
    return outcomes


def _refuse_twins(stores: Sequence[Store], out: Path | None) -> None:
    if not stores:
        raise InputError("there is no store to probe")
    names = [store.model_id for store in stores]
    twins = sorted({name for name in names if names.count(name) > 1})
    if out is not None and twins:
        raise InputError(
            "two stores of one model would write into one results folder",
            found=", ".join(twins),
            fix="probe them one by one, each with its own --out",
        )


def _select_tasks(store: Store, patterns: Sequence[str], progress: Progress) -> list[str]:
    """Return the tasks to probe; what has no labels is left out, unless it was asked for."""
    available = store.task_ids()
    if not available:
        raise InputError(
            "this store has no complete task",
            where=str(store.path),
            fix="run `geneb embed` on it again: it resumes where it stopped",
        )
    selected = select(patterns, available, load_spec())
    bare = [task_id for task_id in selected if _is_unlabelled(store, task_id)]
    if bare and (patterns or len(bare) == len(selected)):
        raise InputError(
            "tasks without labels cannot be probed",
            where=str(store.path),
            found=name_some(bare),
            fix="name tasks with labels in --tasks, or embed them again from CSVs with labels",
        )
    if bare:
        progress.say(f"{store.path}: left out, because they have no labels: {name_some(bare)}")
    return [task_id for task_id in selected if task_id not in bare]


def _is_unlabelled(store: Store, task_id: str) -> bool:
    try:
        return store.task(task_id).classes is None
    except GenebError:  # a damaged manifest is that task's failure, once its turn comes
        return False

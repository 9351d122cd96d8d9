"""How far the published protocol's fits are from the optimum of their objective."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from geneb.analysis.twice import Twice, Way, labelled_tasks, otherwise, probe_twice, reported
from geneb.base.progress import Progress
from geneb.errors import Fault, GenebError
from geneb.probing.backends import SklearnBackend, open_backend
from geneb.probing.protocol import GENEB_LR_1, GENEB_LR_1_CONVERGED
from geneb.stores import Store

Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class Distance:
    """One regime of one task.

    Attributes
    ----------
    fits, converged, optimal
        How many fits there are; how many of the published protocol reached its tolerance; how
        many of the other the optimum. Below, of several fits the largest value is given.
    n_iter
        Iterations of the published protocol.
    objective_gap
        Published objective minus that of the optimum.
    gradient_norm, optimum_gradient_norm
        Largest absolute component of the objective's gradient, where each ended.
    predictions
        Share of the test rows that the two predict otherwise.
    MCC, Acc, F1
        Reported value of the optimum minus that of the published protocol.
    """

    task: str
    regime: str
    fits: int
    converged: int
    optimal: int
    n_iter: int
    objective_gap: float
    gradient_norm: float
    optimum_gradient_norm: float
    predictions: float
    MCC: float
    Acc: float
    F1: float


def distances(
    store: Store, tasks: Sequence[str], progress: Progress
) -> Iterator[list[Distance] | Fault]:
    """Fit tasks by the published protocol and to the optimum.

    Parameters
    ----------
    tasks
        Ids, labels, categories or globs; every complete task with labels where none are given.

    Yields
    ------
    list of Distance or Fault
        Of each task its regimes, or why it cannot be probed.

    Raises
    ------
    InputError, NotFoundError
        If nothing was started.
    """
    chosen = labelled_tasks(store, tasks)
    backend = open_backend(SklearnBackend.name)
    ways = Way(GENEB_LR_1, backend), Way(GENEB_LR_1_CONVERGED, backend)
    progress.start(len(chosen) * sum(way.protocol.fits for way in ways), "fits")
    try:
        for task_id in chosen:
            yield _measure_task(store, task_id, ways, progress)
    finally:
        progress.finish()


def _measure_task(
    store: Store, task_id: str, ways: tuple[Way, Way], progress: Progress
) -> list[Distance] | Fault:
    try:
        found = probe_twice(store, task_id, ways, lambda: progress.advance(1, task_id))
    except GenebError as error:
        where = error.where or f"{store.path}, task {task_id}"
        return Fault(where, error.problem, error.expected, error.found, error.fix)
    return [_measure(task_id, regime, pairs) for regime, pairs in found.items()]


def _measure(task_id: str, regime: str, pairs: Sequence[Twice]) -> Distance:
    published = [one for one, _ in pairs]
    optimum = [other for _, other in pairs]
    before, after = (reported(fits, GENEB_LR_1.seeds) for fits in (published, optimum))
    return Distance(
        task=task_id,
        regime=regime,
        fits=len(pairs),
        converged=sum(one.fit.converged is True for one in published),
        optimal=sum(other.fit.converged is True for other in optimum),
        n_iter=max(_known(one.fit.n_iter) for one in published),
        objective_gap=max(
            _known(one.fit.objective) - _known(other.fit.objective) for one, other in pairs
        ),
        gradient_norm=max(_known(one.fit.gradient_norm) for one in published),
        optimum_gradient_norm=max(_known(other.fit.gradient_norm) for other in optimum),
        predictions=max(map(otherwise, pairs)),
        **{metric: after[metric] - before[metric] for metric in before},
    )


def _known(value: Number | None) -> Number:
    assert value is not None  # logistic regression iterates, and has an objective
    return value

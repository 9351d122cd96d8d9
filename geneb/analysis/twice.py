"""The same tasks probed twice, in two ways that draw the same rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from geneb.benchmark.spec import load_spec
from geneb.errors import InputError
from geneb.probing.backends import Backend
from geneb.probing.execute import load_task
from geneb.probing.fit import Outcome, probe_task
from geneb.probing.job import failing_alone
from geneb.probing.protocol import Protocol
from geneb.results import METRICS, reported_value
from geneb.stores import Store
from geneb.tasks.select import select


@dataclass(frozen=True)
class Way:
    """One of the two ways to probe."""

    protocol: Protocol
    backend: Backend


Twice = tuple[Outcome, Outcome]


def labelled_tasks(store: Store, patterns: Sequence[str]) -> list[str]:
    """Return the complete tasks that patterns mean; without any, all that have labels.

    Raises
    ------
    InputError, NotFoundError
        If there is none.
    """
    chosen = select(patterns, store.task_ids(), load_spec())
    if not patterns:
        chosen = [task_id for task_id in chosen if store.task(task_id).classes is not None]
    if not chosen:
        raise InputError("this store has no complete task with labels", where=str(store.path))
    return chosen


def probe_twice(
    store: Store, task_id: str, ways: tuple[Way, Way], fitted: Callable[[], None]
) -> dict[str, list[Twice]]:
    """Probe a task in two ways.

    Returns
    -------
    dict of list of pairs of Outcome
        Regime -> the fits of each seed, in both ways.

    Raises
    ------
    GenebError
        If the task cannot be probed.
    """
    with failing_alone(store.path, task_id):
        arrays = load_task(store, task_id)
        outcomes = [
            probe_task(arrays, way.protocol, way.backend, lambda _: fitted()) for way in ways
        ]
    found: dict[str, list[Twice]] = {}
    for one, other in zip(*outcomes, strict=True):
        found.setdefault(one.fit.regime, []).append((one, other))
    return found


def otherwise(pair: Twice) -> float:
    """Return the share of test rows that the two predict otherwise."""
    return float((pair[0].predicted != pair[1].predicted).mean())


def reported(fits: Sequence[Outcome], seeds: Sequence[int]) -> dict[str, float]:
    """Return the reported value of each metric."""
    return {
        metric: reported_value([getattr(one.fit, metric) for one in fits], seeds)
        for metric in METRICS
    }

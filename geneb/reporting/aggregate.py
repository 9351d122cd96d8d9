"""From the scores of tasks to the scores of a model.

A category's score is the mean of its tasks, macro the mean of all categories, micro the mean of
all tasks. Nothing is averaged over what happens to be there: a category with a task missing has
no score, a model with a task missing neither macro nor micro. Tasks outside the benchmark's spec
never enter any of them. Sums are exact (`math.fsum`), so that the order of adding plays no part.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from geneb.benchmark.spec import Spec


@dataclass(frozen=True)
class Aggregate:
    """One model's scores in one regime and metric.

    Attributes
    ----------
    tasks
        Tasks of the spec that have a score, in its order.
    own
        Scores of other tasks, sorted by id.
    categories
        All categories in the spec's order; None where a task is missing.
    macro, micro
        None unless every task of the spec has a score.
    """

    tasks: dict[str, float]
    own: dict[str, float]
    categories: dict[str, float | None]
    macro: float | None
    micro: float | None


def aggregate(scores: Mapping[str, float], spec: Spec) -> Aggregate:
    """Return what follows from the scores of tasks (task id -> value)."""
    tasks: dict[str, float] = {}
    members: dict[str, list[float]] = {category: [] for category in spec.categories}
    incomplete: set[str] = set()
    for task in spec.tasks:
        if task.id in scores:
            tasks[task.id] = scores[task.id]
            members[task.category].append(scores[task.id])
        else:
            incomplete.add(task.category)
    categories = {
        category: None if category in incomplete else mean(values)
        for category, values in members.items()
    }
    known = [value for value in categories.values() if value is not None]
    return Aggregate(
        tasks=tasks,
        own={task: scores[task] for task in sorted(set(scores) - set(tasks))},
        categories=categories,
        macro=None if incomplete else mean(known),
        micro=None if incomplete else mean(list(tasks.values())),
    )


def mean(values: Sequence[float]) -> float:
    """Return the mean of at least one value, summed exactly."""
    return math.fsum(values) / len(values)


def ranks(values: Sequence[float | None]) -> list[int | None]:
    """Return each value's rank: one more than the number of larger values.

    Equal values, in full precision, share a rank, and the next rank is left out: 1, 2, 2, 4.
    None has no rank.
    """
    ascending = sorted(value for value in values if value is not None)
    return [
        None if value is None else 1 + len(ascending) - bisect_right(ascending, value)
        for value in values
    ]

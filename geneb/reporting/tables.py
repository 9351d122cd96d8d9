"""Tables of models: who stands where, with the numbers in full precision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from geneb.benchmark.spec import Spec
from geneb.reporting.aggregate import Aggregate, aggregate, mean, ranks
from geneb.reporting.entries import Entry

Cell = str | int | float | None
Measure = Callable[[Aggregate], float | None]
"""What models are ranked by; None for a model that has no rank."""
Naming = Callable[[Entry], str]
"""What a model is called in a table."""


@dataclass(frozen=True)
class Table:
    """Columns, and rows of the same length; what is shown of a number is the reader's choice."""

    columns: list[str]
    rows: list[list[Cell]]


@dataclass(frozen=True)
class Standing:
    """One model in one regime and metric.

    Attributes
    ----------
    rank
        By the measure asked for; None for a model without it.
    """

    rank: int | None
    entry: Entry
    scores: Aggregate

    @property
    def model_id(self) -> str:
        """The model's id."""
        return self.entry.model_id


def by_id(entry: Entry) -> str:
    """Return a model's id: its name for programs."""
    return entry.model_id


def by_macro(scores: Aggregate) -> float | None:
    """Return macro: the measure of the leaderboard."""
    return scores.macro


def by_categories(names: Sequence[str]) -> Measure:
    """Return the measure that is the mean of some categories."""
    return lambda scores: _mean_if_all([scores.categories[name] for name in names])


def by_tasks(task_ids: Sequence[str]) -> Measure:
    """Return the measure that is the mean of some tasks, of the benchmark or not."""
    return lambda scores: _mean_if_all(
        [{**scores.tasks, **scores.own}.get(task) for task in task_ids]
    )


def _mean_if_all(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return mean(known) if len(known) == len(values) else None


def standings(
    entries: Sequence[Entry], regime: str, metric: str, spec: Spec, measure: Measure = by_macro
) -> list[Standing]:
    """Return the models by rank; those without one follow, and equals stand by model id."""
    scored = [
        (
            entry,
            aggregate(
                {task: values[metric] for task, values in entry.summary.get(regime, {}).items()},
                spec,
            ),
        )
        for entry in entries
    ]
    return _rank(scored, measure)


def rank_anew(models: Sequence[Standing], measure: Measure) -> list[Standing]:
    """Return the same models ranked by another measure, in the order of `standings`."""
    return _rank([(one.entry, one.scores) for one in models], measure)


def _rank(scored: Sequence[tuple[Entry, Aggregate]], measure: Measure) -> list[Standing]:
    places = ranks([measure(scores) for _, scores in scored])
    found = [
        Standing(rank, entry, scores) for rank, (entry, scores) in zip(places, scored, strict=True)
    ]
    return sorted(found, key=lambda one: (one.rank is None, one.rank or 0, one.model_id))


def overall_table(
    models: Sequence[Standing], spec: Spec, *, categories: bool = False, naming: Naming = by_id
) -> Table:
    """Return one row a model: rank, macro, micro, how many tasks, and its categories if asked."""
    columns = ["rank", "model", "macro", "micro", "tasks"]
    if categories:
        columns += spec.categories
    rows: list[list[Cell]] = []
    for one in models:
        row: list[Cell] = [one.rank, naming(one.entry), one.scores.macro, one.scores.micro]
        row.append(f"{len(one.scores.tasks)}/{len(spec.tasks)}")
        if categories:
            row += one.scores.categories.values()
        rows.append(row)
    return Table(columns, rows)


def chosen_table(
    models: Sequence[Standing],
    *,
    categories: Sequence[str] = (),
    task_ids: Sequence[str] = (),
    naming: Naming = by_id,
) -> Table:
    """Return one row a model: its rank, and some categories and tasks of its own choice."""
    rows: list[list[Cell]] = []
    for one in models:
        tasks = {**one.scores.tasks, **one.scores.own}
        rows.append(
            [
                one.rank,
                naming(one.entry),
                *(one.scores.categories[name] for name in categories),
                *(tasks.get(task) for task in task_ids),
            ]
        )
    return Table(["rank", "model", *categories, *task_ids], rows)


def task_table(models: Sequence[Standing], spec: Spec, *, naming: Naming = by_id) -> Table:
    """Return one row a task that any model has, one column a model."""
    found = [{**one.scores.tasks, **one.scores.own} for one in models]
    own = sorted({task for one in models for task in one.scores.own})
    tasks = [task.id for task in spec.tasks if any(task.id in scores for scores in found)]
    return Table(
        ["task", *(naming(one.entry) for one in models)],
        [[task, *(scores.get(task) for scores in found)] for task in [*tasks, *own]],
    )

"""A look at the leaderboard: which models are shown, ranked by what, in which columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from geneb.benchmark.spec import Spec
from geneb.errors import InputError
from geneb.reporting.entries import Entry
from geneb.reporting.tables import (
    Measure,
    Standing,
    Table,
    by_categories,
    by_macro,
    by_tasks,
    chosen_table,
    overall_table,
    standings,
    task_table,
)
from geneb.tasks.select import select, suggest


@dataclass(frozen=True)
class Query:
    """What is asked for.

    Attributes
    ----------
    by
        ``overall``, ``category`` or ``task``: how far scores are broken down. None is overall,
        or by task where no model has all tasks, hence none an overall score.
    categories, tasks
        Only these, and ranked by their mean; not both.
    min_params, max_params
        Models outside are not shown, nor those of unknown size.
    provenances
        Only these; all where there are none.
    top
        Only the first so many of the models that are left; ties may make them more.
    """

    regime: str
    metric: str
    by: str | None = None
    categories: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    min_params: int | None = None
    max_params: int | None = None
    provenances: tuple[str, ...] = ()
    top: int | None = None


@dataclass(frozen=True)
class View:
    """What is shown.

    Attributes
    ----------
    models
        By rank. Ranks count all models that were read, also those that are not shown.
    categories, task_ids
        What was asked for by name.
    """

    models: list[Standing]
    table: Table
    categories: list[str]
    task_ids: list[str]


def look(entries: Sequence[Entry], query: Query, spec: Spec) -> View:
    """Answer a query.

    Raises
    ------
    InputError
        If it names a category or task that there is none of, or both kinds.
    """
    if query.categories and query.tasks:
        raise InputError("categories and tasks cannot both be asked for", fix="name one kind")
    categories = [_find_category(name, spec) for name in query.categories]
    task_ids = _find_tasks(entries, query, spec)
    measure = _measure(categories, task_ids)
    ranked = standings(entries, query.regime, query.metric, spec, measure)
    models = _first([one for one in ranked if _is_shown(one, query)], query.top)
    if categories or task_ids:
        table = chosen_table(models, categories=categories, task_ids=task_ids)
    elif _is_by_task(query, ranked):
        table = task_table(models, spec)
    else:
        table = overall_table(models, spec, categories=query.by == "category")
    return View(models, table, categories, task_ids)


def _is_by_task(query: Query, ranked: Sequence[Standing]) -> bool:
    if query.by is None:
        return not any(one.scores.macro is not None for one in ranked)
    return query.by == "task" or not any(one.scores.tasks for one in ranked)


def _measure(categories: Sequence[str], task_ids: Sequence[str]) -> Measure:
    if categories:
        return by_categories(categories)
    return by_tasks(task_ids) if task_ids else by_macro


def _find_category(name: str, spec: Spec) -> str:
    folded = {category.casefold(): category for category in spec.categories}
    try:
        return folded[name.casefold()]
    except KeyError:
        raise InputError(
            f"there is no category {name[:200]!r}",
            expected=", ".join(spec.categories),
            fix=suggest(name, spec.categories),
        ) from None


def _find_tasks(entries: Sequence[Entry], query: Query, spec: Spec) -> list[str]:
    if not query.tasks:
        return []
    own = {task for entry in entries for task in entry.summary.get(query.regime, {})}
    return select(query.tasks, {*spec.task_ids, *own}, spec)


def _first(models: list[Standing], count: int | None) -> list[Standing]:
    """Return the first models that have a rank, and whoever shares the last one's."""
    if count is None:
        return models
    placed = [(one.rank, one) for one in models if one.rank is not None]
    last = max((rank for rank, _ in placed[:count]), default=0)
    return [one for rank, one in placed if rank <= last]


def _is_shown(standing: Standing, query: Query) -> bool:
    entry = standing.entry
    if query.provenances and entry.provenance not in query.provenances:
        return False
    if query.min_params is None and query.max_params is None:
        return True
    if entry.params is None:
        return False
    return (query.min_params or 0) <= entry.params <= (query.max_params or entry.params)

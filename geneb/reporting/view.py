"""A look at the leaderboard: which models are shown, ranked by what, in which columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from geneb.base.text import name_some
from geneb.benchmark.spec import Spec
from geneb.errors import InputError
from geneb.reporting.entries import Entry, same_names
from geneb.reporting.tables import (
    Measure,
    Naming,
    Standing,
    Table,
    by_categories,
    by_id,
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
        ``overall``, ``category`` or ``task``: how far scores are broken down, where nothing is
        asked for by name. None is overall, or by task where no model has all tasks, hence none
        an overall score.
    categories, tasks
        Only these, and ranked by their mean; not both.
    min_params, max_params
        Models outside are not shown, nor those of unknown size.
    provenances
        Only these; all where there are none.
    top
        Only the first so many of the models that are left; ties may make them more.
    for_people
        Whether the table calls models by their names for people, not by their ids.
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
    for_people: bool = False


@dataclass(frozen=True)
class View:
    """What is shown.

    Attributes
    ----------
    models
        By rank. Ranks count all models that were read, also those that are not shown.
    by
        ``overall``, ``category`` or ``task``: how far the scores are broken down; ``name`` where
        something was asked for by name.
    categories, task_ids
        What was asked for by name.
    """

    models: list[Standing]
    table: Table
    by: str
    categories: list[str]
    task_ids: list[str]

    @property
    def ranked_by(self) -> str:
        """What the ranks go by, in words."""
        named = [*self.categories, *self.task_ids]
        if not named:
            return "macro"
        return named[0] if len(named) == 1 else f"the mean of {name_some(named)}"


def look(entries: Sequence[Entry], query: Query, spec: Spec) -> View:
    """Answer a query.

    Raises
    ------
    InputError
        If it names a category or task that there is none of, or both kinds, or one and how far
        all are broken down.
    """
    if query.categories and query.tasks:
        raise InputError("categories and tasks cannot both be asked for", fix="name one kind")
    if query.by and (query.categories or query.tasks):
        raise InputError(
            "columns are either named, or all of one kind",
            fix="leave out --by, or --category and --task",
        )
    categories = [_find_category(name, spec) for name in query.categories]
    task_ids = _find_tasks(entries, query, spec)
    measure = _measure(categories, task_ids)
    ranked = standings(entries, query.regime, query.metric, spec, measure)
    models = _first([one for one in ranked if _is_shown(one, query)], query.top)
    naming = _name_for_people(entries) if query.for_people else by_id
    by = "name" if categories or task_ids else _breakdown(query, ranked)
    if by == "name":
        table = chosen_table(models, categories=categories, task_ids=task_ids, naming=naming)
    elif by == "task":
        table = task_table(models, spec, naming=naming)
    else:
        table = overall_table(models, spec, categories=by == "category", naming=naming)
    return View(models, table, by, categories, task_ids)


def _name_for_people(entries: Sequence[Entry]) -> Naming:
    """Return how to call models so that no two of them are taken for one."""
    shared = {model_id for ids in same_names(entries).values() for model_id in ids}
    return lambda entry: (
        f"{entry.display} ({entry.model_id})" if entry.model_id in shared else entry.display
    )


def _breakdown(query: Query, ranked: Sequence[Standing]) -> str:
    if query.by is None:
        return "overall" if any(one.scores.macro is not None for one in ranked) else "task"
    # Where no model has any of the benchmark's tasks, its own are all there is to show.
    return query.by if any(one.scores.tasks for one in ranked) else "task"


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
    largest = entry.params if query.max_params is None else query.max_params
    return (query.min_params or 0) <= entry.params <= largest

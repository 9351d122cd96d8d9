"""Building the leaderboard's tables: from entries to files, the same bytes on every machine.

Nothing in a file depends on when, where or from which order of files it was built. Values are
never rounded but where people read them (Markdown, LaTeX); sums are exact.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from geneb.base.files import atomic_write
from geneb.benchmark.spec import Spec, load_model_meta
from geneb.errors import MissingExtraError
from geneb.reporting.aggregate import Aggregate
from geneb.reporting.entries import Entry
from geneb.reporting.formats import to_csv, to_latex, to_markdown
from geneb.reporting.tables import Cell, Standing, Table, by_categories, rank_anew, standings

LEADERBOARD = "leaderboard.json"
LEADERBOARD_TASKS = "leaderboard_tasks.json"
TOP = 5

_SCORE_COLUMNS = ("model", "regime", "task", "category", "metric", "value")
_CATEGORY_COLUMNS = ("model", "regime", "category", "metric", "value")
_OVERALL_COLUMNS = (
    "model", "display", "params", "provenance", "regime", "metric", "rank", "macro", "micro",
)  # fmt: skip

Board = Mapping[tuple[str, str], Sequence[Standing]]
"""(regime, metric) -> all entries by rank."""


def rank_entries(entries: Sequence[Entry], spec: Spec) -> Board:
    """Return the standings of complete entries in every regime and metric."""
    return {
        (regime, metric): standings(entries, regime, metric, spec)
        for regime, metric in product(spec.regimes, spec.metrics)
    }


def build_documents(
    entries: Sequence[Entry], board: Board, spec: Spec
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what ``leaderboard.json`` and ``leaderboard_tasks.json`` hold.

    Parameters
    ----------
    entries
        In the order of the rows.

    Returns
    -------
    leaderboard : dict
        ``{"data": {regime: [row]}}``, a row with the entry's facts and, of each metric M,
        ``micro_M``, ``macro_M`` and ``cat_M`` (category -> value).
    tasks : dict
        ``{"tasks": [{"id", "label", "cat"}], "data": {regime: [row]}}``, a row with ``task_M``
        (task id -> value) in place of the categories.
    """
    scores = {
        (*key, one.model_id): one.scores for key, standing in board.items() for one in standing
    }
    overall: dict[str, Any] = {"data": {}}
    by_task: dict[str, Any] = {
        "tasks": [
            {"id": task.id, "label": task.label, "cat": task.category} for task in spec.tasks
        ],
        "data": {},
    }
    for regime in spec.regimes:
        rows = [
            (entry, [(metric, scores[regime, metric, entry.model_id]) for metric in spec.metrics])
            for entry in entries
        ]
        overall["data"][regime] = [_overall_row(entry, found) for entry, found in rows]
        by_task["data"][regime] = [_task_row(entry, found) for entry, found in rows]
    return overall, by_task


def _overall_row(entry: Entry, scores: Sequence[tuple[str, Aggregate]]) -> dict[str, Any]:
    row: dict[str, Any] = {
        "model": entry.model_id,
        "disp": entry.display,
        "params": entry.params,
        "official": entry.official,
        "zero_shot": entry.zero_shot,
        "submitted": entry.provenance,
    }
    for metric, found in scores:
        row[f"micro_{metric}"] = found.micro
        row[f"macro_{metric}"] = found.macro
        row[f"cat_{metric}"] = found.categories
    return row


def _task_row(entry: Entry, scores: Sequence[tuple[str, Aggregate]]) -> dict[str, Any]:
    row: dict[str, Any] = {
        "model": entry.model_id,
        "disp": entry.display,
        "params": entry.params,
    }
    for metric, found in scores:
        row[f"micro_{metric}"] = found.micro
        row[f"macro_{metric}"] = found.macro
        row[f"task_{metric}"] = found.tasks
    return row


def build_tables(entries: Sequence[Entry], spec: Spec) -> dict[str, bytes]:
    """Return the content of every file of tables.

    Parameters
    ----------
    entries
        Complete, in the order of the rows: see `geneb.reporting.entries.read_leaderboard`.

    Returns
    -------
    dict of str to bytes
        Path below the tables' folder -> content.
    """
    board = rank_entries(entries, spec)
    overall, by_task = build_documents(entries, board, spec)
    texts = {
        LEADERBOARD: compact_json(overall),
        LEADERBOARD_TASKS: compact_json(by_task),
        "scores.csv": to_csv(_SCORE_COLUMNS, score_rows(entries, spec)),
        "categories.csv": to_csv(_CATEGORY_COLUMNS, _category_rows(entries, overall, spec)),
        "overall.csv": to_csv(_OVERALL_COLUMNS, _overall_rows(board)),
    }
    for (regime, metric), models in board.items():
        name = f"{regime}_{metric}"
        title = f"{spec.name}, {metric}, regime {regime}"
        for kind, table, what in (
            ("overall", standing_table(models, spec), "all models"),
            ("top", top_table(models, metric, spec), f"the best {TOP} of each category"),
        ):
            label = f"tab:geneb-{kind}-{regime}-{metric}".lower()
            texts[f"markdown/{kind}_{name}.md"] = to_markdown(table)
            texts[f"latex/{kind}_{name}.tex"] = to_latex(table, f"{title}: {what}.", label)
    return {name: text.encode("utf-8") for name, text in texts.items()}


def compact_json(value: Any) -> str:
    """Return JSON without spaces, keys in the given order, a newline at the end."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False) + "\n"


def score_rows(entries: Sequence[Entry], spec: Spec) -> Iterator[tuple[Cell, ...]]:
    """Yield one row a score: model, regime, task, category, metric, value."""
    for entry, regime, task in product(entries, spec.regimes, spec.tasks):
        for metric, value in entry.summary[regime][task.id].items():
            yield entry.model_id, regime, task.id, task.category, metric, value


def _category_rows(
    entries: Sequence[Entry], overall: Mapping[str, Any], spec: Spec
) -> Iterator[tuple[Cell, ...]]:
    for place, entry in enumerate(entries):
        for regime, category, metric in product(spec.regimes, spec.categories, spec.metrics):
            value = overall["data"][regime][place][f"cat_{metric}"][category]
            yield entry.model_id, regime, category, metric, value


def _overall_rows(board: Board) -> Iterator[tuple[Cell, ...]]:
    for (regime, metric), models in board.items():
        for one in models:
            entry, scores = one.entry, one.scores
            facts = (entry.model_id, entry.display, entry.params, entry.provenance)
            yield *facts, regime, metric, one.rank, scores.macro, scores.micro


def standing_table(models: Sequence[Standing], spec: Spec) -> Table:
    """Return rank, name, macro, micro and all categories: one row a model, the best first."""
    return Table(
        ["rank", "model", "macro", "micro", *spec.categories],
        [
            [
                one.rank,
                one.entry.display,
                one.scores.macro,
                one.scores.micro,
                *one.scores.categories.values(),
            ]
            for one in models
        ],
    )


def top_table(models: Sequence[Standing], metric: str, spec: Spec) -> Table:
    """Return the models of rank 1 to 5 in each category; ties may make them more."""
    rows: list[list[Cell]] = []
    for category in spec.categories:
        rows += [
            [category, one.rank, one.entry.display, one.scores.categories[category]]
            for one in rank_anew(models, by_categories([category]))
            if one.rank is not None and one.rank <= TOP
        ]
    return Table(["category", "rank", "model", metric], rows)


def build_page(entries: Sequence[Entry], spec: Spec) -> dict[str, bytes]:
    """Return the content of every file of the site, by name."""
    from geneb.reporting.site import render_site  # here, because tables alone need none of it

    overall, by_task = build_documents(entries, rank_entries(entries, spec), spec)
    pages = render_site(overall, by_task, load_model_meta(), spec)
    return {name: text.encode("utf-8") for name, text in pages.items()}


def write_files(folder: Path, content: Mapping[str, bytes]) -> None:
    """Write files below a folder, each atomically; other files in it are left alone.

    They are not forced onto the disk one by one: whoever doubts them builds them again.
    """
    for name, data in content.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, data, durable=False)


def write_parquet(path: Path, entries: Sequence[Entry], spec: Spec) -> None:
    """Write all scores as Parquet; its bytes depend on the version of pyarrow.

    Raises
    ------
    MissingExtraError
        If pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError("pyarrow", "parquet", "to write Parquet") from error
    columns = zip(*score_rows(entries, spec), strict=True)
    table = pa.table(dict(zip(_SCORE_COLUMNS, map(list, columns), strict=True)))
    parquet.write_table(table, path)

"""``geneb task``: the tasks of the benchmark, and what is in one's CSV."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from geneb.cli.options import data_option, json_option
from geneb.errors import InputError

if TYPE_CHECKING:
    from geneb.benchmark.spec import Spec


@click.group()
def command() -> None:
    """List the benchmark's tasks, or look into one."""


@command.command("list", epilog='Example: geneb task list --category "TF Binding"')
@click.option("--category", "category", metavar="C", help="Only the tasks of this category.")
@json_option()
def list_tasks(*, category: str | None, as_json: bool) -> None:
    """List the benchmark's tasks in order."""
    from geneb.benchmark.spec import load_spec
    from geneb.cli.console import print_json, table

    spec = load_spec()
    tasks = list(spec.tasks)
    if category is not None:
        wanted = _find_category(category, spec)
        tasks = [task for task in tasks if task.category == wanted]
    if as_json:
        print_json(
            [{"id": task.id, "label": task.label, "category": task.category} for task in tasks]
        )
    else:
        table(("label", "id", "category"), [(task.label, task.id, task.category) for task in tasks])


@command.command("show", epilog='Example: geneb task show "GUE mouse 3" --data tasks/')
@click.argument("name", metavar="ID")
@data_option(required=False)
@json_option()
def show_task(*, name: str, data: Path | None, as_json: bool) -> None:
    """Show one task, given by id or label; with --data also what its CSV holds.

    A CSV of your own in the folder is named by its file name without the ending. The digests tell
    tasks with similar names apart: `sorted` is the same wherever the same rows stand, in any
    order.
    """
    from geneb.benchmark.spec import load_spec
    from geneb.cli.console import print_json

    facts: dict[str, Any] = _find_task(name, data, load_spec())
    if data is not None:
        facts |= _describe_file(data / f"{facts['id']}.csv")
    if as_json:
        print_json(facts)
    else:
        _print_facts(facts)


def _find_category(name: str, spec: Spec) -> str:
    from geneb.tasks.select import suggest

    for category in spec.categories:
        if category.casefold() == name.casefold():
            return category
    raise InputError(
        f"there is no category {name[:200]!r}",
        expected=", ".join(spec.categories),
        fix=suggest(name, spec.categories),
    )


def _find_task(name: str, data: Path | None, spec: Spec) -> dict[str, Any]:
    """Return id, label and category; the last two are None for a CSV outside the benchmark."""
    from geneb.tasks.select import suggest

    for task in spec.tasks:
        if name == task.id or name.casefold() == task.label.casefold():
            return {"id": task.id, "label": task.label, "category": task.category}
    own = [] if data is None else sorted(path.stem for path in data.glob("*.csv"))
    if name in own:
        return {"id": name, "label": None, "category": None}
    known = [*own, *spec.task_ids, *(task.label for task in spec.tasks)]
    raise InputError(
        f"there is no task {name[:200]!r}" + ("" if data is None else f", also not in {data}"),
        expected="the id or label of a task"
        + (" (a CSV of your own needs --data)" if data is None else ""),
        fix=suggest(name, known),
    )


def _describe_file(path: Path) -> dict[str, Any]:
    from dataclasses import asdict

    from geneb.tasks.describe import describe_split
    from geneb.tasks.read import class_report, read_task

    task = read_task(path)
    return {
        "splits": {split: asdict(describe_split(task, split)) for split in task.splits},
        "classes": list(task.classes),
        "classes_in_one_split": {
            field: list(classes) for field, classes in class_report(task)._asdict().items()
        },
        "left_out": task.left_out,
    }


def _print_facts(facts: dict[str, Any]) -> None:
    from geneb.cli.console import table

    rows = [(field, facts[field] or "-") for field in ("id", "label", "category")]
    if "splits" not in facts:
        table(("task", ""), rows)
        return
    left_out = ", ".join(f"{split} ({count:,})" for split, count in facts["left_out"].items())
    rows += [("rows left out, by split", left_out or "none")]
    rows += [
        (f"classes {field.replace('_', ' ')}", ", ".join(classes) or "none")
        for field, classes in facts["classes_in_one_split"].items()
    ]
    rows += [
        (f"{order} sha256, {split}", of_split[f"{order}_sha256"])
        for order in ("ordered", "sorted")
        for split, of_split in facts["splits"].items()
    ]
    table(("task", ""), rows)
    click.echo()
    _print_splits(facts["splits"], facts["classes"])


def _print_splits(splits: dict[str, dict[str, Any]], classes: list[str]) -> None:
    from geneb.cli.console import table

    fields = {
        "rows": "rows",
        "shortest sequence": "min_length",
        "median length": "median_length",
        "longest sequence": "max_length",
        "sequences with other letters than ACGT": "non_acgt",
        "empty sequences": "empty",
    }
    rows = [
        (title, *(_number(of_split[field]) for of_split in splits.values()))
        for title, field in fields.items()
    ]
    for name in classes:
        counts = (_number(of_split["rows_of_class"][name]) for of_split in splits.values())
        rows.append((f"rows of class {name}", *counts))
    table(("split", *splits), rows, numeric=tuple(splits))


def _number(value: float) -> str:
    return f"{value:,.1f}".removesuffix(".0")

"""``geneb store``: info, verify and reproduce."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from geneb.cli.options import (
    data_option,
    json_option,
    model_options,
    model_source,
    quiet_option,
)
from geneb.errors import WorkError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from geneb.embedding.reproduce import RowReproduction

# Fields of a fingerprint that a user chooses.
_OPTIONS = {
    "parameters.layer": "--layer",
    "parameters.pooling": "--pooling",
    "parameters.preset": "--preset",
    "parameters.long input": "--long-input",
    "compute_dtype": "--dtype",
}

_STORE = click.argument("store", type=click.Path(path_type=Path))


@click.group(name="store")
def command() -> None:
    """Look at embedding stores, verify and reproduce them."""


@command.command()
@_STORE
@json_option()
def info(store: Path, *, as_json: bool) -> None:
    """Show what made a store and what is in it; nothing is recomputed."""
    from geneb.cli.console import named_values, print_json, table
    from geneb.stores.describe import describe_store

    facts = describe_store(store)
    if as_json:
        print_json(facts)
        return
    fingerprint = facts["fingerprint"]
    parameters = fingerprint.pop("parameters")
    head = [
        ("store", facts["store"]),
        ("model", facts["model"]["id"]),
        ("sealed", "yes" if facts["sealed"] else "no"),
        ("fingerprint", facts["fingerprint_id"]),
        *((f"  {name}", str(value)) for name, value in fingerprint.items() if value is not None),
        *((f"  {name}", value) for name, value in named_values(parameters)),
        ("token budget", f"{facts['token_budget']:,}"),
        ("tasks complete", f"{len(facts['tasks']):,}"),
        ("tasks incomplete", ", ".join(facts["incomplete"]) or "none"),
        ("runs", f"{len(facts['runs']):,}"),
        ("  on", ", ".join(_distinct(run["platform"].get("device") for run in facts["runs"]))),
        ("  with", ", ".join(_switches(facts["runs"])) or "no switches of torch"),
        ("  batches halved for memory", _total(facts["runs"], "out_of_memory_splits")),
        ("  rows run again in float32", _total(facts["runs"], "float32_retries")),
        ("size", f"{facts['bytes'] / 1e6:,.1f} MB in {facts['files']:,} files"),
    ]
    table(["", ""], head)
    columns = ["task", "split", "rows", "computed", "copied", "truncated", "non-ACGT", "empty"]
    table(columns, [_split_row(row) for row in facts["splits"]], numeric=columns[2:])


def _distinct(values: Iterable[Any]) -> list[str]:
    return list(dict.fromkeys(map(str, values)))


def _switches(runs: Sequence[dict[str, Any]]) -> list[str]:
    """Return which of torch's switches any of the runs had on."""
    names = ("compile", "deterministic", "tf32")
    return [name for name in names if any(run["options"].get(name) is True for run in runs)]


def _total(runs: Sequence[dict[str, Any]], field: str) -> str:
    return f"{sum(run[field] for run in runs):,}"


def _split_row(row: dict[str, Any]) -> list[str]:
    numbers = ("rows", "computed", "copied", "truncated", "non_acgt", "empty")
    return [row["task"], row["split"], *(f"{row[name]:,}" for name in numbers)]


@command.command()
@_STORE
@click.option(
    "--clean", is_flag=True, help="Remove what interrupted writers left, if nobody is writing."
)
@json_option()
@quiet_option()
def verify(store: Path, *, clean: bool, as_json: bool, quiet: bool) -> None:
    """Compute everything a store states again; list every fault; exit 1 if there is one."""
    from geneb.cli.console import complain, progress, report, status
    from geneb.stores.verify import verify_store

    result = verify_store(store, clean_strays=clean, progress=progress(quiet=quiet))
    rows = [
        ("store", str(result.path)),
        ("sealed", "yes" if result.sealed else "no"),
        ("tasks verified", f"{result.tasks:,}"),
        ("blocks", f"{result.blocks:,}"),
        ("bytes", f"{result.bytes:,}"),
        ("faults", f"{len(result.faults):,}"),
    ]
    report(result.as_json(), rows, as_json=as_json)
    for fault in result.faults:
        complain(str(fault))
    if result.strays:
        status(
            f"{len(result.strays)} stray file(s) of interrupted writers; harmless, "
            "`geneb store verify --clean` removes them"
        )
    if not result.holds:
        raise WorkError(
            f"{len(result.faults)} fault(s): this store does not hold what it states",
            where=str(store),
        )
    status("everything holds")


@command.command(
    epilog="Example: geneb store reproduce grover.zarr --model GROVER --data DIR --sample 200"
)
@_STORE
@model_options(writing=False)
@data_option()
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    default=64,
    show_default=True,
    metavar="N",
    help="How many rows to draw.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    metavar="N",
    help="Of the draw. Default: a random one, so that nobody can know the rows beforehand.",
)
@json_option()
def reproduce(
    store: Path, *, model: str | None, extractor: str | None, as_json: bool, **options: Any
) -> None:
    """Embed rows of a store again, drawn at random, and compare; exit 1 if one differs.

    Rows are found in the task CSVs by their ids; tasks without a CSV are left out. What is printed
    with --json is a record that may be kept.
    """
    source = model_source(model, extractor)
    from geneb.cli.console import complain, report, status
    from geneb.embedding.reproduce import reproduce_rows

    # Stdout is for the record alone, whatever an extractor prints.
    with contextlib.redirect_stdout(sys.stderr):
        result = reproduce_rows(store, source, **options)
    report(result.model_dump(mode="json"), _reproduced_rows(result), as_json=as_json)
    for one in result.differences:
        status(f"fingerprint, {one.field}: {one.store!r} in the store, {one.model!r} of the model")
    for fault in result.faults:
        size = "" if fault.difference is None else f", a difference of {fault.difference:.3g}"
        complain(
            f"{store}, task {fault.task}, {fault.split}, row {fault.row}: {fault.reason}{size}"
        )
    if not result.reproduced:
        raise WorkError(
            f"this store was not made by {result.model} as it is run here",
            where=str(store),
            expected=f"vectors within {result.tolerance:g} of their root mean square",
            found=f"{result.failing:,} of {result.sample:,} rows are others",
            fix=_how_to_run_it(result),
        )
    status(f"the {result.sample:,} rows that were drawn are those that {result.model} makes")


def _how_to_run_it(result: RowReproduction) -> str:
    """Return with which options the model would be run as the store says that it was."""
    told = [
        f"{_OPTIONS[one.field]} {one.store}"
        for one in result.differences
        if one.field in _OPTIONS and one.store is not None
    ]
    if told:
        return f"run it as the store says that it was made: {' '.join(told)}"
    return "compare the fingerprint in `geneb store info` with --model and --weights"


def _reproduced_rows(result: RowReproduction) -> list[tuple[str, str]]:
    return [
        ("store made by", result.store_model),
        ("embedded again with", result.model),
        ("device", result.device),
        ("tasks", f"{len(result.manifests):,}"),
        ("tasks left out", ", ".join(result.left_out) or "none"),
        ("rows", f"{result.rows:,}"),
        ("rows drawn", f"{result.sample:,}"),
        ("seed", str(result.seed)),
        ("difference allowed", f"{result.tolerance:g}"),
        ("largest relative difference", _figure(result.largest_relative)),
        ("largest absolute difference", _figure(result.largest_absolute)),
        ("smallest cosine", _figure(result.smallest_cosine)),
        ("difference of the canary", _figure(result.canary_difference)),
        ("rows that differ", f"{result.failing:,}"),
        ("reproduced", "yes" if result.reproduced else "no"),
    ]


def _figure(value: float | None) -> str:
    return "not known" if value is None else f"{value:.8g}"

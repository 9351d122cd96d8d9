"""``geneb store``: info and verify."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from geneb.cli.options import json_option, quiet_option
from geneb.errors import WorkError

_STORE = click.argument("store", type=click.Path(path_type=Path))


@click.group(name="store")
def command() -> None:
    """Look at embedding stores and verify them."""


@command.command()
@_STORE
@json_option()
def info(store: Path, *, as_json: bool) -> None:
    """Show what made a store and what is in it; nothing is recomputed."""
    from geneb.cli.console import print_json, table
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
        *((f"  {name}", str(value)) for name, value in parameters.items()),
        ("token budget", f"{facts['token_budget']:,}"),
        ("tasks complete", f"{len(facts['tasks']):,}"),
        ("tasks incomplete", ", ".join(facts["incomplete"]) or "none"),
        ("runs", f"{len(facts['runs']):,}"),
        ("size", f"{facts['bytes'] / 1e6:,.1f} MB in {facts['files']:,} files"),
    ]
    table(["", ""], head)
    columns = ["task", "split", "rows", "computed", "copied", "truncated", "non-ACGT", "empty"]
    table(columns, [_split_row(row) for row in facts["splits"]], numeric=columns[2:])


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

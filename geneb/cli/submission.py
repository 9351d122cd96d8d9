"""``geneb submission``: arguments, and what is printed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from geneb.cli.options import json_option, out_option, quiet_option, statement_options
from geneb.cli.reproduce import reproduce

if TYPE_CHECKING:
    from collections.abc import Sequence

    from geneb.errors import Fault
    from geneb.reporting.validate import Report


@click.group(name="submission")
def command() -> None:
    """Pack results into a submission; validate and reproduce submissions."""


command.add_command(reproduce)


@command.command(epilog="Example: geneb submission validate leaderboard/submissions/my-model.json")
@click.argument(
    "files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@json_option()
def validate(files: tuple[Path, ...], *, as_json: bool) -> int:
    """Validate submissions: find every fault of every FILE; exit 1 if there is one.

    Looks at the form, at completeness, at what only maintainers may say, and warns of scores
    that the benchmark's test sets cannot give. Evidence files are validated too.
    """
    from geneb.cli.console import print_json, status
    from geneb.reporting.validate import validate_files

    reports = validate_files(files)
    if as_json:
        print_json({"valid": all(one.valid for one in reports), "files": _describe(reports)})
    elif _print_reports(reports):
        status("what is alike is told once; --json lists every fault")
    faults = sum(len(one.faults) for one in reports)
    warnings = sum(len(one.warnings) for one in reports)
    valid = sum(one.valid for one in reports)
    status(f"{valid} of {len(reports)} file(s) valid, {faults} fault(s), {warnings} warning(s)")
    if not any(one.read for one in reports):
        return 2
    return 1 if faults else 0


def _describe(reports: Sequence[Report]) -> list[dict[str, Any]]:
    return [
        {
            "file": str(one.path),
            "model_id": one.model_id,
            "valid": one.valid,
            "faults": [_fields(fault) for fault in one.faults],
            "warnings": [_fields(fault) for fault in one.warnings],
        }
        for one in reports
    ]


def _fields(fault: Fault) -> dict[str, str | None]:
    return {
        "path": fault.where,
        "problem": fault.problem,
        "expected": fault.expected,
        "found": fault.found,
        "fix": fault.fix,
    }


def _print_reports(reports: Sequence[Report]) -> bool:
    """Print what was found; return whether faults were put together."""
    from geneb.base.text import plain
    from geneb.reporting.faults import in_brief

    shortened = False
    for report in reports:
        name = plain(str(report.path), limit=1000)
        if report.valid:
            click.echo(f"{name}: valid")
        for word, found in (("fault", report.faults), ("warning", report.warnings)):
            brief = in_brief(found)
            shortened |= len(brief) < len(found)
            for fault in brief:
                place = "" if fault.where == "$" else f" at {fault.where}"
                kind = f"{word}{place}: " if report.read else ""
                text = f"{name}: {kind}{replace(fault, where='')}"
                click.echo("\n".join(_lines(text)))
    return shortened


def _lines(text: str) -> list[str]:
    from geneb.base.text import plain

    return [plain(line, limit=2000) for line in text.split("\n")]


@command.command(
    epilog="Example: geneb submission pack results/my-model --out leaderboard/submissions "
    "--display 'My model' --params 86000000"
)
@click.argument(
    "results", metavar="RESULTS...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@out_option("Folder for <model id>.json and <model id>.evidence.json.")
@click.option("--model-id", help="For the published runner's files, which do not say.")
@statement_options()
@click.option(
    "--store",
    type=click.Path(path_type=Path),
    help="The store that was probed: puts its whole fingerprint into the evidence.",
)
@click.option(
    "--calibration",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What `geneb analyze backends --out` stored; scores of the backend cuml need it.",
)
@click.option(
    "--partial", is_flag=True, help="Write <model id>.partial.json, which is not valid, for a look."
)
@click.option("--force", is_flag=True, help="Replace files with other content.")
@quiet_option()
def pack(
    results: tuple[Path, ...],
    out: Path,
    *,
    model_id: str | None,
    store: Path | None,
    calibration: Path | None,
    partial: bool,
    force: bool,
    quiet: bool,
    **statement: Any,
) -> None:
    """Pack RESULTS of `geneb probe` into submissions in the published schema.

    Everything that a submission must have is checked first: all tasks, all regimes, the
    published protocol and seeds. What the schema has no room for goes into the evidence file.
    RESULTS may also be a folder of the published runner's results_*.json.
    """
    from geneb.cli.console import status
    from geneb.probing.calibration import read_calibration
    from geneb.reporting.pack import Statement, write_packed
    from geneb.reporting.pack import pack as pack_results
    from geneb.stores import open_store

    packed = pack_results(
        results,
        Statement(**statement),
        model_id=model_id,
        store=open_store(store) if store else None,
        calibration=read_calibration(calibration) if calibration else None,
        partial=partial,
    )
    for path in write_packed(packed, out, force=force):
        click.echo("\n".join(_lines(str(path))))
    if not quiet:
        for one in packed:
            for note in one.notes:
                status(f"{one.model_id}: {note}")
            if not one.complete:
                status(f"{one.model_id}: incomplete, so it cannot be submitted")


@command.command(
    epilog="Example: geneb submission card my-model.zarr results/my-model --out card.md"
)
@click.argument(
    "sources", metavar="RESULTS|STORE...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@out_option("The Markdown file.")
@click.option("--force", is_flag=True, help="Replace a file with other content.")
def card(sources: tuple[Path, ...], out: Path, *, force: bool) -> None:
    """Write a model card: what is known is filled in, what is not is marked.

    RESULTS or STORE, or both, of one model.
    """
    from geneb.base.files import atomic_write
    from geneb.reporting.card import FILL_IN, make_card
    from geneb.reporting.pack import refuse_to_replace

    text = make_card(sources)
    if not force:
        refuse_to_replace(out, text)
    out.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(out, text)
    click.echo("\n".join(_lines(str(out))))

    from geneb.cli.console import status

    status(f"{text.count(FILL_IN)} answers are {FILL_IN.strip('*')}")


@command.command()
def schema() -> None:
    """Print the JSON Schema of a submission."""
    from geneb.reporting.submission import schema_text

    click.echo(schema_text(), nl=False)

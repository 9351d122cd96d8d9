"""``geneb leaderboard``: arguments, and what is printed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from geneb.cli.options import json_option, out_option, parse_params

if TYPE_CHECKING:
    from geneb.reporting.tables import Standing, Table
    from geneb.reporting.view import View


@click.group()
def command() -> None:
    """Compare the scores of models; build and serve the leaderboard."""


@command.command("show", epilog="Example: geneb leaderboard show --category 'Splice Sites' --top 5")
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--regime",
    type=click.Choice(["full", "10shot", "1shot"]),
    default="full",
    show_default=True,
    help="How much of the train set was fitted.",
)
@click.option(
    "--metric",
    type=click.Choice(["MCC", "Acc", "F1"]),
    default="MCC",
    show_default=True,
    help="What is shown and ranked by.",
)
@click.option(
    "--by",
    type=click.Choice(["overall", "category", "task"]),
    help="How far all scores are broken down. Default: overall, or task where no model has all "
    "tasks.",
)
@click.option(
    "--category",
    "categories",
    multiple=True,
    metavar="C",
    help="Show this category and rank by it (by the mean of several); may be given several times.",
)
@click.option(
    "--task",
    "tasks",
    multiple=True,
    metavar="X",
    help="The same for a task id, label or glob.",
)
@click.option(
    "--min-params",
    callback=parse_params,
    metavar="N",
    help="Show only models with at least N parameters, such as 500M or 1.2B.",
)
@click.option(
    "--max-params",
    callback=parse_params,
    metavar="N",
    help="Show only models with at most N parameters.",
)
@click.option(
    "--provenance",
    "provenances",
    multiple=True,
    type=click.Choice(["official", "verified", "scores-verified", "self-reported"]),
    help="Show only these; may be given several times.",
)
@click.option("--top", type=click.IntRange(min=1), metavar="N", help="Show only the first N.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json", "md"]),
    default="table",
    show_default=True,
    help="CSV and JSON are for programs: full precision, model ids.",
)
@json_option()
def show(paths: tuple[Path, ...], *, form: str, as_json: bool, **query: Any) -> None:
    """Show a table of models: the leaderboard's, or those of results folders and submissions.

    Macro is the mean of the categories, micro the mean of the tasks; both stand only where all
    tasks of the benchmark have a score. Models are ranked by macro in full precision; equal ones
    share a rank and the next is left out (1, 2, 2, 4). Ranks count all models that were read,
    also those that are not shown.
    """
    from geneb.benchmark.spec import load_spec
    from geneb.cli.console import print_json, status
    from geneb.reporting.entries import backend_notes, entries_of, read_leaderboard
    from geneb.reporting.shipped import shipped_sources
    from geneb.reporting.view import Query, look

    entries = entries_of(paths) if paths else list(read_leaderboard(*shipped_sources()).entries)
    asked = Query(**query, for_people=form in ("table", "md"))
    view = look(entries, asked, load_spec())
    if as_json or form == "json":
        facts = {"regime": asked.regime, "metric": asked.metric, "protocol": entries[0].protocol}
        models = [_describe(one, view) for one in view.models]
        print_json({**facts, "models": models})
    else:
        _print_table(view.table, form)
    status(f"{asked.metric}, regime {asked.regime}; ranked by {view.ranked_by}")
    if any(one.scores.own for one in view.models):
        status("tasks outside the benchmark never enter macro, micro or a category")
    for note in backend_notes([one.entry for one in view.models]):
        status(note)
    for one in view.models:
        if not one.scores.tasks and not one.scores.own:
            status(f"{one.model_id} has no scores in the regime {asked.regime}")


def _describe(one: Standing, view: View) -> dict[str, Any]:
    entry, scores = one.entry, one.scores
    facts: dict[str, Any] = {
        "rank": one.rank,
        "model_id": entry.model_id,
        "display": entry.display,
        "params": entry.params,
        "provenance": entry.provenance,
        "backend": entry.backend,
        "macro": scores.macro,
        "micro": scores.micro,
        "tasks_present": len(scores.tasks),
    }
    if view.categories:
        facts["categories"] = {name: scores.categories[name] for name in view.categories}
    elif view.task_ids:
        found = {**scores.tasks, **scores.own}
        facts["tasks"] = {task: found.get(task) for task in view.task_ids}
    elif view.by == "category":
        facts["categories"] = scores.categories
    elif view.by == "task":
        facts["tasks"] = scores.tasks
        facts["own_tasks"] = scores.own
    return facts


def _print_table(found: Table, form: str) -> None:
    from geneb.cli.console import table
    from geneb.reporting.formats import cell_text, numeric_columns, to_csv, to_markdown

    if form == "csv":
        click.echo(to_csv(found.columns, found.rows), nl=False)
    elif form == "md":
        click.echo(to_markdown(found), nl=False)
    else:
        rows = [[cell_text(cell) for cell in row] for row in found.rows]
        table(found.columns, rows, numeric=numeric_columns(found))


@command.command("build", epilog="Example: geneb leaderboard build --check")
@click.option(
    "--submissions",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of <model id>.json. Default: those that come with geneb.",
)
@click.option(
    "--verifications",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of verification records. Default: those that come with geneb.",
)
@out_option(
    "Folder for tables/ and site/. Default: the checkout's leaderboard/, tables only.",
    required=False,
)
@click.option("--check", is_flag=True, help="Write nothing; compare with what is there.")
@click.option("--no-site", is_flag=True, help="Tables only.")
@click.option(
    "--parquet",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write all scores as Parquet; needs pyarrow.",
)
def build(
    *,
    submissions: Path | None,
    verifications: Path | None,
    out: Path | None,
    check: bool,
    no_site: bool,
    parquet: Path | None,
) -> int:
    """Build the leaderboard's tables and site from submissions.

    Every submission must be valid and complete: one that is not is named, with all that is wrong
    with it, and nothing is written. The same submissions give the same bytes on every machine;
    with --check they are compared with the files that are there. Without --out the tables of
    the checkout are meant, and no site is built.
    """
    from geneb.benchmark.spec import load_spec
    from geneb.cli.console import complain, status
    from geneb.reporting.build import build_page, build_tables, write_files, write_parquet
    from geneb.reporting.differences import file_differences
    from geneb.reporting.entries import read_leaderboard
    from geneb.reporting.shipped import checkout_folder, shipped_sources

    if check and parquet:
        raise click.UsageError("--check writes nothing: leave out --parquet")
    folder = out or checkout_folder("the leaderboard")
    shipped = shipped_sources()
    leaderboard = read_leaderboard(submissions or shipped[0], verifications or shipped[1])
    for note in leaderboard.notes:
        status(f"note: {note}")
    tables = build_tables(leaderboard.entries, load_spec())
    # The checkout's leaderboard/site/ holds what the page is made of.
    page = {} if no_site or out is None else build_page(leaderboard.entries, load_spec())
    if parquet:
        write_parquet(parquet, leaderboard.entries, load_spec())
    if check:
        faults = file_differences(folder / "tables", tables)
        faults += file_differences(folder / "site", page, exhaustive=False)
        for fault in faults:
            complain(str(fault))
        status(f"{len(tables) + len(page)} files compared, {len(faults)} faults")
        return 1 if faults else 0
    write_files(folder / "tables", tables)
    write_files(folder / "site", page)
    status(f"{len(leaderboard.entries)} models; {len(tables) + len(page)} files in {folder}")
    return 0


@command.command("serve", epilog="Example: geneb leaderboard serve --port 8000")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="0 takes any free one.",
)
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Serve a site that was built there. Default: build the shipped one now.",
)
def serve(*, port: int, folder: Path | None) -> None:
    """Show the leaderboard's site to a browser on this machine, until Ctrl-C."""
    import signal
    import tempfile

    # SIGTERM ends it as Ctrl-C does, so that the temporary folder is removed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="geneb-site-") as temporary:
        try:
            _serve(folder or _build_here(Path(temporary)), port)
        except KeyboardInterrupt:
            click.echo("stopped", err=True)


def _build_here(folder: Path) -> Path:
    from geneb.benchmark.spec import load_spec
    from geneb.reporting.build import build_page, build_tables, write_files
    from geneb.reporting.entries import read_leaderboard
    from geneb.reporting.shipped import shipped_sources

    entries = read_leaderboard(*shipped_sources()).entries
    write_files(folder, build_page(entries, load_spec()))
    write_files(folder / "tables", build_tables(entries, load_spec()))
    return folder


def _serve(folder: Path, port: int) -> None:
    from geneb.reporting.serve import make_server

    with make_server(folder, port) as server:
        click.echo(server.address)
        server.serve_forever()

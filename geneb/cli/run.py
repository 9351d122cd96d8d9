"""``geneb run``: embed, probe and pack, one after the other."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from geneb.cli.options import (
    MODEL_ARGUMENTS,
    data_option,
    model_options,
    model_source,
    out_option,
    quiet_option,
    statement_options,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from geneb.base.progress import Progress
    from geneb.reporting.pack import Statement


@click.command(
    epilog="""
    \b
    Examples:
      geneb run --model kmer4 --params 256 --data DIR --out kmer4 --limit 2
      geneb run --extractor mine.py:MyModel --display Mine --params 86000000 --data DIR --out mine
    """
)
@model_options()
@data_option()
@out_option("Folder for store, results and submission; resumed if it holds some.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="Only the first N tasks of the benchmark whose CSVs are there: a test, not a submission.",
)
@statement_options()
@click.option("--force", is_flag=True, help="Replace a submission with other content.")
@quiet_option()
def command(
    *,
    model: str | None,
    extractor: str | None,
    data: Path,
    out: Path,
    limit: int | None,
    force: bool,
    quiet: bool,
    **options: Any,
) -> int:
    """Embed all tasks with a model, probe the store, and pack a submission.

    Writes OUT/<model>.zarr, OUT/results and OUT/<model>.json with its evidence. Started again,
    it goes on where it stopped. With --limit the submission is called <model>.partial.json and
    is not valid. Under another --layer, --pooling, --preset or --long-input than its own a model
    is submitted under a name of its own, such as GROVER+cls.
    """
    from geneb.cli import Interrupted
    from geneb.cli.console import progress, status
    from geneb.cli.embed import stop_at_signals
    from geneb.embedding.run import embed
    from geneb.reporting.pack import Statement, check_statement

    source = model_source(model, extractor)
    told = {name: options.pop(name) for name in MODEL_ARGUMENTS}
    if told["layer"] == "all":
        raise click.UsageError("a submission is of one layer; --layer all is for geneb embed")
    name = _known_as(source, told)
    said = Statement(**options)
    # Before hours of work, not after them.
    check_statement(name, said)
    tasks = _choose_tasks(data, limit)
    store = out / f"{name}.zarr"
    with stop_at_signals() as stop, contextlib.redirect_stdout(sys.stderr):
        summary = embed(
            source,
            data=data,
            store=store,
            tasks=tasks,
            progress=progress(quiet=quiet),
            stop=stop,
            **told,
        )
    for warning in summary.warnings:
        status(f"note: {warning}")
    if stop.signum is not None and summary.stopped:
        status("stopped; run the same command again to resume")
        raise Interrupted(stop.signum)
    if not _probe(store, out / "results", tasks, progress(quiet=quiet)):
        return 1
    _pack(out, name, store, said, trial=limit is not None, force=force)
    return 0


def _known_as(source: str, told: dict[str, Any]) -> str:
    """Return the id of what is submitted; where a recipe is asked for, the loaded model tells."""
    own = told["model_id"] or source.rpartition(":")[2]
    if not any(told[name] for name in ("layer", "pooling", "preset", "long_input")):
        return own
    from geneb.embedding.naming import load_model, recipe_name

    recipe = {name: told[name] for name in told if name not in ("model_id", "batch_tokens")}
    with contextlib.redirect_stdout(sys.stderr):
        return recipe_name(load_model(source, recipe), told["model_id"], recipe)


def _choose_tasks(data: Path, limit: int | None) -> list[str]:
    """Return the ids of the first tasks that are there; none, which means all, without a limit.

    Raises
    ------
    NotFoundError
        If a CSV is missing; what to do about it is told in options that this command has.
    """
    from geneb.benchmark.spec import load_spec
    from geneb.errors import NotFoundError
    from geneb.tasks.select import find_task_files

    spec = load_spec()
    if limit:
        files = find_task_files(data, spec.task_ids, spec, available=True)
        return [path.stem for path in files[:limit]]
    try:
        find_task_files(data, [], spec)
    except NotFoundError as error:
        if data.is_dir():
            error.fix = (
                "add them, or try it out with --limit N on what is there; "
                "`geneb embed --available` and `geneb probe` take part of the benchmark"
            )
        raise
    return []


def _probe(store: Path, results: Path, tasks: Sequence[str], display: Progress) -> bool:
    """Probe by the published protocol; return whether every task could be probed."""
    from geneb.cli.console import complain
    from geneb.probing.backends import SklearnBackend, open_backend
    from geneb.probing.protocol import choose_protocol
    from geneb.probing.run import run_probe

    (outcome,) = run_probe(
        [store],
        out=results,
        tasks=tasks,
        protocol=choose_protocol(),
        backend=open_backend(SklearnBackend.name),
        progress=display,
    )
    for fault in outcome.failures:
        complain(str(fault))
    return not outcome.failures


def _pack(
    out: Path, name: str, store: Path, statement: Statement, *, trial: bool, force: bool
) -> None:
    from geneb.base.text import plain
    from geneb.cli.console import status
    from geneb.reporting.pack import pack, write_packed
    from geneb.stores import open_store

    packed = pack([out / "results" / name], statement, store=open_store(store), partial=trial)
    for path in write_packed(packed, out, force=force, trial=trial):
        click.echo(plain(str(path), limit=1000))
    for note in packed[0].notes:
        status(note)
    if trial:
        status("this was a test: such a file cannot be submitted")

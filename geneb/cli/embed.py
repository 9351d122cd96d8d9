"""``geneb embed``."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import click

from geneb.cli.options import (
    data_option,
    json_option,
    model_options,
    model_source,
    quiet_option,
    store_option,
    tasks_option,
)


class StopFlag:
    """Set by the first SIGINT or SIGTERM; a second one ends the process at once."""

    def __init__(self) -> None:
        self.signum: int | None = None

    def __call__(self) -> bool:
        """Return whether a signal has come."""
        return self.signum is not None

    def receive(self, signum: int, frame: FrameType | None) -> None:
        """Handle a signal: the block at hand is finished, and the store can be resumed."""
        del frame
        from geneb.cli.console import status

        self.signum = signum
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        status("stopping once the block at hand is written; once more stops at once")


@contextlib.contextmanager
def stop_at_signals() -> Iterator[StopFlag]:
    """Turn SIGINT and SIGTERM into a flag for the length of a with-block."""
    flag = StopFlag()
    before = {
        number: signal.signal(number, flag.receive) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield flag
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@click.command(
    epilog="""
    \b
    Examples:
      geneb embed --model kmer4 --data DIR --store kmer4.zarr --tasks "GUE mouse 3"
      geneb embed --extractor mine.py:MyModel --data DIR --store mine.zarr --available
      geneb embed --model MODEL --weights FOLDER --layer all --data DIR --store layers/
    """
)
@model_options()
@data_option()
@store_option()
@tasks_option()
@click.option(
    "--splits",
    multiple=True,
    metavar="NAME",
    help="A split to embed besides train and test; may be given several times.",
)
@click.option(
    "--available",
    is_flag=True,
    help="Embed the tasks whose CSVs are there; without it all 100 must be.",
)
@click.option(
    "--replace-task",
    "replace_tasks",
    multiple=True,
    metavar="ID",
    help="Drop this task from the store and embed it anew; again each time that it is asked for.",
)
@click.option(
    "--store-dtype",
    type=click.Choice(["float32", "float16"]),
    default="float32",
    show_default=True,
    help="What vectors are stored as; float16 changes scores a little.",
)
@json_option()
@quiet_option()
def command(
    *,
    model: str | None,
    extractor: str | None,
    store: Path,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Write a model's frozen embeddings of tasks into a store.

    Started again, it resumes: complete tasks are kept, missing or damaged blocks of others are
    computed. A store holds one kind of embedding; another is refused with the difference shown.
    Under another --layer, --pooling, --preset or --long-input than its own a model is known under
    a name of its own, such as GROVER+layer_03: `geneb probe` takes all its layers at once.
    """
    source = model_source(model, extractor)
    from geneb.cli import Interrupted
    from geneb.cli.console import progress, report, status
    from geneb.embedding.run import embed

    # Stdout is for the summary alone, whatever an extractor prints.
    with stop_at_signals() as stop, contextlib.redirect_stdout(sys.stderr):
        summary = embed(
            source,
            store=store,
            progress=progress(quiet=quiet),
            stop=stop,
            **options,
        )
    for warning in summary.warnings:
        status(f"note: {warning}")
    report(summary.as_json(), _rows(summary), as_json=as_json)
    if summary.unsealed:
        status(f"not sealed: {summary.unsealed}")
    if stop.signum is not None and summary.stopped:
        status("stopped; run the same command again to resume")
        raise Interrupted(stop.signum)
    every = store / "layer_*.zarr" if summary.layers else store
    one = store / min(summary.layers) if summary.layers else store
    status(f"next: geneb store verify {one}; geneb probe {every} --out results")


def _rows(summary: Any) -> list[tuple[str, str]]:
    return [
        ("store", summary.store),
        ("model", summary.model),
        ("fingerprint", summary.fingerprint[:16]),
        ("dim", f"{summary.dim:,}"),
        ("device", summary.device),
        *([("layers", f"{len(summary.layers):,}")] if summary.layers else []),
        ("tasks embedded now", f"{len(summary.embedded):,}"),
        ("tasks complete before", f"{len(summary.complete):,}"),
        ("rows computed", f"{summary.rows_computed:,}"),
        ("rows copied", f"{summary.rows_copied:,}"),
        *(
            [("rows run again in float32", f"{summary.float32_retries:,}")]
            if summary.float32_retries
            else []
        ),
        ("seconds", f"{summary.seconds:.1f}"),
    ]

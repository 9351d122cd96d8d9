"""``geneb demo``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from geneb.cli.options import out_option, quiet_option
from geneb.errors import WorkError

if TYPE_CHECKING:
    from geneb.base.progress import Progress

MODELS = ("kmer4", "onehot128")


@click.command()
@out_option("Folder for data, stores and results.", default="geneb-demo")
@quiet_option()
def command(*, out: Path, quiet: bool) -> None:
    """Embed, verify, probe and compare, end to end, on two real tasks that are shipped.

    Two baselines that need no weights stand in for models. Takes well under a minute.
    """
    from geneb.cli.console import progress, status, table

    began = time.monotonic()
    data = _copy_data(out / "data")
    status(f"data: {data}")
    stores = [_make_store(model, data, out, progress(quiet=quiet)) for model in MODELS]
    status("probing: 3 regimes, 5 seeds")
    rows = _probe(stores, out / "results", progress(quiet=quiet))
    columns = ["task", "regime", "metric", *MODELS, "random guessing"]
    table(columns, rows, numeric=columns[3:])
    status(
        "full fits raw vectors with the published penalty: small k-mer frequencies need large "
        "weights, so a few rows a class can score higher"
    )
    for line in _next_steps(out, time.monotonic() - began):
        status(line)


def _copy_data(folder: Path) -> Path:
    """Copy the shipped CSVs to where they can be looked at."""
    from importlib.resources import files

    from geneb.base.files import atomic_write

    folder.mkdir(parents=True, exist_ok=True)
    for source in sorted(files("geneb.demo").iterdir(), key=lambda entry: entry.name):
        if source.name.endswith(".csv"):
            atomic_write(folder / source.name, source.read_bytes())
    return folder


def _make_store(model: str, data: Path, out: Path, display: Progress) -> Path:
    from geneb.cli.console import status
    from geneb.embedding.run import embed
    from geneb.stores.verify import verify_store

    path = out / f"{model}.zarr"
    summary = embed(model, data=data, store=path, available=True, progress=display)
    result = verify_store(path)
    if not result.holds:
        raise WorkError(str(result.faults[0]))
    status(
        f"{path}: {summary.rows_computed:,} rows of {summary.dim} numbers embedded, "
        f"{summary.rows_copied:,} copied; {result.blocks} blocks verified"
    )
    return path


def _probe(stores: list[Path], results: Path, display: Progress) -> list[list[str]]:
    """Probe both stores; return the table's rows, guessing last."""
    from geneb.benchmark.spec import load_spec
    from geneb.probing.chance import guess_scores
    from geneb.probing.run import probe
    from geneb.reporting.formats import score_text
    from geneb.results import reported_value
    from geneb.stores import open_store

    spec = load_spec()
    frame = probe(stores, results, progress=display)
    rows = []
    for task in sorted(frame["task"].unique()):
        stored = open_store(stores[0]).task(task)
        guess = guess_scores(stored.labels("train"), stored.labels("test"))
        for regime in spec.regimes:
            for metric in spec.metrics:
                cells = [
                    reported_value(_values(frame, model, task, regime, metric), spec.seeds)
                    for model in MODELS
                ]
                numbers = [score_text(value) for value in (*cells, guess[metric])]
                rows.append([task, regime, metric, *numbers])
    return rows


def _values(frame: Any, model: str, task: str, regime: str, metric: str) -> list[float]:
    chosen = (frame["model"] == model) & (frame["task"] == task) & (frame["regime"] == regime)
    return frame.loc[chosen, metric].tolist()


def _next_steps(out: Path, seconds: float) -> list[str]:
    embed = f"geneb embed --model kmer6 --data {out / 'data'} --available --store"
    return [
        f"done in {seconds:.0f} s; everything lies in {out}: data, stores (*.zarr), results",
        "next:",
        f"  geneb store info {out / 'kmer4.zarr'}",
        f"  geneb leaderboard show {out / 'results'}",
        f"  {embed} {out / 'kmer6.zarr'}",
        f"  geneb probe {out / 'kmer6.zarr'} --out {out / 'results'}",
        "  geneb task list",
        "your own model: see extractors/README.md, then geneb embed --extractor FILE.py:CLASS",
    ]

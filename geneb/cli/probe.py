"""``geneb probe``: arguments, and what is printed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from geneb.cli.options import json_option, out_option, quiet_option, tasks_option

if TYPE_CHECKING:
    from geneb.probing.job import StoreOutcome
    from geneb.results import Fit


def _split(ctx: click.Context, param: click.Parameter, value: str | None) -> list[str] | None:
    """Return the parts of a comma-separated option."""
    del ctx, param
    return None if value is None else [part.strip() for part in value.split(",")]


def _split_integers(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> list[int] | None:
    """Return the parts of a comma-separated option as integers."""
    parts = _split(ctx, param, value)
    if parts is None:
        return None
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise click.BadParameter(f"{value!r} is not a list of integers such as 13,17,42")
    return [int(part) for part in parts]


@click.command("probe")
@click.argument(
    "stores", metavar="STORE...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@out_option("Folder for the results, one sub-folder a model; resumed if it holds some.")
@tasks_option()
@click.option(
    "--regimes", metavar="R,R", callback=_split, help="Some of full,10shot,1shot. Default: all."
)
@click.option(
    "--seeds",
    metavar="N,N",
    callback=_split_integers,
    help="Other seeds than the protocol's, for experiments; the results say so.",
)
@click.option(
    "--protocol", "protocol_id", default="geneb-lr-1", show_default=True, help="What is fitted."
)
@click.option("--backend", default="sklearn", show_default=True, help="What solves the fits.")
@json_option()
@quiet_option()
def command(
    stores: tuple[Path, ...],
    out: Path,
    tasks: tuple[str, ...],
    regimes: list[str] | None,
    seeds: list[int] | None,
    protocol_id: str,
    backend: str,
    *,
    as_json: bool,
    quiet: bool,
) -> int:
    r"""Fit linear probes to the embeddings of one STORE or several.

    Probes every complete task that has labels, or those named with --tasks, in three regimes: all
    train rows, 10 and 1 of each class. A task that is done already is kept; an interrupted probe
    is resumed by the same command. Under other versions, another BLAS or number of threads all
    tasks of a results folder are probed again, or none.

    \b
    geneb probe kmer.zarr --out results
    geneb probe *.zarr --out results --tasks "Promoters" --regimes full
    """
    from geneb.cli.console import complain, progress, status
    from geneb.probing.backends import open_backend
    from geneb.probing.protocol import choose_protocol
    from geneb.probing.run import run_probe

    outcomes = run_probe(
        stores,
        out=out,
        tasks=tasks,
        protocol=choose_protocol(protocol_id, regimes, seeds),
        backend=open_backend(backend),
        progress=progress(quiet=quiet),
    )
    if as_json:
        _print_json(outcomes)
    else:
        _print_table(outcomes)
    if not quiet:
        status(_convergence([fit for one in outcomes for fit in one.fits]))
        for one in outcomes:
            status(f"results: {one.folder}")
    failures = [fault for one in outcomes for fault in one.failures]
    for fault in failures:
        complain(str(fault))
    return 1 if failures else 0


def _convergence(fits: list[Fit]) -> str:
    unconverged = [fit for fit in fits if fit.converged is False]
    if not unconverged:
        iterated = any(fit.converged is not None for fit in fits)
        return f"fits: {len(fits):,}" + (", all converged" if iterated else "")
    line = f"fits: {len(fits):,}, of which {len(unconverged):,} stopped before they converged"
    norms = [fit.gradient_norm for fit in unconverged if fit.gradient_norm is not None]
    if not norms:
        return f"{line} (column converged)"
    worst = max(norms)
    return f"{line}; largest gradient norm {worst:.2g} (columns converged, gradient_norm)"


def _print_json(outcomes: list[StoreOutcome]) -> None:
    from geneb.cli.console import print_json
    from geneb.results import summarise

    document: dict[str, Any] = {
        "models": [
            {
                "model_id": one.info.model_id,
                "protocol": one.info.protocol,
                "backend": one.info.backend,
                "results": summarise(one.results, one.info),
                "fits": len(one.fits),
                "unconverged": sum(fit.converged is False for fit in one.fits),
                "failed": [
                    {"where": fault.where, "problem": fault.problem} for fault in one.failures
                ],
            }
            for one in outcomes
        ]
    }
    print_json(document)


def _print_table(outcomes: list[StoreOutcome]) -> None:
    from geneb.cli.console import table
    from geneb.results import METRICS

    rows = [
        [one.info.model_id, task.origin.task, regime, *_values(one, fits)]
        for one in outcomes
        for task in one.results
        for regime, fits in task.by_regime().items()
    ]
    columns = ["model", "task", "regime", *METRICS, "MCC over seeds"]
    if len(outcomes) == 1:
        columns, rows = columns[1:], [row[1:] for row in rows]
    if rows:
        table(columns, rows, numeric=METRICS)


def _values(outcome: StoreOutcome, fits: list[Fit]) -> list[str]:
    """Return the cells of one regime: reported values, and how far the seeds lie apart."""
    import statistics

    from geneb.reporting.formats import score_text
    from geneb.results import METRICS, reported_value

    cells = []
    for metric in METRICS:
        values = [getattr(fit, metric) for fit in fits]
        cells.append(score_text(reported_value(values, outcome.info.seeds)))
    if len(fits) == 1:
        return [*cells, "one fit"]
    return [*cells, f"sd {score_text(statistics.stdev(fit.MCC for fit in fits))}"]

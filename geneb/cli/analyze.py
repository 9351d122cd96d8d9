"""``geneb analyze``: arguments, and what is printed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from geneb.cli.options import (
    json_option,
    out_option,
    prepare_backends,
    quiet_option,
    tasks_option,
)

if TYPE_CHECKING:
    from geneb.analysis.protocols import Distance
    from geneb.probing.calibration import Calibration


@click.group(name="analyze")
def command() -> None:
    """Ask questions of stores and results."""


@command.command(epilog="Example: geneb analyze protocols my-model.zarr --tasks Promoters")
@click.argument("store", metavar="STORE", type=click.Path(path_type=Path))
@tasks_option()
@json_option()
@quiet_option()
def protocols(store: Path, *, tasks: tuple[str, ...], as_json: bool, quiet: bool) -> int:
    """Tell how far the published protocol's fits are from their optimum.

    Fits each task of STORE by geneb-lr-1 and by geneb-lr-1-converged, on the same rows, and
    compares objective, gradient, predictions and scores. Of several seeds the largest difference
    is shown; scores are means over seeds, optimum minus published.
    """
    from dataclasses import asdict

    from geneb.analysis.protocols import distances
    from geneb.cli.console import complain, print_json, progress
    from geneb.errors import Fault
    from geneb.stores import open_store

    found, failures = [], []
    for one in distances(open_store(store), tasks, progress(quiet=quiet)):
        if isinstance(one, Fault):
            failures.append(one)
        else:
            found += one
    if as_json:
        print_json(
            {
                "distances": [asdict(one) for one in found],
                "failed": [{"where": one.where, "problem": one.problem} for one in failures],
            }
        )
    else:
        _print_distances(found)
    for fault in failures:
        complain(str(fault))
    return 1 if failures else 0


def _print_distances(distances: list[Distance]) -> None:
    from geneb.cli.console import table

    columns = [
        "task", "regime", "converged", "iterations", "objective gap", "gradient", "at optimum",
        "predictions", "MCC", "Acc", "F1",
    ]  # fmt: skip
    rows = [
        [
            one.task,
            one.regime,
            f"{one.converged}/{one.fits}",
            f"{one.n_iter:,}",
            f"{one.objective_gap:.2g}",
            f"{one.gradient_norm:.2g}",
            f"{one.optimum_gradient_norm:.2g}",
            f"{one.predictions:.2%}",
            *(f"{value:+.4f}" for value in (one.MCC, one.Acc, one.F1)),
        ]
        for one in distances
    ]
    table(columns, rows, numeric=columns[3:])


def _two_backends(ctx: click.Context, param: click.Parameter, value: str) -> list[str]:
    del ctx, param
    names = [name.strip() for name in value.split(",")]
    prepare_backends(*names)
    return names


@command.command(
    epilog="Example: geneb analyze backends my-model.zarr --backends sklearn,cuml --out cuml.json"
)
@click.argument("store", metavar="STORE", type=click.Path(path_type=Path))
@click.option(
    "--backends",
    metavar="A,B",
    default="sklearn,torch",
    show_default=True,
    callback=_two_backends,
    help="The reference, and what is compared with it.",
)
@tasks_option()
@out_option("The file that the calibration is stored in.", required=False)
@json_option()
@quiet_option()
def backends(
    store: Path,
    *,
    backends: list[str],
    tasks: tuple[str, ...],
    out: Path | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Tell how far apart the scores of two backends lie.

    Fits the first task of each category of STORE, or those named with --tasks, on both backends
    in all regimes and seeds. With --out the result is stored as a calibration, without which
    scores of the backend cuml cannot be submitted. Exits with 1 if scores of a task are more
    than 0.01 apart, or macro scores more than 0.002.
    """
    from geneb.analysis.backends import calibrate
    from geneb.benchmark.spec import load_spec
    from geneb.cli.console import complain, print_json, progress, status
    from geneb.probing.calibration import excesses, write_calibration
    from geneb.stores import open_store

    found = calibrate(open_store(store), backends, tasks, progress(quiet=quiet))
    if as_json:
        print_json(found.model_dump(mode="json"))
    else:
        _print_calibration(found)
    if out is not None:
        write_calibration(out, found)
        status(f"calibration: {out}")
    faults = list(excesses(found, load_spec()))
    for fault in faults:
        complain(str(fault))
    return 1 if faults else 0


def _print_calibration(calibration: Calibration) -> None:
    from geneb.benchmark.spec import load_spec
    from geneb.cli.console import table
    from geneb.results import METRICS

    spec = load_spec()
    rows = [
        [
            task_id,
            regime,
            f"{pair.coef:.2g}",
            f"{pair.predictions:.2%}",
            *(f"{pair.difference(metric):+.4f}" for metric in METRICS),
        ]
        for task_id, regimes in calibration.tasks.items()
        for regime, pair in regimes.items()
    ]
    for regime in spec.regimes:
        macro = [calibration.macro_difference(regime, metric, spec) for metric in METRICS]
        if None not in macro:
            rows.append(["macro", regime, "", "", *(f"{value:+.4f}" for value in macro)])
    columns = ["task", "regime", "coef", "predictions", *METRICS]
    table(columns, rows, numeric=columns[2:])

"""``geneb probe``: arguments, and what is printed."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from geneb.cli.options import backend_option, json_option, out_option, quiet_option, tasks_option

if TYPE_CHECKING:
    from geneb.probing.job import StoreOutcome
    from geneb.probing.protocol import Protocol
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


def _list_protocols(ctx: click.Context, param: click.Parameter, value: object) -> None:
    """Print the protocols and what they fit, and end."""
    del param
    if not value or ctx.resilient_parsing:
        return
    from geneb.cli.console import table
    from geneb.probing.own import registered
    from geneb.probing.protocol import PROTOCOLS

    rows = [[name, protocol.probe.describe()] for name, protocol in PROTOCOLS.items()]
    rows += [
        [name, f"{point.value}, of an installed package"]
        for name, point in registered().items()
        if name not in PROTOCOLS
    ]
    table(["protocol", "what is fitted"], rows)
    ctx.exit()


def _choose_protocol(
    protocol_id: str, own: str | None, regimes: list[str] | None, seeds: list[int] | None
) -> Protocol:
    from geneb.probing.protocol import choose_protocol, own_protocol

    if own is None:
        return choose_protocol(protocol_id, regimes, seeds)
    source = click.get_current_context().get_parameter_source("protocol_id")
    if source is not ParameterSource.DEFAULT:
        raise click.UsageError("--protocol and --probe exclude each other")
    return choose_protocol(own_protocol(own), regimes, seeds)


@contextlib.contextmanager
def _ending_at_sigterm() -> Iterator[None]:
    """End the run at SIGTERM as Ctrl-C does: what is done is kept, processes are ended."""
    from geneb.cli import Interrupted
    from geneb.cli.console import status

    received = []

    def stop(number: int, frame: object) -> None:
        del frame
        received.append(number)
        signal.signal(number, signal.SIG_DFL)  # a second one ends the run at once
        raise KeyboardInterrupt  # passes through all that handles errors

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except KeyboardInterrupt:
        if not received:
            raise
        status("stopped; run the same command again to resume")
        raise Interrupted(received[0]) from None
    finally:
        signal.signal(signal.SIGTERM, before)


@click.command(
    "probe",
    epilog="""
    \b
    geneb probe kmer.zarr --out results
    geneb probe *.zarr --out results --tasks "Promoters" --regimes full
    geneb probe kmer.zarr --out knn --protocol geneb-knn-1
    geneb probe kmer.zarr --out svm --probe sklearn.svm:LinearSVC
    """,
)
@click.argument(
    "stores", metavar="STORE...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@out_option("Folder for the results, one sub-folder a model; resumed if it holds some.")
@tasks_option()
@click.option(
    "--regimes",
    metavar="R,R",
    callback=_split,
    help="Such as full,10shot,50shot,5%: all rows, so many or such a share of each class. "
    "Default: the protocol's.",
)
@click.option(
    "--seeds",
    metavar="N,N",
    callback=_split_integers,
    help="Other seeds than the protocol's, for experiments; the results say so.",
)
@click.option(
    "--protocol",
    "protocol_id",
    metavar="ID",
    default="geneb-lr-1",
    show_default=True,
    help="What is fitted; --protocols lists them. Only the default's results are submitted.",
)
@click.option(
    "--protocols",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_protocols,
    help="List the protocols and what they fit, and exit.",
)
@click.option(
    "--probe",
    "own",
    metavar="MODULE:FACTORY",
    help="Your own estimator instead, as scikit-learn has them: a class, or a function that "
    "returns one. Its code is run.",
)
@backend_option()
@click.option(
    "--jobs",
    metavar="N",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Processes, each with its share of the cores; needs more memory.",
)
@json_option()
@quiet_option()
def command(
    stores: tuple[Path, ...],
    out: Path,
    tasks: tuple[str, ...],
    regimes: list[str] | None,
    seeds: list[int] | None,
    protocol_id: str,
    own: str | None,
    backend: str,
    *,
    jobs: int,
    as_json: bool,
    quiet: bool,
) -> int:
    """Fit linear probes to the embeddings of one STORE or several.

    Probes every complete task that has labels, or those named with --tasks, in three regimes: all
    train rows, 10 and 1 of each class. A task that is done already is kept; an interrupted probe
    is resumed by the same command. Under other versions, another BLAS or number of threads, which
    --jobs shares out, all tasks of a results folder are probed again, or none.
    """
    from geneb.cli.console import complain, progress, status
    from geneb.probing.backends import open_backend
    from geneb.probing.run import run_probe

    with _ending_at_sigterm():
        outcomes = run_probe(
            stores,
            out=out,
            tasks=tasks,
            protocol=_choose_protocol(protocol_id, own, regimes, seeds),
            backend=open_backend(backend),
            jobs=jobs,
            progress=progress(quiet=quiet),
        )
    if as_json:
        _print_json(outcomes)
    else:
        _print_table(outcomes)
    if not quiet:
        status(_convergence([fit for one in outcomes for fit in one.fits]))
        for one in outcomes:
            for line in _remarks(one, len(outcomes)):
                status(line)
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


def _remarks(outcome: StoreOutcome, stores: int) -> list[str]:
    """Return the lines that say what to know of the tasks; none where there is nothing."""
    from geneb.probing.remarks import remarks, tell

    lines = tell(remarks(outcome.results))
    if not lines:
        return []
    which = f" ({outcome.info.model_id})" if stores > 1 else ""
    return [f"what to know of these tasks{which}:", *(f"  {line}" for line in lines)]


def _print_json(outcomes: list[StoreOutcome]) -> None:
    from geneb.cli.console import print_json
    from geneb.probing.remarks import remarks
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
                "remarks": [asdict(remark) for remark in remarks(one.results)],
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

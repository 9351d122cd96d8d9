"""``geneb doctor``: what this installation can do, and whether it, or a model, is sound."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from geneb.cli.options import json_option, model_options, model_source, prepare_backends

if TYPE_CHECKING:
    from geneb.diagnosis import Diagnosis
    from geneb.embedding.checkup import Checkup


@click.command(
    epilog="""
    \b
    Exits with 1 if a check does not hold. Examples:
      geneb doctor --json > doctor.json
      geneb doctor --model GROVER
      geneb doctor --model GROVER --weights FOLDER --store grover.zarr
    """
)
@model_options(writing=False)
@click.option(
    "--store",
    type=click.Path(path_type=Path),
    help="With --model: a store that must hold this model's vectors.",
)
@json_option()
@click.pass_context
def command(
    context: click.Context,
    *,
    model: str | None,
    extractor: str | None,
    store: Path | None,
    as_json: bool,
    **told: Any,
) -> None:
    """Tell what is installed, what is missing and which command brings it.

    With --model or --extractor a model is examined instead: it is loaded twice, and must give the
    same finite vectors both times, whatever else is in the batch, and those that are recorded for
    it in the registry or in --store. A library that loads weights in a wrong way shows here.
    """
    if model is None and extractor is None:
        _examine_installation(context, as_json=as_json)
    else:
        _examine_model(
            context, model_source(model, extractor), store=store, told=told, as_json=as_json
        )


def _examine_installation(context: click.Context, *, as_json: bool) -> None:
    from geneb.cli.console import print_json
    from geneb.diagnosis import diagnose

    prepare_backends("torch")

    if told := _told(context):
        raise click.UsageError(f"{told} needs --model or --extractor")
    diagnosis = diagnose(Path())
    if as_json:
        print_json(diagnosis.as_json())
    else:
        _show(diagnosis)
    context.exit(0 if diagnosis.sound else 1)


def _told(context: click.Context) -> str:
    """Return the first option that was given and is about a model."""
    given = (
        option.opts[0]
        for option in context.command.params
        if option.name not in (None, "as_json")
        and context.get_parameter_source(str(option.name)) is not click.core.ParameterSource.DEFAULT
    )
    return next(given, "")


def _examine_model(
    context: click.Context, source: str, *, store: Path | None, told: dict[str, Any], as_json: bool
) -> None:
    from geneb.cli.console import print_json
    from geneb.embedding.checkup import check_model

    # Stdout is for the report alone, whatever an extractor prints.
    with contextlib.redirect_stdout(sys.stderr):
        checkup = check_model(source, store=store, **told)
    if as_json:
        print_json(checkup.as_json())
    else:
        _show_model(checkup)
    context.exit(0 if checkup.sound else 1)


def _show_model(checkup: Checkup) -> None:
    from geneb.cli.console import named_values, table

    speed = checkup.tokens_per_second
    rows = [
        ("model", checkup.model),
        ("device", checkup.device),
        ("computed in", checkup.compute_dtype),
        *named_values(checkup.parameters),
        ("weights", checkup.weights or "none"),
        ("tokenizer", checkup.tokenizer or "none"),
        ("dim", "not known" if checkup.dim is None else f"{checkup.dim:,}"),
        ("tokens a second, short sequences", "not known" if speed is None else f"{speed:,.0f}"),
        ("canary, rounded", checkup.canary_sha256 or "not known"),
        ("difference allowed", f"{checkup.tolerance:g} of a vector's root mean square"),
    ]
    table(("examined", ""), rows)
    click.echo()
    table(
        ("what must hold", "", "found"),
        [
            (finding.what, "holds" if finding.holds else "FAILS", finding.found)
            for finding in checkup.findings
        ],
    )
    failing = sum(not finding.holds for finding in checkup.findings)
    if failing:
        click.echo(f"\n{failing} of {len(checkup.findings)} checks fail: do not trust its vectors.")
    else:
        click.echo(f"\nThe model is sound: {len(checkup.findings)} checks hold.")


def _show(diagnosis: Diagnosis) -> None:
    from geneb.cli.console import table

    machine = diagnosis.machine
    rows = [
        ("processor", machine["processor"]),
        ("cores", str(machine["cores"])),
        ("memory", _gib(machine["memory_bytes"])),
        ("free disk space here", _gib(machine["free_disk_bytes"])),
        *(("BLAS, OpenMP", ", ".join(map(str, library.values()))) for library in diagnosis.blas),
        *(
            (device["name"], f"{device['description']}, {_gib(device['memory_bytes'])}")
            for device in diagnosis.devices
        ),
    ]
    table(("machine", ""), rows)
    click.echo()
    table(("package", "version"), list(diagnosis.versions.items()))
    click.echo()
    table(
        ("extra", "what for", "state"),
        [
            (
                extra.name,
                extra.purpose,
                f"missing: {extra.install}" if extra.missing else "installed",
            )
            for extra in diagnosis.extras
        ],
    )
    click.echo()
    table(
        ("probe backend", "state"),
        [(backend.name, backend.reason or "usable") for backend in diagnosis.backends],
    )
    click.echo(f"\n{diagnosis.models} models in the registry.")
    failing = [check for check in diagnosis.checks if not check.holds]
    if not failing:
        click.echo(f"The installation is sound: {len(diagnosis.checks)} checks hold.")
        return
    click.echo(f"{len(failing)} of {len(diagnosis.checks)} checks fail:\n")
    table(
        ("what should hold", "found", "what to do"),
        [(check.what, check.found, check.fix) for check in failing],
    )


def _gib(size: int | None) -> str:
    return "memory not known" if size is None else f"{size / 2**30:,.1f} GiB"

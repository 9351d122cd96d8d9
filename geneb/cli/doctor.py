"""``geneb doctor``: what this installation can do, and whether it is sound."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from geneb.cli.options import json_option

if TYPE_CHECKING:
    from geneb.diagnosis import Diagnosis


@click.command(
    epilog="Exits with 1 if a check does not hold. Example: geneb doctor --json > doctor.json"
)
@json_option()
@click.pass_context
def command(context: click.Context, *, as_json: bool) -> None:
    """Tell what is installed, what is missing and which command brings it."""
    from geneb.cli.console import print_json
    from geneb.diagnosis import diagnose

    diagnosis = diagnose(Path())
    if as_json:
        print_json(diagnosis.as_json())
    else:
        _show(diagnosis)
    context.exit(0 if diagnosis.sound else 1)


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

"""``geneb submission reproduce``: arguments, and what is printed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from geneb.cli.options import data_option, json_option, out_option, quiet_option, tasks_option
from geneb.errors import InputError

if TYPE_CHECKING:
    from geneb.reporting.reproduce import Reproduction

_SHOWN = 20


@click.command(
    "reproduce",
    epilog="Example: geneb submission reproduce leaderboard/submissions/my-model.json "
    "--store my-model.zarr --data DIR --sample 20",
)
@click.argument("submission", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--store",
    required=True,
    type=click.Path(path_type=Path),
    metavar="PATH",
    envvar="GENEB_STORE",
    show_envvar=True,
    help="The embedding store that was shared with the submission.",
)
@data_option()
@tasks_option()
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    metavar="N",
    help="Compare N of the tasks, drawn at random.",
)
@out_option(
    "Folder for the record. Default: leaderboard/verifications/ of the checkout.", required=False
)
@json_option()
@quiet_option()
def reproduce(
    submission: Path,
    *,
    store: Path,
    data: Path,
    tasks: tuple[str, ...],
    sample: int | None,
    out: Path | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Compute a submission's scores again from its store, and compare every one.

    Verifies the store, compares its rows and labels with the task CSVs, and probes it. Scores
    must be equal where the evidence names the same versions, BLAS and threads as here; else MCC,
    accuracy and F1 within 0.01 a task and 0.002 for macro. What holds is written down as a
    verification record; what does not is listed, and the exit code is 1.
    """
    from geneb.cli.console import complain, print_json, progress, status
    from geneb.reporting.reproduce import reproduce as compute_again
    from geneb.reporting.shipped import checkout_folder
    from geneb.reporting.verification import write_record

    folder = out or checkout_folder("a verification record") / "verifications"
    found = compute_again(
        submission,
        store=store,
        data=data,
        tasks=tasks,
        sample=sample,
        progress=progress(quiet=quiet),
    )
    path, refusal = None, None
    try:
        path = write_record(folder, found.record) if found.record else None
    except InputError as error:  # what was found took long: it is told all the same
        refusal = str(error)
    if as_json:
        print_json({**found.as_json(), "record": path and str(path)})
    else:
        _print(found)
    for fault in found.faults:
        complain(str(fault))
    if refusal:
        complain(refusal)
    if path:
        status(f"record: {path}")
    return 0 if path else 1


def _print(found: Reproduction) -> None:
    from geneb.cli.console import table

    rows = [("model", found.model_id), ("tasks compared", f"{len(found.tasks):,}")]
    if found.comparison:
        rows.append(("comparison", found.comparison.kind))
        if found.comparison.reason:
            rows.append(("not exact, because of", found.comparison.reason))
    rows.append(("values that differ", f"{len(found.differences):,}"))
    rows += [("", str(one)) for one in found.differences[:_SHOWN]]
    if len(found.differences) > _SHOWN:
        rows.append(("", f"and {len(found.differences) - _SHOWN:,} more; --json has them all"))
    rows.append(("level", found.record.level if found.record else "none: see below"))
    table(["", ""], rows)

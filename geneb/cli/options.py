"""Options that several commands share: one flag has one meaning everywhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def _path(
    *names: str, variable: str, help_text: str, required: bool, default: str | None = None
) -> Callable[..., Any]:
    return click.option(
        *names,
        type=click.Path(path_type=Path),
        envvar=variable,
        show_envvar=True,
        required=required,
        default=default,
        show_default=default is not None,
        help=help_text,
    )


def data_option(*, required: bool = True) -> Callable[[Decorated], Decorated]:
    """``--data DIR``: the folder of task CSVs."""
    return _path(
        "--data",
        "data",
        variable="GENEB_DATA",
        help_text="Folder of task CSVs (<task id>.csv with text,label,split).",
        required=required,
    )


def store_option() -> Callable[[Decorated], Decorated]:
    """``--store PATH``: the embedding store to write."""
    return _path(
        "--store",
        "store",
        variable="GENEB_STORE",
        help_text="The embedding store; created where it does not exist, else resumed.",
        required=True,
    )


def out_option(
    help_text: str = "Folder for what this command writes.", *, default: str | None = None
) -> Callable[..., Any]:
    """``--out DIR``: where output goes."""
    return _path(
        "--out",
        "out",
        variable="GENEB_OUT",
        help_text=help_text,
        required=default is None,
        default=default,
    )


def tasks_option() -> Callable[[Decorated], Decorated]:
    """``--tasks X``: ids, labels, categories or globs; repeatable."""
    return click.option(
        "--tasks",
        "-t",
        "tasks",
        multiple=True,
        metavar="X",
        help="Task id, label, category or glob; may be given several times.",
    )


def json_option() -> Callable[[Decorated], Decorated]:
    """``--json``: machine-readable output on stdout."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")


def quiet_option() -> Callable[[Decorated], Decorated]:
    """``--quiet``: no progress on stderr."""
    return click.option("--quiet", "-q", is_flag=True, help="No progress on stderr.")

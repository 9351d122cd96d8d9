"""Options that several commands share: one flag has one meaning everywhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from geneb.errors import InputError

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def _path(
    *names: str,
    variable: str,
    help_text: str,
    required: bool,
    default: str | None = None,
    callback: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    # A default of None, named, is one to click: it would not ask for the option any more.
    defaults = {} if default is None else {"default": default, "show_default": True}
    return click.option(
        *names,
        type=click.Path(path_type=Path),
        envvar=variable,
        show_envvar=True,
        required=required,
        help=help_text,
        callback=callback,
        **defaults,
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
    help_text: str = "Folder for what this command writes.",
    *,
    required: bool = True,
    default: str | None = None,
) -> Callable[..., Any]:
    """``--out DIR``: where output goes."""
    return _path(
        "--out",
        "out",
        variable="GENEB_OUT",
        help_text=help_text,
        required=required and default is None,
        default=default,
        callback=_outside_stores,
    )


def _outside_stores(ctx: click.Context, option: click.Parameter, path: Path | None) -> Path | None:
    """Refuse to write among a store's files: it vouches for all that lies in it."""
    del ctx, option
    for folder in [path, *path.parents] if path is not None else []:
        if (folder / "zarr.json").exists():
            raise InputError(
                "this lies in an embedding store, where nothing else may be written",
                where=f"--out {path}",
                found=f"the store {folder}",
                fix="name another folder",
            )
    return path


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


def model_source(model: str | None, extractor: str | None) -> str:
    """Return what to embed with, of the options ``--model`` and ``--extractor``: one is needed."""
    if (model is None) == (extractor is None):
        raise click.UsageError("name either --model ID or --extractor FILE.py:CLASS")
    if extractor is not None and ":" not in extractor:
        raise click.UsageError("--extractor is FILE.py:CLASS, such as mine.py:MyModel")
    if model is not None and ":" in model:
        raise click.UsageError("--model takes an id; a file is given with --extractor")
    return model or extractor or ""


def _apply(*decorators: Callable[[Any], Any]) -> Callable[[Decorated], Decorated]:
    """Return one decorator for several; the first stands first in the help."""

    def decorate(function: Decorated) -> Decorated:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def model_options() -> Callable[[Decorated], Decorated]:
    """``--model`` or ``--extractor``, see `model_source`, and what both are told."""
    return _apply(
        click.option("--model", "-m", metavar="ID", help="A model that geneb knows: kmer4."),
        click.option(
            "--extractor",
            metavar="FILE.py:CLASS",
            help="An extractor of your own; its code is run. See extractors/README.md.",
        ),
        click.option("--model-id", metavar="ID", help="Name for the model; for --extractor."),
        click.option(
            "--weights", metavar="PATH|ID", help="Passed to the extractor: where its weights are."
        ),
        click.option("--device", default="cpu", show_default=True, help="Passed to the extractor."),
        click.option(
            "--batch-tokens",
            type=click.IntRange(min=1),
            help="Padded tokens a batch; fixed once the store is created. Default 16384.",
        ),
    )


def statement_options() -> Callable[[Decorated], Decorated]:
    """What a submitter says of a model."""
    return _apply(
        click.option("--display", help="The model's name in tables. Default: what is known of it."),
        click.option(
            "--params",
            type=click.IntRange(min=1),
            help="Number of parameters. Default: the published one.",
        ),
        click.option("--url", help="A page about the model, http or https."),
        click.option(
            "--zero-shot/--no-zero-shot",
            default=None,
            help="Whether no data of the benchmark's tasks played a part in its training.",
        ),
        click.option("--training-data", help="What the model was trained on."),
        click.option("--submitted-by", help="A person or group."),
    )

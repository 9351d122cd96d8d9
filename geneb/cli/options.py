"""Options that several commands share: one flag has one meaning everywhere."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from geneb.errors import InputError

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

# Those of geneb.extractors.options, which is not imported to show a help text.
DTYPES = ("float32", "bfloat16", "float16")
POOLINGS = ("mean", "cls", "last", "max")
PRESETS = ("masked", "reference")
LONG_INPUTS = ("truncate", "windows")

MODEL_ARGUMENTS = (
    "model_id", "weights", "revision", "device", "batch_tokens", "compile",
    "deterministic", "tf32", "dtype", "layer", "pooling", "preset", "long_input",
)  # fmt: skip
"""What `model_options` passes to a command, and a command to `geneb.embed`."""

_PARAMS = re.compile(r"([0-9]{1,15}(?:[.][0-9]{1,6})?)([kmbt]?)", re.IGNORECASE)
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}


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


def prepare_backends(*names: str) -> None:
    """Set what a backend's libraries look for when they are imported, hence before they are."""
    if any(name.partition(":")[0] == "torch" for name in names):
        os.environ["SCIPY_ARRAY_API"] = "1"


def _prepare_backend(ctx: click.Context, option: click.Parameter, name: str) -> str:
    del ctx, option
    prepare_backends(name)
    return name


def backend_option() -> Callable[[Decorated], Decorated]:
    """``--backend NAME``: what solves the fits."""
    return click.option(
        "--backend",
        metavar="NAME",
        default="sklearn",
        show_default=True,
        callback=_prepare_backend,
        help="What solves the fits: sklearn, torch (on a GPU where there is one, or torch:cpu, "
        "torch:cuda:1), cuml.",
    )


def json_option() -> Callable[[Decorated], Decorated]:
    """``--json``: machine-readable output on stdout."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")


def quiet_option() -> Callable[[Decorated], Decorated]:
    """``--quiet``: no progress on stderr."""
    return click.option("--quiet", "-q", is_flag=True, help="No progress on stderr.")


def parse_params(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """Return a number of parameters from ``500M`` or ``1.2B``."""
    del ctx, param
    if value is None:
        return None
    found = _PARAMS.fullmatch(value)
    if not found:
        raise click.BadParameter(f"{value!r} is not a number such as 500M, 1.2B or 86000000")
    return round(float(found[1]) * _UNITS[found[2].lower()])


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


def model_options(*, writing: bool = True) -> Callable[[Decorated], Decorated]:
    """``--model`` or ``--extractor``, see `model_source`, and what both are told.

    With ``writing`` also what only a store that is written needs: the model's name in it, and
    its token budget.
    """
    named = click.option(
        "--model-id", metavar="ID", help="Name for the model; for --extractor and hf."
    )
    return _apply(
        click.option("--model", "-m", metavar="ID", help="A model that geneb knows: kmer4."),
        click.option(
            "--extractor",
            metavar="FILE.py:CLASS",
            help="An extractor of your own; its code is run. See extractors/README.md.",
        ),
        *([named, _budget_option()] if writing else []),
        _weights_options(),
        _machine_options(),
        _recipe_options(),
    )


def _weights_options() -> Callable[[Decorated], Decorated]:
    return _apply(
        click.option(
            "--weights",
            metavar="PATH|ID",
            help="Where the weights are, in the place of the model's own: a file, a folder, a hub "
            "id. Stores are told apart by their content.",
        ),
        click.option(
            "--revision",
            metavar="COMMIT",
            help="The commit of the hub repository; needed for one that is not the model's own.",
        ),
    )


def _budget_option() -> Callable[[Decorated], Decorated]:
    return click.option(
        "--batch-tokens",
        type=click.IntRange(min=1),
        metavar="N",
        help="Padded tokens a batch; fixed once the store is created. Default: 2048 on a CPU, "
        "there 16384 for models without weights; on a GPU 4096 to 65536, by its free memory.",
    )


def _machine_options() -> Callable[[Decorated], Decorated]:
    return _apply(
        click.option(
            "--device",
            metavar="NAME",
            default="auto",
            show_default=True,
            help="Where the model runs: cpu, cuda, cuda:1, mps; auto is the best that there is.",
        ),
        click.option(
            "--compile",
            is_flag=True,
            help="Compile the network with torch before it runs: other rounding, as another "
            "machine has, so recorded and no other kind of embedding; the canary guards it.",
        ),
        click.option(
            "--deterministic",
            is_flag=True,
            help="Refuse operations of which torch has no deterministic form.",
        ),
        click.option(
            "--tf32",
            is_flag=True,
            help="Allow TF32 in matrix products on a GPU: faster, another kind of embedding.",
        ),
    )


def _recipe_options() -> Callable[[Decorated], Decorated]:
    """What makes another kind of embedding of the same model."""
    return _apply(
        click.option(
            "--dtype",
            type=click.Choice(DTYPES),
            help="What the model computes in; pooling is float32. Default: the model's own.",
        ),
        click.option(
            "--layer",
            metavar="N|last|all",
            help="Hidden state to pool: 0 is the embedding layer. Default: the model's own. "
            "For geneb embed, all makes a folder of --store, with a store for each.",
        ),
        click.option(
            "--pooling",
            type=click.Choice(POOLINGS),
            help="How the tokens' vectors become one. Default: the model's own.",
        ),
        click.option(
            "--preset",
            type=click.Choice(PRESETS),
            help="masked: padding enters no vector. reference: as the published numbers were made, "
            "where that is something else. Default: masked.",
        ),
        click.option(
            "--long-input",
            type=click.Choice(LONG_INPUTS),
            help="What is done with sequences beyond the model's limit: cut at the right, or "
            "embedded in windows that are averaged. Default: the model's own.",
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

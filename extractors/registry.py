"""Which models can be run, and how: the registry, and loading an extractor by name."""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib
import importlib.resources
import tomllib
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from geneb.base.canonical import canonical_json
from geneb.base.files import check_name
from geneb.base.locations import shareable
from geneb.base.requirements import extra_bringing
from geneb.errors import GenebError, InputError, MissingExtraError
from geneb.extractors.base import Description, Extractor
from geneb.extractors.devices import AUTO, CPU, best_device, check_device
from geneb.extractors.lookup import no_such_model
from geneb.extractors.options import ModelOptions, Preset
from geneb.extractors.published import PublishedExtractor, check_batching
from geneb.extractors.source import (
    LoadedClass,
    accepts,
    describe_failure,
    load_class,
    output_to_stderr,
)
from geneb.extractors.weights import locate, published_ids

REGISTRY_FILE = "registry.toml"


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class RecordedCanary(_Strict):
    """What the canary's vectors were when somebody ran published weights.

    Attributes
    ----------
    weights
        SHA-256 of the weights, as the extractor describes them; None for a model without any.
    lengths
        Euclidean norms of the canary's sixteen vectors, as the model is run by default.
    """

    weights: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    lengths: list[float] = Field(min_length=16, max_length=16)


class Model(_Strict):
    """How one model is run.

    Attributes
    ----------
    display
        Its name for people.
    description
        One line.
    family
        ``module:Class`` within `geneb.extractors`.
    parameters
        What the class is constructed with.
    hub_id, revision
        Where its weights are published, and the commit that is meant; None where it has none,
        or where they are published elsewhere.
    generic
        Whether it is no model by itself, but runs whatever weights a user names, under a name
        that a user gives.
    params, licence
        Number of parameters that are run, and the licence of the weights, of a model that is not
        one of the benchmark's; of those, `benchmark/model_meta.json` says it.
    dim
        Numbers a vector, as it is run by default; None where that depends on the weights.
    bases
        How many bases it looks at; None where that is not a fixed number, or all of them.
    presets
        Those that it can be run with, its own first.
    recipe
        Pooling and layer, as they are by default, for people; the extractor itself states them
        in what it describes.
    canary
        None where nobody has run the published weights with this program yet.
    notes
        What whoever compares its vectors with others should know: one or two sentences.
    """

    display: str = Field(min_length=1, max_length=80)
    description: str = Field(min_length=1, max_length=200)
    family: str = Field(pattern=r"^[a-z][a-z0-9_]*:[A-Z][A-Za-z0-9]*$")
    parameters: dict[str, int | float | str | bool] = {}
    hub_id: str | None = Field(default=None, pattern=r"^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$")
    revision: str | None = Field(default=None, pattern=r"^[0-9a-f]{40}$")
    generic: bool = False
    params: int | None = Field(default=None, ge=1)
    licence: str | None = Field(default=None, pattern=r"^[A-Za-z0-9.+-]{1,40}$")
    dim: int | None = Field(default=None, ge=1)
    bases: int | None = Field(default=None, ge=1)
    presets: list[Preset] = ["masked"]
    recipe: str | None = Field(default=None, min_length=1, max_length=200)
    canary: RecordedCanary | None = None
    notes: str | None = Field(default=None, min_length=1, max_length=400)


class _Registry(_Strict):
    models: dict[str, Model]


@dataclass(frozen=True)
class Loaded:
    """An extractor, ready to run.

    Attributes
    ----------
    extractor
        The extractor.
    model_id
        What a store, a result and a submission call the model.
    device
        Where it runs: what ``auto`` came to; ``cpu`` where that is the only place.
    """

    extractor: Extractor
    model_id: str
    device: str = CPU


def parse_registry(text: str, where: str) -> dict[str, Model]:
    """Parse a registry.

    Raises
    ------
    InputError
        If it is not TOML, or an entry lacks a field, has an unknown one or one of another type.
    """
    try:
        models = _Registry.model_validate(tomllib.loads(text)).models
    except tomllib.TOMLDecodeError as error:
        raise InputError("this is not TOML", where=where, found=str(error)) from error
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(
            "this is not a registry of models",
            where=f"{where}, {'.'.join(map(str, first['loc']))}",
            found=first["msg"],
        ) from error
    for model_id in models:
        check_name(model_id, "model")
    return models


@functools.cache
def models() -> dict[str, Model]:
    """Return the built-in models by their ids, in the registry's order."""
    file = importlib.resources.files("geneb.extractors") / REGISTRY_FILE
    return parse_registry(file.read_text(encoding="utf-8"), REGISTRY_FILE)


def model_ids() -> list[str]:
    """Return the ids of the built-in models, in the registry's order."""
    return list(models())


def load(spec: str, **told: Any) -> Loaded:
    """Load an extractor.

    The arguments are all that a worker process needs to load the same one.

    Parameters
    ----------
    spec
        A model's id, or ``path/to/file.py:ClassName``. The class is a subclass of
        `geneb.extractors.base.Extractor`, or as published extractor files have it; the model's
        id is then the class's name.
    told
        Fields of `geneb.extractors.options.ModelOptions`. A published class gets ``weights`` as
        its model.

    Raises
    ------
    NotFoundError
        If the file does not exist.
    InputError
        If there is no such model, the file or class cannot be used, or the extractor cannot be
        told an option that was asked for.
    MissingExtraError
        If what the model needs is not installed.
    """
    options = ModelOptions(**told)
    if ":" in spec or spec.endswith(".py"):
        return _load_from_file(spec, options)
    if spec not in models():
        known = {model_id: model.display for model_id, model in models().items()}
        expected = "an id of `geneb model list --runnable`, or path/to/file.py:ClassName"
        raise no_such_model(spec, known, expected=expected)
    folder = _weights_folder(spec, options) if _has_weights(spec) else None
    cls = model_class(spec)
    options = _placed(cls, options)
    return Loaded(_construct_built_in(spec, cls, folder, options), spec, options.device)


def model_class(model_id: str) -> type[Extractor]:
    """Return the class that runs a built-in model.

    Raises
    ------
    MissingExtraError
        If a package that it needs is not installed.
    """
    module, _, name = models()[model_id].family.partition(":")
    try:
        return getattr(importlib.import_module(f"geneb.extractors.{module}"), name)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        extra = extra_bringing(package)
        if extra is None:
            raise
        raise MissingExtraError(package, extra, f"to run {model_id}") from error


def has_class(model_id: str) -> bool:
    """Return whether the class that runs a built-in model is there.

    Its module is read, not imported: that takes no extra and no time.
    """
    module, _, name = models()[model_id].family.partition(":")
    file = importlib.resources.files("geneb.extractors") / f"{module}.py"
    if not file.is_file():
        return False
    statements = ast.parse(file.read_text(encoding="utf-8")).body
    return any(isinstance(one, ast.ClassDef) and one.name == name for one in statements)


def _placed(cls: type, options: ModelOptions) -> ModelOptions:
    """Return options with a device in the place of ``auto``.

    A class that cannot be told runs on the CPU, and torch is not imported to find that out.
    """
    if options.device != AUTO:
        return options
    told = getattr(cls, "needs_weights", False) or any(
        accepts(cls, name) for name in ("device", "options")
    )
    return dataclasses.replace(options, device=best_device() if told else CPU)


def _has_weights(model_id: str) -> bool:
    """Return what its class says with ``needs_weights``, without importing it, and torch."""
    model = models()[model_id]
    return model.generic or model.hub_id is not None or model_id in published_ids()


def _weights_folder(model_id: str, options: ModelOptions) -> Path:
    model = models()[model_id]
    if model.generic and options.weights is None:
        raise InputError(
            f"{model_id} has no weights of its own",
            where="--weights",
            fix=f"geneb embed --model {model_id} --weights DIR --model-id NAME",
        )
    return locate(
        model_id,
        hub_id=model.hub_id,
        pinned=model.revision,
        weights=options.weights,
        revision=options.revision,
    )


def _construct_built_in(
    model_id: str, cls: type[Extractor], folder: Path | None, options: ModelOptions
) -> Extractor:
    parameters = models()[model_id].parameters
    if folder is None:
        return _construct(cls, parameters, options)
    check_device(options.device)
    return cls(folder=folder, options=options, **parameters)  # type: ignore[call-arg]


def _load_from_file(spec: str, options: ModelOptions) -> Loaded:
    loaded = load_class(spec)
    model_id = check_name(loaded.cls.__name__, "model")
    _check_own_name(model_id, f"{loaded.path.name}:{model_id}", "give the class another name")
    options = _placed(loaded.cls, options)
    if not issubclass(loaded.cls, Extractor):
        _check_all_told(PublishedExtractor, options, ("device", "weights"))
        published = PublishedExtractor(loaded, device=options.device, weights=options.weights)
        return Loaded(published, model_id, options.device)
    where = f"{loaded.path.name}:{model_id}"
    _check_declarations(loaded.cls, where)
    parameters = _folder_argument(loaded.cls, model_id, options)
    try:
        with output_to_stderr():
            extractor = _construct(_telling_its_file(loaded), parameters, options)
            canonical_json(dict(extractor.describe().parameters))
    except GenebError:
        raise
    except (Exception, SystemExit) as error:
        raise InputError(
            "the class could not be constructed or described",
            where=where,
            expected=f"{model_id}() to work, or with device= and weights=, or with folder= and "
            "options=, and parameters in describe() that JSON can hold",
            found=describe_failure(error, loaded.path),
        ) from error
    _check_numbers(extractor, where)
    return Loaded(extractor, model_id, options.device)


def _folder_argument(cls: type[Extractor], model_id: str, options: ModelOptions) -> dict[str, Any]:
    """Return the folder of the weights, for a class that is constructed as the built-in ones."""
    if not cls.needs_weights:
        return {}
    if options.weights is None:
        raise InputError(
            f"{model_id} runs the weights that are named, and has none of its own",
            where="--weights",
            fix="name a file, a folder, or a hub id with --revision",
        )
    return {"folder": locate(model_id, weights=options.weights, revision=options.revision)}


def named(loaded: Loaded, model_id: str | None) -> str:
    """Return the name under which a model's results are known.

    Parameters
    ----------
    model_id
        The name that a user asks for; None for the model's own.

    Raises
    ------
    InputError
        If it cannot be a name, belongs to a built-in model, or the model is a built-in one; if
        there is none and the model is generic.
    """
    built_in = models().get(loaded.model_id)
    if model_id is None:
        if built_in is not None and built_in.generic:
            raise InputError(
                f"{loaded.model_id} runs many models, so this one needs a name of its own",
                where="--model-id",
                fix="--model-id NAME",
            )
        return loaded.model_id
    check_name(model_id, "model")
    if built_in is None or built_in.generic:
        _check_own_name(model_id, "--model-id", "give it another --model-id")
    elif model_id != loaded.model_id:
        raise InputError(
            "a built-in model keeps its name",
            where="--model-id",
            expected=f"{loaded.model_id}, or no --model-id: it is for --extractor and hf",
            found=model_id,
        )
    return model_id


def _check_own_name(name: str, where: str, fix: str) -> None:
    # Whatever the case: some file systems do not tell it apart. What follows a plus says how a
    # model is run.
    if name.partition("+")[0].casefold() in (other.casefold() for other in model_ids()):
        raise InputError(
            "another model cannot take the name of a built-in model", where=where, fix=fix
        )


def _construct(
    cls: type[Extractor], parameters: dict[str, Any], options: ModelOptions
) -> Extractor:
    """Construct an extractor, telling it what a user asked for where it can be told."""
    if accepts(cls, "options"):
        return cls(**parameters, options=options)  # type: ignore[call-arg]
    told = {"device": options.device, "weights": options.weights, **options.told()}
    arguments = {name: value for name, value in told.items() if accepts(cls, name)}
    _check_all_told(cls, options, arguments)
    return cls(**parameters, **arguments)


def _check_all_told(cls: type, options: ModelOptions, told: Container[str]) -> None:
    for name, value in options.told().items():
        if name not in told:
            raise InputError(
                f"{cls.__name__} cannot be told its {name}",
                found=f"{name} {shareable(str(value))}",
                fix=f"leave {name} out",
            )


def _check_declarations(cls: type[Extractor], where: str) -> None:
    name = getattr(cls, "name", None)
    if not isinstance(name, str):
        raise InputError(
            "the extractor has no name", where=where, expected="a class attribute name: a string"
        )
    check_name(name, "model family")
    version = cls.numerics_version
    if isinstance(version, bool) or not isinstance(version, int):
        raise InputError(
            "this cannot be a numerics_version",
            where=where,
            expected="a whole number",
            found=repr(version),
        )
    check_batching(cls.batching, where, published=False)


def _check_numbers(extractor: Extractor, where: str) -> None:
    for name, expected in (
        ("max_length", "a whole number of tokens, 1 or more, or None"),
        ("layer_count", "a whole number of layers, 1 or more, or None"),
        ("batch_size", "a whole number of rows, 1 or more"),
    ):
        value = getattr(extractor, name)
        whole = isinstance(value, int) and not isinstance(value, bool) and value >= 1
        if not whole and not (value is None and expected.endswith("None")):
            raise InputError(
                f"this cannot be a {name}", where=where, expected=expected, found=repr(value)
            )


def _telling_its_file(loaded: LoadedClass) -> type[Extractor]:
    """Return the class with its file's digest in what it describes."""

    class FromFile(loaded.cls):  # type: ignore[name-defined,misc]
        def describe(self) -> Description:
            return dataclasses.replace(super().describe(), file=loaded.sha256)

    FromFile.__name__ = loaded.cls.__name__
    FromFile.__qualname__ = loaded.cls.__qualname__
    FromFile.__module__ = loaded.cls.__module__
    return FromFile

"""Which models can be run, and how: the registry, and loading an extractor by name."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import importlib
import importlib.resources
import tomllib
from collections.abc import Container
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from geneb.base.canonical import canonical_json
from geneb.base.files import check_name
from geneb.base.locations import shareable
from geneb.base.requirements import extra_bringing
from geneb.errors import GenebError, InputError, MissingExtraError
from geneb.extractors.base import Description, Extractor
from geneb.extractors.options import ModelOptions
from geneb.extractors.published import PublishedExtractor, check_batching
from geneb.extractors.source import (
    LoadedClass,
    accepts,
    describe_failure,
    load_class,
    output_to_stderr,
)
from geneb.extractors.weights import locate

REGISTRY_FILE = "registry.toml"


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


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
    """

    display: str = Field(min_length=1, max_length=80)
    description: str = Field(min_length=1, max_length=200)
    family: str = Field(pattern=r"^[a-z][a-z0-9_]*:[A-Z][A-Za-z0-9]*$")
    parameters: dict[str, int | float | str | bool] = {}
    hub_id: str | None = Field(default=None, pattern=r"^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$")
    revision: str | None = Field(default=None, pattern=r"^[0-9a-f]{40}$")


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
    """

    extractor: Extractor
    model_id: str


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
        near = difflib.get_close_matches(spec, model_ids(), n=3)
        raise InputError(
            "there is no such model",
            where=spec[:200],
            expected=f"one of {', '.join(model_ids())}; or path/to/file.py:ClassName",
            fix=f"did you mean {' or '.join(near)}?" if near else None,
        )
    return Loaded(_construct_built_in(spec, options), spec)


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


def _construct_built_in(model_id: str, options: ModelOptions) -> Extractor:
    model, cls = models()[model_id], model_class(model_id)
    if not cls.needs_weights:
        return _construct(cls, model.parameters, options)
    folder = locate(options.weights, model.hub_id, options.revision or model.revision, model_id)
    return cls(folder=folder, options=options, **model.parameters)  # type: ignore[call-arg]


def _load_from_file(spec: str, options: ModelOptions) -> Loaded:
    loaded = load_class(spec)
    model_id = check_name(loaded.cls.__name__, "model")
    _check_own_name(model_id, f"{loaded.path.name}:{model_id}", "give the class another name")
    if not issubclass(loaded.cls, Extractor):
        _check_all_told(PublishedExtractor, options, ("device", "weights"))
        published = PublishedExtractor(loaded, device=options.device, weights=options.weights)
        return Loaded(published, model_id)
    where = f"{loaded.path.name}:{model_id}"
    _check_declarations(loaded.cls, where)
    try:
        with output_to_stderr():
            extractor = _construct(_telling_its_file(loaded), {}, options)
            canonical_json(dict(extractor.describe().parameters))
    except GenebError:
        raise
    except (Exception, SystemExit) as error:
        raise InputError(
            "the class could not be constructed or described",
            where=where,
            expected=f"{model_id}() to work, or with device= and weights=, and parameters in "
            "describe() that JSON can hold",
            found=describe_failure(error, loaded.path),
        ) from error
    _check_max_length(extractor.max_length, where)
    return Loaded(extractor, model_id)


def named(loaded: Loaded, model_id: str | None) -> str:
    """Return the name under which a model's results are known.

    Parameters
    ----------
    model_id
        The name that a user asks for; None for the model's own.

    Raises
    ------
    InputError
        If it cannot be a name, belongs to a built-in model, or the model is a built-in one.
    """
    if model_id is None:
        return loaded.model_id
    check_name(model_id, "model")
    if loaded.model_id not in models():
        _check_own_name(model_id, "--model-id", "give it another --model-id")
    elif model_id != loaded.model_id:
        raise InputError(
            "a built-in model keeps its name",
            where="--model-id",
            expected=f"{loaded.model_id}, or no --model-id: it is for --extractor",
            found=model_id,
        )
    return model_id


def _check_own_name(name: str, where: str, fix: str) -> None:
    # Whatever the case: some file systems do not tell it apart.
    if name.casefold() in (other.casefold() for other in model_ids()):
        raise InputError(
            "a class in a file cannot take the name of a built-in model", where=where, fix=fix
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
    check_batching(cls.batching, where)


def _check_max_length(length: Any, where: str) -> None:
    whole = isinstance(length, int) and not isinstance(length, bool)
    if length is not None and not (whole and length >= 1):
        raise InputError(
            "this cannot be a max_length",
            where=where,
            expected="a whole number of tokens, 1 or more, or None",
            found=repr(length),
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

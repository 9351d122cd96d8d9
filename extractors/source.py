"""Loading a class from a user's Python file, named as ``path/to/file.py:ClassName``."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.abc
import importlib.util
import inspect
import os
import sys
import threading
import traceback
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from geneb.base.files import read_bytes
from geneb.base.requirements import extra_bringing
from geneb.errors import InputError

MAX_SOURCE_BYTES = 4 << 20
# Files are loaded as members of this package, which exists in memory only. Published extractor
# files begin with `from .base import BaseEmbeddingExtractor`; here is that base, and nothing
# else: an extractor is one file, so that one digest tells it apart.
_PACKAGE = "geneb_extractor_files"
_LOCK = threading.RLock()


class BaseEmbeddingExtractor:
    """What published extractor files derive from: it takes anything and adds nothing."""

    def __init__(self, *args: object, **options: object) -> None:
        """Take what a subclass passes on."""


@dataclass(frozen=True)
class LoadedClass:
    """A class from a user's file.

    Attributes
    ----------
    cls
        The class.
    path
        The file, with links resolved.
    sha256
        Of the file's content, in hexadecimal.
    """

    cls: type
    path: Path
    sha256: str


class _BytesLoader(importlib.abc.SourceLoader):
    """Runs the bytes that were hashed, and leaves no ``__pycache__`` beside the user's file."""

    def __init__(self, path: Path, data: bytes) -> None:
        self._path = str(path)
        self._data = data

    def get_filename(self, fullname: str) -> str:
        del fullname
        return self._path

    def get_data(self, path: str) -> bytes:
        del path
        return self._data


@contextlib.contextmanager
def output_to_stderr() -> Iterator[None]:
    """Send to stderr what a user's code prints: stdout is for data.

    Both ``sys.stdout`` and the process's standard output itself are diverted, for the whole
    process, so that libraries and subprocesses are caught too; one thread at a time.
    """
    with _LOCK, contextlib.ExitStack() as undo:
        _flush_stdout()
        # A process may have been started without standard streams.
        with contextlib.suppress(OSError):
            kept = os.dup(1)
            undo.callback(os.close, kept)
            os.dup2(2, 1)
            undo.callback(os.dup2, kept, 1)
        undo.callback(_flush_stdout)
        with contextlib.redirect_stdout(sys.stderr):
            yield


def _flush_stdout() -> None:
    if sys.__stdout__ is not None and not sys.__stdout__.closed:
        sys.__stdout__.flush()


def load_class(spec: str) -> LoadedClass:
    """Load a class from a file.

    Parameters
    ----------
    spec
        ``path/to/file.py:ClassName``.

    Raises
    ------
    NotFoundError
        If there is no such file.
    InputError
        If the spec is malformed, the file cannot be run, or it defines no such class.
    """
    path, class_name = _split(spec)
    data = read_bytes(path, MAX_SOURCE_BYTES)
    module = _run_once(path, data)
    # What the file merely imports is not told apart by the file's digest.
    own = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type) and value.__module__ == module.__name__
    }
    if class_name not in own:
        raise InputError(
            f"the file defines no class {class_name}",
            where=str(path),
            found=f"the classes {', '.join(own)}" if own else "no class at all",
        )
    return LoadedClass(own[class_name], path, hashlib.sha256(data).hexdigest())


def describe_failure(error: BaseException, path: Path) -> str:
    """Return an exception's type and message, and the line of the user's file it came from."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(path)
    ]
    if isinstance(error, SyntaxError) and error.filename == str(path):
        text, lines = f"{type(error).__name__}: {error.msg}", [error.lineno]
    return f"{text} (line {lines[-1]} of {path.name})" if lines else text


def _split(spec: str) -> tuple[Path, str]:
    file_name, colon, class_name = spec.rpartition(":")
    if not colon or not file_name.endswith(".py") or not class_name.isidentifier():
        raise InputError(
            "this does not name a class in a file",
            expected="path/to/file.py:ClassName",
            found=spec,
        )
    return Path(file_name).resolve(), class_name


def _run_once(path: Path, data: bytes) -> types.ModuleType:
    """Run a file as a module, or return what an earlier run of the same content left."""
    key = hashlib.sha256(os.fsencode(path) + b"\0" + data).hexdigest()
    name = f"{_PACKAGE}.file_{key}"
    with _LOCK:
        if name in sys.modules:
            return sys.modules[name]
        _ensure_package()
        loader = _BytesLoader(path, data)
        spec = importlib.util.spec_from_file_location(name, path, loader=loader)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        # Dataclasses and the like look their module up while it is being run.
        sys.modules[name] = module
        try:
            with output_to_stderr():
                loader.exec_module(module)
        except BaseException as error:
            del sys.modules[name]
            if isinstance(error, Exception | SystemExit):
                raise _import_failure(error, path) from error
            raise
        return module


def _ensure_package() -> None:
    if _PACKAGE in sys.modules:
        return
    package = types.ModuleType(_PACKAGE, "Extractor files that users named.")
    base = types.ModuleType(f"{_PACKAGE}.base", "What published extractor files import.")
    vars(package)["__path__"] = []
    vars(base)["BaseEmbeddingExtractor"] = BaseEmbeddingExtractor
    sys.modules[_PACKAGE] = package
    sys.modules[base.__name__] = base


def _import_failure(error: BaseException, path: Path) -> InputError:
    return InputError(
        "the extractor file could not be run",
        where=str(path),
        found=describe_failure(error, path),
        fix=_way_to_import(error.name) if isinstance(error, ModuleNotFoundError) else None,
    )


def _way_to_import(module: str | None) -> str | None:
    if not module:
        return None
    if module.startswith(f"{_PACKAGE}."):
        return "put everything into one file: of its neighbours only .base is provided"
    package = module.partition(".")[0]
    extra = extra_bringing(package)
    if extra is None:
        return f"install the package that provides {package}"
    return f"python -m pip install 'geneb[{extra}]'"


def accepts(function: Callable[..., Any], name: str) -> bool:
    """Return whether a callable takes a keyword argument of this name."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # some classes written in C do not tell
        return False
    return any(
        parameter.kind is parameter.VAR_KEYWORD
        or (
            parameter.name == name
            and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        )
        for parameter in parameters
    )

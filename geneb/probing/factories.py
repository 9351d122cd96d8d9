"""What makes a user's estimator, by its name: imported, told apart and run with care."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import inspect
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from geneb.base.text import plain
from geneb.errors import GenebError, InputError
from geneb.extractors.source import describe_failure, output_to_stderr


@dataclass(frozen=True)
class Factory:
    """What ``package.module:factory`` names.

    Attributes
    ----------
    target
        As it was named.
    call
        What makes the estimator.
    path
        The file that defines it; one that does not exist where there is none.
    """

    target: str
    call: Any
    path: Path

    @property
    def takes_seed(self) -> bool:
        """Whether the factory has a parameter ``random_state``."""
        try:
            return "random_state" in inspect.signature(self.call).parameters
        except (TypeError, ValueError):  # some classes written in C do not tell
            return False

    def make(self, seed: int | None) -> Any:
        """Return a new estimator, or a probe."""
        return self.call(random_state=seed) if self.takes_seed else self.call()

    def digest(self) -> str:
        """Return the beginning of the SHA-256 of the file that defines the factory."""
        try:
            return "sha256 " + hashlib.sha256(self.path.read_bytes()).hexdigest()[:16]
        except OSError:
            return "no source file"

    @contextlib.contextmanager
    def running(self, problem: str, kind: type[GenebError], fix: str) -> Iterator[None]:
        """Run a stranger's code: what it prints goes to stderr, what it raises is told in words."""
        try:
            with output_to_stderr():
                yield
        except (GenebError, MemoryError):
            raise
        except (Exception, SystemExit) as error:
            found = describe_failure(error, self.path)
            raise kind(problem, found=plain(found, 400), fix=fix) from error


@functools.cache
def load_factory(target: str) -> Factory:
    """Import what makes an estimator; once.

    Modules of the working directory are found too, unless installed ones have their names.

    Raises
    ------
    InputError
        If it is not named as ``package.module:factory``, or cannot be imported.
    """
    module_name, _, attribute = target.partition(":")
    names = [*module_name.split("."), *attribute.split(".")]
    if not all(name.isidentifier() for name in names):
        raise InputError(
            "this does not name what makes an estimator",
            expected="package.module:factory, as in sklearn.svm:LinearSVC",
            found=plain(target),
        )
    module = _import(module_name)
    path = Path(getattr(module, "__file__", None) or module_name)
    try:
        factory = functools.reduce(getattr, attribute.split("."), module)
    except AttributeError as error:
        raise InputError(
            f"{module_name} has no {attribute}",
            found=f"{module_name} is {path}",
            fix="name another function or class; if this is another module of that name, rename "
            "yours",
        ) from error
    if inspect.isclass(factory) or inspect.isfunction(factory):
        defined = sys.modules.get(factory.__module__)
        path = Path(getattr(defined, "__file__", None) or path)
    return Factory(target, factory, path)


def _import(name: str) -> Any:
    here = str(Path.cwd())
    if here not in sys.path:  # as `python -m` has it, but behind all that is installed
        sys.path.append(here)
    try:
        with output_to_stderr():
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        own = f"{name}.".startswith(f"{missing}.")
        raise InputError(
            f"there is no module {missing}",
            where=name,
            fix="install it, or run this in the folder that it lies in"
            if own
            else f"install the package that provides {missing.partition('.')[0]}",
        ) from error
    except (Exception, SystemExit) as error:
        syntax = isinstance(error, SyntaxError) and error.filename
        path = syntax or traceback.extract_tb(error.__traceback__)[-1].filename
        raise InputError(
            f"{name} could not be imported",
            found=plain(describe_failure(error, Path(path)), 400),
            fix=f"mend it: `python -c 'import {name}'` must work",
        ) from error

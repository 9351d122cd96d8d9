"""What geneb raises: every error says what was expected, what was found and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


def _describe(
    problem: str,
    where: str | None,
    expected: str | None,
    found: str | None,
    fix: str | None,
) -> str:
    lines = [f"{where}: {problem}" if where else problem]
    lines += [
        f"  {name}: {value}"
        for name, value in (("expected", expected), ("found", found), ("what to do", fix))
        if value
    ]
    return "\n".join(lines)


class GenebError(Exception):
    """A mistake that a user can understand and mend; the base of all others.

    Parameters
    ----------
    problem
        One sentence.
    where
        File, row, field, store or task that the sentence is about.
    expected, found
        What should have been there and what was.
    fix
        What to do about it.

    Attributes
    ----------
    exit_code
        2 where nothing was started, 1 where some work failed or a check did not hold.
    """

    exit_code = 2

    def __init__(
        self,
        problem: str,
        *,
        where: str | None = None,
        expected: str | None = None,
        found: str | None = None,
        fix: str | None = None,
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.where = where
        self.expected = expected
        self.found = found
        self.fix = fix

    def __str__(self) -> str:
        return _describe(self.problem, self.where, self.expected, self.found, self.fix)

    def __reduce__(self) -> tuple[Any, ...]:
        # Worker processes send errors home; keyword-only arguments need help with that.
        return (_rebuild, (type(self), self.__dict__.copy()))


def _rebuild(kind: type[GenebError], state: dict[str, Any]) -> GenebError:
    error = kind.__new__(kind)
    Exception.__init__(error, state["problem"])
    error.__dict__.update(state)
    return error


class InputError(GenebError, ValueError):
    """Raised when an argument or a file's content is not what it must be."""


class NotFoundError(GenebError, FileNotFoundError):
    """Raised when a file, store, task or model that was named does not exist."""


class FingerprintError(GenebError, ValueError):
    """Raised when a store was made under another fingerprint than the one at hand."""


class DriftError(GenebError, ValueError):
    """Raised when the canary's vectors are not those the store was created with."""


class StoreError(GenebError, ValueError):
    """Raised when a store is not in the format, or not in a state to be used."""


class CorruptionError(StoreError):
    """Raised when stored bytes are missing or differ from their checksum or digest."""

    exit_code = 1


class BusyError(GenebError, BlockingIOError):
    """Raised when another process holds what was asked for."""


class WorkError(GenebError, RuntimeError):
    """Raised when work was started and some of it failed."""

    exit_code = 1


class MissingExtraError(GenebError, ImportError):
    """Raised when an optional dependency is needed and not installed.

    Parameters
    ----------
    package
        What could not be imported.
    extra
        The extra of geneb that brings it.
    why
        What needs it, as the end of the sentence "... is needed".
    """

    def __init__(self, package: str, extra: str, why: str) -> None:
        super().__init__(
            f"{package} is needed {why}",
            found="it is not installed",
            fix=f"python -m pip install 'geneb[{extra}]'",
        )
        self.package = package
        self.extra = extra


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong, where a check lists all of them instead of stopping at the first."""

    where: str
    problem: str
    expected: str | None = None
    found: str | None = None
    fix: str | None = None

    def __str__(self) -> str:
        return _describe(self.problem, self.where, self.expected, self.found, self.fix)

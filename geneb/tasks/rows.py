"""The rows of a task's CSV, each checked before it is passed on.

The file has the columns ``text`` and ``split``, and ``label`` unless it is somebody's own
unlabelled data; they are found by their exact names, in any order, and other columns are ignored.
UTF-8 with or without a byte order mark, any line ending, quoted fields, fields of any length,
empty lines at the end. No value is ever taken for missing: ``NA``, ``null`` and ``nan`` are
sequences or labels like any others, an empty text is a sequence of length 0, and an empty label
or split is a mistake.
"""

from __future__ import annotations

import contextlib
import csv
import io
import os
import stat
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from geneb.base.files import check_name
from geneb.errors import InputError, NotFoundError

_COLUMNS = ("text", "label", "split")
_REQUIRED = ("text", "split")
_NAMES_SHOWN = 10
_CHARACTERS_SHOWN = 100


class Row(NamedTuple):
    """One row of a task's CSV.

    Attributes
    ----------
    line
        On which it begins, counted from 1.
    text
        The sequence as it stands.
    label
        Without spaces around it; None where the file has no such column.
    split
        As it stands.
    """

    line: int
    text: str
    label: str | None
    split: str


@contextlib.contextmanager
def open_rows(path: Path) -> Iterator[Iterator[Row]]:
    """Open a task's CSV and pass on its rows, in file order.

    Raises
    ------
    NotFoundError
        If there is no such file.
    InputError
        While rows are taken, at the first thing wrong with the file: which row and field.
    """
    with _open_regular(path) as stream, _FIELD_LIMIT.lifted():
        yield _checked_rows(path, stream)


def task_id(path: Path) -> str:
    """Return the id of the task that a file holds: its name without the ending.

    Raises
    ------
    InputError
        If the name cannot be a task's.
    """
    try:
        return check_name(path.stem, "task")
    except InputError as error:
        error.where = str(path)
        raise


def place(path: Path, line: int, field: str | None = None) -> str:
    """Return where in a file something is, for an error."""
    return f"{path}: row at line {line}" + (f", field {field!r}" if field else "")


def shown(value: str) -> str:
    """Return a value from a file for an error: quoted, and cut where it is long."""
    cut = value if len(value) <= _CHARACTERS_SHOWN else value[:_CHARACTERS_SHOWN] + "…"
    return repr(cut)


def listed(values: Sequence[str]) -> str:
    """Return values from a file for an error: quoted, the first few and how many more."""
    more = len(values) - _NAMES_SHOWN
    text = ", ".join(map(shown, values[:_NAMES_SHOWN])) or "none"
    return f"{text} and {more} more" if more > 0 else text


def _checked_rows(path: Path, stream: Iterable[str]) -> Iterator[Row]:
    numbered = _numbered_rows(path, stream)
    _, header = next(numbered, (1, None))
    if header is None:
        raise InputError(
            "this file is empty", where=str(path), expected="a header: text,label,split"
        )
    place_of = _find_columns(header, path)
    line = None
    for line, fields in numbered:
        if len(fields) != len(header):
            raise InputError(
                f"this row has too {'few' if len(fields) < len(header) else 'many'} fields",
                where=place(path, line),
                expected=f"{len(header)}, as in the header",
                found=str(len(fields)),
                fix="put a field with commas, quotes or line breaks in it into quotes",
            )
        yield _checked_row(line, fields, place_of, path)
    if line is None:
        raise InputError("this file has a header and no rows", where=str(path))


def _numbered_rows(path: Path, stream: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the fields of each row with the line on which it begins."""
    reader = csv.reader(_checked_lines(path, stream), strict=True)
    empty_line = None
    while True:
        line = reader.line_num + 1
        try:
            fields = next(reader, None)
        except csv.Error as error:
            raise InputError(
                "this row is not CSV",
                where=place(path, line),
                found=str(error),
                fix="close every quote, and double the quotes inside a quoted field",
            ) from error
        if fields is None:
            return
        if not fields:
            empty_line = empty_line or line
        elif empty_line:
            raise InputError(
                "this line is empty, and rows come after it",
                where=place(path, empty_line),
                expected="empty lines at the end of the file only",
            )
        else:
            yield line, fields


def _checked_lines(path: Path, stream: Iterable[str]) -> Iterator[str]:
    """Pass on lines of valid UTF-8 without NUL; other bytes have come as lone surrogates."""
    for number, line in enumerate(stream, start=1):
        if not line.isascii():
            try:
                line.encode("utf-8")
            except UnicodeEncodeError as error:
                raise InputError(
                    "this is not valid UTF-8",
                    where=place(path, number),
                    found=f"the byte 0x{ord(line[error.start]) & 0xFF:02x} "
                    f"at character {error.start + 1} of the line",
                    fix="save the file as UTF-8",
                ) from error
        if "\0" in line:
            raise InputError(
                "there is a NUL byte in this file",
                where=place(path, number),
                expected="text in UTF-8",
            )
        yield line


def _find_columns(header: Sequence[str], path: Path) -> dict[str, int]:
    """Return where in a row each of the known columns stands."""
    if len(set(header)) != len(header):
        raise InputError(
            "two columns have the same name", where=place(path, 1), found=listed(header)
        )
    if missing := [name for name in _REQUIRED if name not in header]:
        raise InputError(
            f"there is no column {' and no column '.join(map(repr, missing))}",
            where=place(path, 1),
            expected="columns text, label and split (label may be absent from unlabelled data)",
            found=listed(header),
        )
    return {name: header.index(name) for name in _COLUMNS if name in header}


def _checked_row(line: int, fields: Sequence[str], place_of: dict[str, int], path: Path) -> Row:
    label = fields[place_of["label"]].strip() if "label" in place_of else None
    split = fields[place_of["split"]]
    if label == "":
        raise InputError("the label is empty", where=place(path, line, "label"))
    if not split.strip():
        raise InputError("the split is empty", where=place(path, line, "split"))
    return Row(line, fields[place_of["text"]], label, split)


@contextlib.contextmanager
def _open_regular(path: Path) -> Iterator[io.TextIOBase]:
    """Open a regular file, also behind a link, as lines; a device or pipe never blocks."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError as error:
        raise NotFoundError("there is no such task file", where=str(path)) from error
    except OSError as error:
        raise InputError(
            "this task file cannot be read", where=str(path), found=error.strerror
        ) from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise InputError("this is not a regular file", where=str(path))
    # Bytes that are not UTF-8 come as lone surrogates, so that they can be placed on a line.
    with os.fdopen(handle, encoding="utf-8-sig", errors="surrogateescape", newline="") as stream:
        yield stream


class _FieldLimit:
    """The csv module's limit on fields, one for the whole process: lifted while anybody reads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._readers = 0
        self._before = 0

    @contextlib.contextmanager
    def lifted(self) -> Iterator[None]:
        with self._lock:
            if not self._readers:
                self._before = csv.field_size_limit(sys.maxsize)
            self._readers += 1
        try:
            yield
        finally:
            with self._lock:
                self._readers -= 1
                if not self._readers:
                    csv.field_size_limit(self._before)


_FIELD_LIMIT = _FieldLimit()

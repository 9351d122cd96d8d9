"""A task read from its CSV: with its sequences, or without them for planning."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from geneb.base.canonical import ROW_ID_BYTES, row_id
from geneb.base.files import check_name
from geneb.errors import InputError
from geneb.tasks.rows import Row, listed, open_rows, place, shown, task_id

TRAIN, TEST = "train", "test"
DEFAULT_SPLITS = (TRAIN, TEST)

# A whole number. One of more digits does not fit int64: it is a name.
_INTEGER = re.compile(r"([+-]?[0-9]{1,18})(?:\.0*)?")
_NOT_ACGT = re.compile("[^ACGTacgt]")


@dataclass(frozen=True)
class Split:
    """The rows of one split, in file order.

    Attributes
    ----------
    sequences
        As they stand in the file.
    labels
        int64, shape (n,): positions in the task's `classes`; None for unlabelled data.
    row_ids
        uint8, shape (n, 16); see `geneb.base.canonical.row_id`.
    """

    sequences: list[str]
    labels: np.ndarray | None
    row_ids: np.ndarray


@dataclass(frozen=True)
class Task:
    """A task with its sequences.

    Attributes
    ----------
    id
        The file's name without ``.csv``.
    path
        Where it was read from.
    classes
        The labels' canonical texts in class order, over all rows of the file whatever splits were
        asked for; empty for unlabelled data.
    splits
        Those asked for: train, test, then others in the order asked.
    left_out
        Rows of each split that was not asked for, by name.
    """

    id: str
    path: Path
    classes: tuple[str, ...]
    splits: dict[str, Split]
    left_out: dict[str, int]


@dataclass(frozen=True)
class SplitRows:
    """The rows of one split without their text; attributes as those of `Split`."""

    row_ids: np.ndarray
    labels: np.ndarray | None


@dataclass(frozen=True)
class TaskRows:
    """A task without its text, for planning; attributes as those of `Task`."""

    id: str
    splits: dict[str, SplitRows]
    classes: tuple[str, ...]
    left_out: dict[str, int]


class SequenceCounts(NamedTuple):
    """Sequences with something other than the letters ACGT (in either case), and empty ones."""

    non_acgt: int
    empty: int


class ClassReport(NamedTuple):
    """Classes that only one of the splits train and test has rows of."""

    only_in_train: tuple[str, ...]
    only_in_test: tuple[str, ...]


def read_task(path: Path, splits: Sequence[str] = DEFAULT_SPLITS) -> Task:
    """Read a task's CSV; every row of it is checked.

    Labels are stripped of spaces. Where all labels of the file are whole numbers (``1``, ``+1``,
    ``1.0``, ``-1``; up to 18 digits), equal numbers are one class and the order is numeric; else
    labels are names as they stand, ordered by code point.

    Parameters
    ----------
    path
        ``<task id>.csv``; a link to a file is followed.
    splits
        Exact names of the splits wanted. A row whose split is one of them, ``train`` or ``test``
        but for case or spaces is a mistake; rows of other splits are checked and counted.

    Raises
    ------
    NotFoundError
        If there is no such file.
    InputError
        If the file's name cannot be a task's; at the first thing wrong in it, with its row and
        field; or if a split that is wanted has no rows.
    """
    content = _read(path, splits, keep_text=True)
    classes, labels = content.encode_labels()
    return Task(
        id=content.task_id,
        path=path,
        classes=classes,
        splits={
            name: Split(kept.sequences, labels[name], kept.row_ids())
            for name, kept in content.kept.items()
        },
        left_out=content.left_out(),
    )


def scan_task(path: Path, splits: Sequence[str] = DEFAULT_SPLITS) -> TaskRows:
    """Check a task's CSV just as `read_task` does, but keep 24 bytes a row and no text."""
    content = _read(path, splits, keep_text=False)
    classes, labels = content.encode_labels()
    return TaskRows(
        id=content.task_id,
        splits={
            name: SplitRows(kept.row_ids(), labels[name]) for name, kept in content.kept.items()
        },
        classes=classes,
        left_out=content.left_out(),
    )


def sequence_counts(sequences: Iterable[str]) -> SequenceCounts:
    """Count the sequences that models may treat each in a way of their own."""
    non_acgt = empty = 0
    for sequence in sequences:
        if not sequence:
            empty += 1
        elif _NOT_ACGT.search(sequence):
            non_acgt += 1
    return SequenceCounts(non_acgt, empty)


def class_report(task: Task | TaskRows) -> ClassReport:
    """Return the classes found only in train and only in test; none where one was not read."""
    if any(name not in task.splits for name in DEFAULT_SPLITS):
        return ClassReport((), ())
    train, test = (_classes_found(task.splits[name].labels) for name in DEFAULT_SPLITS)
    return ClassReport(
        only_in_train=tuple(task.classes[k] for k in sorted(train - test)),
        only_in_test=tuple(task.classes[k] for k in sorted(test - train)),
    )


def _classes_found(labels: np.ndarray | None) -> set[int]:
    return set() if labels is None else set(np.unique(labels).tolist())


class _KeptRows:
    """What is kept of the rows of one split, as it grows."""

    def __init__(self) -> None:
        self.sequences: list[str] = []
        self.label_codes = array("q")
        self._ids = bytearray()

    def add(self, text: str, label_code: int | None, *, keep_text: bool) -> None:
        self._ids += row_id(text)
        if label_code is not None:
            self.label_codes.append(label_code)
        if keep_text:
            self.sequences.append(text)

    def row_ids(self) -> np.ndarray:
        return np.frombuffer(bytes(self._ids), dtype=np.uint8).reshape(-1, ROW_ID_BYTES)


class _Content:
    """What is kept of a file: rows of the wanted splits, all labels, rows of every split."""

    def __init__(self, name: str, wanted: Sequence[str], *, keep_text: bool) -> None:
        self.task_id = name
        self.kept = {name: _KeptRows() for name in wanted}
        self.rows_of: Counter[str] = Counter()
        self._keep_text = keep_text
        self._code_of: dict[str, int] = {}  # label -> its place in the order of appearance

    def add(self, row: Row) -> None:
        self.rows_of[row.split] += 1
        code = None
        if row.label is not None:
            code = self._code_of.setdefault(row.label, len(self._code_of))
        if row.split in self.kept:
            self.kept[row.split].add(row.text, code, keep_text=self._keep_text)

    def left_out(self) -> dict[str, int]:
        return {name: self.rows_of[name] for name in sorted(self.rows_of) if name not in self.kept}

    def encode_labels(self) -> tuple[tuple[str, ...], dict[str, np.ndarray | None]]:
        """Return the classes and, for each wanted split, labels as positions among them."""
        if not self._code_of:
            return (), dict.fromkeys(self.kept)
        classes, class_of = _order_labels(list(self._code_of))
        return classes, {
            name: class_of[np.frombuffer(kept.label_codes, dtype=np.int64)]
            for name, kept in self.kept.items()
        }


def _order_labels(labels: Sequence[str]) -> tuple[tuple[str, ...], np.ndarray]:
    """Return the classes in order, and the position among them of each of the labels given."""
    matches = [_INTEGER.fullmatch(label) for label in labels]
    if all(matches):
        keys: list[int] | list[str] = [int(match[1]) for match in matches if match]
    else:
        keys = list(labels)
    ordered = sorted(set(keys))
    position = {key: k for k, key in enumerate(ordered)}
    return tuple(map(str, ordered)), np.array([position[key] for key in keys], dtype=np.int64)


def _read(path: Path, splits: Sequence[str], *, keep_text: bool) -> _Content:
    """Read and check a whole file: the one loop behind `read_task` and `scan_task`."""
    wanted = _order_splits(splits)
    meant = {name.lower(): name for name in (*DEFAULT_SPLITS, *wanted)}
    content = _Content(task_id(path), wanted, keep_text=keep_text)
    with open_rows(path) as rows:
        for row in rows:
            name = meant.get(row.split.strip().lower(), row.split)
            if name != row.split:
                raise InputError(
                    "this is not exactly the name of a split",
                    where=place(path, row.line, "split"),
                    expected=repr(name),
                    found=shown(row.split),
                    fix="write the names of splits in one way: case and spaces count",
                )
            content.add(row)
    for name in wanted:
        if not content.rows_of[name]:
            raise InputError(
                f"there are no rows of the split {name!r}",
                where=str(path),
                expected="at least one row of each split that is asked for",
                found=f"rows of {listed(sorted(content.rows_of))}",
            )
    return content


def _order_splits(splits: Sequence[str]) -> list[str]:
    for name in splits:
        check_name(name, "split")
    if not splits or len({name.lower() for name in splits}) != len(splits):
        raise InputError("the splits to read must be named once each", found=listed(splits))
    return sorted(splits, key=lambda name: (name != TRAIN, name != TEST))

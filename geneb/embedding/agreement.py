"""Whether task CSVs are those that a store was made from, or was begun with."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from geneb.errors import InputError, StoreError
from geneb.stores.layout import task_path
from geneb.stores.reader import SplitArrays, Store, ordered_splits
from geneb.stores.zarr_store import check_rows
from geneb.tasks.read import TaskRows, class_report

_CHARACTERS_SHOWN = 200


def check_replacements(names: Collection[str], scanned: Sequence[TaskRows]) -> None:
    """Refuse to replace a task that is not embedded anew right away.

    Raises
    ------
    InputError
    """
    unknown = sorted(set(names) - {rows.id for rows in scanned})
    if unknown:
        raise InputError(
            f"--replace-task names {', '.join(unknown)}, which this run does not embed",
            expected="ids among the run's tasks",
            fix="name the task with --tasks too",
        )


def check_complete(store: Store, rows: TaskRows) -> None:
    """Compare a complete task with its CSV, so that a changed CSV never goes unnoticed.

    Raises
    ------
    StoreError
        If a split is missing from the store, or rows, labels or classes differ.
    """
    task = store.task(rows.id)
    where = _where(store, rows)
    if missing := [split for split in rows.splits if split not in task.splits]:
        raise StoreError(
            f"the stored task lacks the split {', '.join(missing)}",
            where=where,
            fix="embed it anew with --replace-task",
        )
    for split, entry in rows.splits.items():
        check_rows(task.arrays(split), entry.row_ids, entry.labels, f"{where}, {split}")
    stored = tuple(task.classes or ())
    if stored != rows.classes:
        raise StoreError(
            "the CSV's classes are not those in the store",
            where=where,
            expected=", ".join(stored)[:_CHARACTERS_SHOWN],
            found=", ".join(rows.classes)[:_CHARACTERS_SHOWN],
            fix="embed the CSV that the store was made from, or --replace-task",
        )


def check_begun(store: Store, rows: TaskRows) -> None:
    """Compare a task that an earlier run began with what is about to be embedded.

    Raises
    ------
    StoreError
        If splits, rows or labels differ.
    """
    where = _where(store, rows)
    begun = store.files.names(task_path(rows.id))
    if sorted(rows.splits) != begun:
        raise StoreError(
            "this task was begun with other splits",
            where=where,
            expected=", ".join(ordered_splits(begun)),
            found=", ".join(rows.splits),
            fix="give the same --splits, or start the task anew with --replace-task",
        )
    for split, entry in rows.splits.items():
        arrays = SplitArrays(store.files, rows.id, split, store.fingerprint)
        check_rows(arrays, entry.row_ids, entry.labels, f"{where}, {split}")


def is_begun(store: Store, rows: TaskRows) -> bool:
    """Return whether a task was begun with exactly these splits, rows and labels."""
    try:
        if store.unsealed_manifest(rows.id) is not None:
            return False
        check_begun(store, rows)
    except (StoreError, FileNotFoundError):
        return False
    return True


def is_complete(store: Store, task: str) -> bool:
    """Return whether a task has a manifest, whatever a seal says of it."""
    try:
        return store.unsealed_manifest(task) is not None
    except StoreError:
        return False


def class_warnings(rows: TaskRows) -> list[str]:
    """Return a sentence for each split that lacks classes of the other."""
    if not rows.classes:
        return []
    report = class_report(rows)
    found = (("train", report.only_in_train), ("test", report.only_in_test))
    return [
        f"{rows.id}: class {', '.join(classes)} is only in {split}"
        for split, classes in found
        if classes
    ]


def _where(store: Store, rows: TaskRows) -> str:
    return f"{store.path}, task {rows.id}"

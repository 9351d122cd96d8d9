"""Comparing a store's task with the task data: rows, labels, order, and what gives labels away.

What a store says about its rows is never taken for what they are: row ids and labels are read
again from the CSV, which the comparer got from the benchmark's pinned dataset.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from geneb.errors import Fault
from geneb.stores.reader import StoredTask
from geneb.tasks.read import DEFAULT_SPLITS, TaskRows, scan_task

_COLUMNS_SHOWN = 5


def compare_with_csv(stored: StoredTask, path: Path, store: str) -> tuple[list[Fault], int]:
    """Compare a stored task with its CSV.

    Parameters
    ----------
    store
        How the store is called in faults.

    Returns
    -------
    faults : list of Fault
        Everything in which the store's train and test splits are not the CSV's.
    rows : int
        Rows compared.

    Raises
    ------
    NotFoundError, InputError
        If the CSV cannot be read.
    CorruptionError, StoreError
        If the store cannot.
    """
    task = scan_task(path, DEFAULT_SPLITS)
    where = f"{store}, task {stored.id}"
    faults = list(_split_faults(stored, task, where))
    if not faults:
        faults += _telling_faults(stored, where)
    return faults, sum(len(split.row_ids) for split in task.splits.values())


def _split_faults(stored: StoredTask, task: TaskRows, where: str) -> Iterator[Fault]:
    classes = tuple(stored.classes or ())
    if classes != task.classes:
        yield Fault(
            where,
            "the classes are not the CSV's",
            expected=", ".join(task.classes),
            found=", ".join(classes) or "none",
        )
        return
    for name, split in task.splits.items():
        ids, labels = stored.row_ids(name), stored.labels(name)
        if len(ids) != len(split.row_ids):
            yield Fault(
                f"{where}, {name}",
                "there are not as many rows as in the CSV",
                expected=f"{len(split.row_ids):,}",
                found=f"{len(ids):,}",
            )
            continue
        yield from _row_fault(f"{where}, {name}", "sequence", (ids != split.row_ids).any(axis=1))
        if labels is not None and split.labels is not None:
            yield from _row_fault(f"{where}, {name}", "label", labels != split.labels)


def _row_fault(where: str, what: str, differs: np.ndarray) -> Iterator[Fault]:
    if differs.any():
        yield Fault(
            where,
            f"rows have another {what} than in the CSV, or stand in another order",
            found=f"{int(differs.sum()):,} of {len(differs):,} rows, "
            f"first row {int(differs.argmax()):,}",
        )


def _telling_faults(stored: StoredTask, where: str) -> Iterator[Fault]:
    parts = [(stored.embeddings(name), stored.labels(name)) for name in DEFAULT_SPLITS]
    columns = telling_columns(
        [(vectors, labels) for vectors, labels in parts if labels is not None],
        len(stored.classes or ()),
    )
    if len(columns):
        shown = ", ".join(map(str, columns[:_COLUMNS_SHOWN].tolist()))
        yield Fault(
            where,
            "one number of each vector alone tells the label of every row: labels are hidden in "
            "the embeddings, or the task is not one",
            found=f"column {shown}" + (" and others" if len(columns) > _COLUMNS_SHOWN else ""),
        )


def telling_columns(parts: list[tuple[np.ndarray, np.ndarray]], classes: int) -> np.ndarray:
    """Return the columns whose values fall into one interval a class, none meeting another.

    No model is that good with one number. It finds labels that were hidden plainly, and no
    others: only embedding rows again with the model can show that nothing is hidden.

    Parameters
    ----------
    parts
        Embeddings, float32, shape (n, dim), and labels, int64, shape (n,), of each split.

    Returns
    -------
    ndarray of int64
    """
    dim = parts[0][0].shape[1]
    low = np.full((classes, dim), np.inf, dtype=np.float32)
    high = np.full((classes, dim), -np.inf, dtype=np.float32)
    for vectors, labels in parts:
        for label in range(classes):
            chosen = vectors[labels == label]
            if len(chosen):
                low[label] = np.minimum(low[label], chosen.min(axis=0))
                high[label] = np.maximum(high[label], chosen.max(axis=0))
    seen = np.isfinite(low).all(axis=1)
    low, high = low[seen], high[seen]
    order = np.argsort(low, axis=0, kind="stable")
    low = np.take_along_axis(low, order, axis=0)
    high = np.take_along_axis(high, order, axis=0)
    apart = (low[1:] > high[:-1]).all(axis=0) & (len(low) > 1)
    return np.flatnonzero(apart)

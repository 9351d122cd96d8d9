"""What can be said about a task's rows without a model: sizes, letters, classes, digests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geneb.base.canonical import pairs_digest
from geneb.tasks.read import Split, Task, sequence_counts


@dataclass(frozen=True)
class SplitFacts:
    """Facts on one split.

    Attributes
    ----------
    rows
        Their number.
    min_length, median_length, max_length
        Of the sequences, in letters.
    non_acgt, empty
        See `geneb.tasks.read.SequenceCounts`.
    rows_of_class
        Rows of every class of the task, also of those that this split lacks; empty for unlabelled
        data.
    ordered_sha256
        Digest of the (row id, label) pairs in file order, as in a store's manifest.
    sorted_sha256
        The same of the sorted pairs: equal for two splits that hold the same rows in another
        order.
    """

    rows: int
    min_length: int
    median_length: float
    max_length: int
    non_acgt: int
    empty: int
    rows_of_class: dict[str, int]
    ordered_sha256: str
    sorted_sha256: str


def describe_split(task: Task, name: str) -> SplitFacts:
    """Return the facts on one split of a task that was read."""
    split = task.splits[name]
    lengths = np.array([len(sequence) for sequence in split.sequences])
    counts = sequence_counts(split.sequences)
    return SplitFacts(
        rows=len(lengths),
        min_length=int(lengths.min()),
        median_length=float(np.median(lengths)),
        max_length=int(lengths.max()),
        non_acgt=counts.non_acgt,
        empty=counts.empty,
        rows_of_class=_rows_of_class(task.classes, split),
        ordered_sha256=pairs_digest(split.row_ids, split.labels),
        sorted_sha256=_sorted_digest(split),
    )


def _rows_of_class(classes: tuple[str, ...], split: Split) -> dict[str, int]:
    if split.labels is None:
        return {}
    counts = np.bincount(split.labels, minlength=len(classes))
    return dict(zip(classes, counts.tolist(), strict=True))


def _sorted_digest(split: Split) -> str:
    # Read as big-endian numbers, row ids have the order of their bytes.
    high, low = np.ascontiguousarray(split.row_ids).view(">u8").T
    if split.labels is None:
        return pairs_digest(split.row_ids[np.lexsort((low, high))], None)
    order = np.lexsort((split.labels, low, high))
    return pairs_digest(split.row_ids[order], split.labels[order])

"""From tasks to block jobs: which rows are computed where, and which are copied.

No sequence is embedded twice. Every distinct row has one owner, the first place that holds it:
tasks that are complete in the store come first, then the planned tasks in order, then split, then
row. All other places copy the owner's vector once its block has been written. Only where vectors
depend on what else is in the batch (published numbers repeated) is every row its own owner.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from geneb.stores import layout
from geneb.tasks.read import TaskRows


@dataclass(frozen=True)
class Copy:
    """Rows of one block that are copied from one other block (or from the same).

    Attributes
    ----------
    task, split, block
        The owner's block.
    source
        int64 positions within the owner's block.
    target
        int64 positions within this block.
    """

    task: str
    split: str
    block: int
    source: np.ndarray
    target: np.ndarray


@dataclass(frozen=True)
class BlockJob:
    """One block: the unit of work of every executor, plain data.

    Attributes
    ----------
    first, last
        The block's rows within the split.
    compute
        int64 positions within the block that are embedded here.
    copies
        Where its other rows come from; blocks that lie before this one, or this one itself.
    """

    task: str
    split: str
    block: int
    first: int
    last: int
    compute: np.ndarray
    copies: tuple[Copy, ...]


@dataclass(frozen=True)
class TaskPlan:
    """All jobs of one task, in the order in which they must be written."""

    rows: TaskRows
    jobs: tuple[BlockJob, ...]

    def counts(self, split: str) -> tuple[int, int]:
        """Return how many rows of a split are computed and how many copied."""
        computed = sum(len(job.compute) for job in self.jobs if job.split == split)
        total = sum(job.last - job.first for job in self.jobs if job.split == split)
        return computed, total - computed


@dataclass(frozen=True)
class _Place:
    """One split of one task, and where its rows begin in the list of all rows."""

    task: str
    split: str
    offset: int
    rows: int


def owners(row_ids: np.ndarray) -> np.ndarray:
    """Return for each row the position of the first row with the same id.

    Parameters
    ----------
    row_ids
        uint8, shape (n, 16).

    Returns
    -------
    ndarray of int64, shape (n,)
    """
    halves = np.ascontiguousarray(row_ids).view(np.uint64).reshape(-1, 2)
    order = np.lexsort((halves[:, 1], halves[:, 0]))  # stable: the first of equals stays first
    ordered = halves[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    group = np.cumsum(new) - 1
    owner = np.empty(len(order), dtype=np.int64)
    owner[order] = order[np.flatnonzero(new)][group]
    return owner


def plan_tasks(
    tasks: Sequence[TaskRows],
    complete: Mapping[tuple[str, str], np.ndarray],
    dim: int,
    *,
    copying: bool = True,
) -> list[TaskPlan]:
    """Plan the tasks that are to be embedded.

    Parameters
    ----------
    tasks
        In the order in which they will be embedded.
    complete
        Row ids of (task, split) pairs that the store holds completely, in order.
    dim
        Numbers a vector.
    copying
        Whether equal sequences have equal vectors; where not, every row is computed.
    """
    places: list[_Place] = []
    ids: list[np.ndarray] = []

    def add(task: str, split: str, row_ids: np.ndarray) -> None:
        offset = places[-1].offset + places[-1].rows if places else 0
        places.append(_Place(task, split, offset, len(row_ids)))
        ids.append(row_ids)

    for (task, split), row_ids in complete.items():
        add(task, split, row_ids)
    first_planned = len(places)
    for task_rows in tasks:
        for split, entry in task_rows.splits.items():
            add(task_rows.id, split, entry.row_ids)
    if first_planned == len(places):
        return []
    row_ids = np.concatenate(ids)
    owner = owners(row_ids) if copying else np.arange(len(row_ids))
    jobs: dict[str, list[BlockJob]] = {task_rows.id: [] for task_rows in tasks}
    for place in places[first_planned:]:
        jobs[place.task] += _plan_split(place, owner, places, dim)
    return [TaskPlan(task_rows, tuple(jobs[task_rows.id])) for task_rows in tasks]


def _plan_split(
    place: _Place, owner: np.ndarray, places: Sequence[_Place], dim: int
) -> list[BlockJob]:
    jobs = []
    for block in range(layout.block_count(place.rows, dim)):
        first, last = layout.block_span(place.rows, dim, block)
        here = np.arange(place.offset + first, place.offset + last)
        owned = owner[here] == here
        target = np.flatnonzero(~owned)
        jobs.append(
            BlockJob(
                task=place.task,
                split=place.split,
                block=block,
                first=first,
                last=last,
                compute=np.flatnonzero(owned),
                copies=_copies(target, owner[here[target]], places, dim),
            )
        )
    return jobs


def _copies(
    target: np.ndarray, source: np.ndarray, places: Sequence[_Place], dim: int
) -> tuple[Copy, ...]:
    """Group a block's copied rows by the block that owns them."""
    if not len(target):
        return ()
    offsets = np.array([place.offset for place in places])
    which = np.searchsorted(offsets, source, side="right") - 1
    row = source - offsets[which]
    size = np.array([layout.block_rows(place.rows, dim) for place in places])[which]
    block = row // size
    copies = []
    for number, index in sorted(set(zip(which.tolist(), block.tolist(), strict=True))):
        mine = np.flatnonzero((which == number) & (block == index))
        place = places[number]
        within = row[mine] - index * size[mine]
        copies.append(Copy(place.task, place.split, index, within, target[mine]))
    return tuple(copies)

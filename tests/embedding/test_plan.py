"""Every row has one owner; plans are simulated with tokens that stand for a vector's bits."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from support.small_tasks import blocks_of

from geneb.base.canonical import row_ids
from geneb.embedding.plan import owners, plan_tasks
from geneb.stores import layout
from geneb.tasks.read import SplitRows, TaskRows

DIM = 4

# A row is a small number, so that duplicates abound within splits, across splits and tasks.
split_rows = st.lists(st.integers(0, 9), min_size=1, max_size=15)
task_lists = st.lists(st.tuples(split_rows, split_rows), min_size=1, max_size=4)
block_bytes = st.integers(1, 8).map(lambda rows: rows * DIM * 4)


def ids_of(rows: list[int]) -> np.ndarray:
    return row_ids(map(str, rows))


def tasks_of(content: list[tuple[list[int], list[int]]]) -> list[TaskRows]:
    return [
        TaskRows(
            id=f"task{number}",
            splits={"train": SplitRows(ids_of(train), None), "test": SplitRows(ids_of(test), None)},
            classes=(),
            left_out={},
        )
        for number, (train, test) in enumerate(content)
    ]


def stored_ids(tasks: list[TaskRows]) -> dict[tuple[str, str], np.ndarray]:
    return {
        (task.id, split): entry.row_ids for task in tasks for split, entry in task.splits.items()
    }


class Simulation:
    """Does a plan's jobs in order; a computed row's vector is the name of where it was made."""

    def __init__(self, vectors: dict[tuple[str, str], list]) -> None:
        self.vectors = {key: list(rows) for key, rows in vectors.items()}
        self.made: list[str] = []
        self._written = {
            (task, split, block)
            for (task, split), rows in vectors.items()
            for block in range(layout.block_count(len(rows), DIM))
        }

    def run(self, plans) -> Simulation:
        for plan in plans:
            for split, entry in plan.rows.splits.items():
                self.vectors[plan.rows.id, split] = [None] * len(entry.row_ids)
            for job in plan.jobs:
                self._do(job)
        return self

    def _do(self, job) -> None:
        rows = self.vectors[job.task, job.split]
        here = (job.task, job.split, job.block)
        done = Counter(job.compute.tolist())
        for position in job.compute.tolist():
            rows[job.first + position] = f"{job.task} {job.split} {job.first + position}"
            self.made.append(rows[job.first + position])
        for copy in job.copies:
            source = (copy.task, copy.split, copy.block)
            assert source == here or source in self._written, "copied before it was written"
            first, last = layout.block_span(
                len(self.vectors[copy.task, copy.split]), DIM, copy.block
            )
            for there, position in zip(copy.source.tolist(), copy.target.tolist(), strict=True):
                assert first + there < last
                vector = self.vectors[copy.task, copy.split][first + there]
                assert vector is not None, "copied a row that is not there yet"
                rows[job.first + position] = vector
                done[position] += 1
        assert dict.fromkeys(range(job.last - job.first), 1) == done, "each row exactly once"
        self._written.add(here)


def made_of(content, vectors) -> dict[int, set[str]]:
    """The vectors that each distinct row got, wherever it stands."""
    found: dict[int, set[str]] = {}
    for number, splits in enumerate(content):
        for split, rows in zip(("train", "test"), splits, strict=True):
            for row, vector in zip(rows, vectors[f"task{number}", split], strict=True):
                found.setdefault(row, set()).add(vector)
    return found


@given(task_lists, block_bytes)
def test_every_row_once_and_every_sequence_computed_once(content, size):
    """Rows are computed or copied, exactly once each; equal rows, and only they, share bits."""
    with blocks_of(size):
        simulation = Simulation({}).run(plan_tasks(tasks_of(content), {}, DIM))

    found = made_of(content, simulation.vectors)
    distinct = {row for splits in content for rows in splits for row in rows}
    assert len(distinct) == len(simulation.made)
    assert all(len(vectors) == 1 for vectors in found.values())
    assert len(distinct) == len(set.union(*found.values()))


@given(task_lists, block_bytes, st.data())
def test_a_plan_that_resumes_gives_the_same_bits(content, size, data):
    """Whatever was complete when the run was killed, the rest is made by the same owners."""
    tasks = tasks_of(content)
    done = data.draw(st.integers(0, len(tasks)))
    with blocks_of(size):
        whole = Simulation({}).run(plan_tasks(tasks, {}, DIM))
        before = {key: whole.vectors[key] for key in stored_ids(tasks[:done])}
        plans = plan_tasks(tasks[done:], stored_ids(tasks[:done]), DIM)
        resumed = Simulation(before).run(plans)

    assert whole.vectors == resumed.vectors
    made_before = {vector for rows in before.values() for vector in rows}
    assert set(whole.made) - made_before == set(resumed.made)


@given(task_lists, block_bytes, st.data())
def test_jobs_of_a_resumed_plan_are_those_of_the_uninterrupted_one(content, size, data):
    """Batches are made from a job's rows, so that the rows must not depend on the interruption."""
    tasks = tasks_of(content)
    done = data.draw(st.integers(0, len(tasks)))
    with blocks_of(size):
        whole = plan_tasks(tasks, {}, DIM)[done:]
        resumed = plan_tasks(tasks[done:], stored_ids(tasks[:done]), DIM)

    assert [len(plan.jobs) for plan in whole] == [len(plan.jobs) for plan in resumed]
    for expected, found in zip(whole, resumed, strict=True):
        assert expected.counts("train") == found.counts("train")
        assert expected.counts("test") == found.counts("test")
        for left, right in zip(expected.jobs, found.jobs, strict=True):
            np.testing.assert_array_equal(left.compute, right.compute)


@given(task_lists, st.data())
def test_what_is_complete_is_never_computed_again(content, data):
    """Whichever tasks the store holds, in whatever order they were embedded."""
    tasks = tasks_of(content)
    is_complete = [data.draw(st.booleans()) for _ in tasks]
    complete = [task for task, done in zip(tasks, is_complete, strict=True) if done]
    ahead = [task for task, done in zip(tasks, is_complete, strict=True) if not done]
    before = {
        key: [f"stored {identity.tobytes().hex()}" for identity in ids]
        for key, ids in stored_ids(complete).items()
    }
    with blocks_of(5 * DIM * 4):
        simulation = Simulation(before).run(plan_tasks(ahead, stored_ids(complete), DIM))

    stored = {identity.tobytes() for ids in stored_ids(complete).values() for identity in ids}
    planned = {identity.tobytes() for ids in stored_ids(ahead).values() for identity in ids}
    assert len(planned - stored) == len(simulation.made)


def test_counts_add_up():
    """What a manifest says of a split: rows computed here and rows copied."""
    tasks = tasks_of([([1, 1, 2], [2, 3]), ([3, 4], [4, 5])])

    first, second = plan_tasks(tasks, {}, DIM)

    assert first.counts("train") == (2, 1)
    assert first.counts("test") == (1, 1)
    assert second.counts("train") == (1, 1)
    assert second.counts("test") == (1, 1)


def test_nothing_ahead_is_no_plan():
    """Everything complete: no job."""
    tasks = tasks_of([([1], [2])])

    assert plan_tasks([], stored_ids(tasks), DIM) == []


@settings(max_examples=200)
@given(st.lists(st.integers(0, 20), min_size=1, max_size=60))
def test_an_owner_is_the_first_of_equals(rows):
    """As a plain loop finds it."""
    first: dict[int, int] = {}
    expected = [first.setdefault(row, position) for position, row in enumerate(rows)]

    assert expected == owners(ids_of(rows)).tolist()

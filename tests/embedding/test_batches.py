"""Batches are pure functions of lengths and budget, so that a resumed run makes the same ones."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geneb.embedding.batches import (
    choose_token_budget,
    padded_length,
    plan_batches,
    plan_file_order,
    whole_batches,
)

lengths = st.lists(st.integers(0, 3000), max_size=80)
budgets = st.integers(1, 20_000)
batchings = st.sampled_from(["masked", "equal-length", "alone"])


@given(lengths, batchings, budgets)
def test_batches_are_a_partition(lengths, batching, budget):
    """Every row is in exactly one batch."""
    plans = plan_batches(lengths, batching, budget)

    rows = [row for plan in plans for row in plan.rows.tolist()]
    assert list(range(len(lengths))) == sorted(rows)


@given(lengths, batchings, budgets)
def test_padding_is_given_by_a_rows_own_length(lengths, batching, budget):
    """A step of the ladder where there is a mask, the length itself where there is none."""
    for plan in plan_batches(lengths, batching, budget):
        for row in plan.rows:
            own = lengths[row]
            expected = padded_length(own) if batching == "masked" else own
            assert expected == plan.padded_length


@given(lengths, batchings, budgets)
def test_batches_keep_to_the_budget(lengths, batching, budget):
    """A batch beyond it is one row; rows that go alone always are."""
    for plan in plan_batches(lengths, batching, budget):
        assert len(plan.rows) == 1 or len(plan.rows) * plan.padded_length <= budget
        assert batching != "alone" or len(plan.rows) == 1


@given(lengths, batchings, budgets)
def test_batches_are_as_large_as_the_budget_allows(lengths, batching, budget):
    """Two batches of one padded length could not have been one, unless rows go alone."""
    plans = plan_batches(lengths, batching, budget)
    for left, right in itertools.pairwise(plans):
        if left.padded_length == right.padded_length and batching != "alone":
            assert (len(left.rows) + 1) * max(1, left.padded_length) > budget


@given(lengths, batchings, budgets)
def test_the_longest_come_first(lengths, batching, budget):
    """Memory runs out in the first batch or never; among equals, file order is kept."""
    plans = plan_batches(lengths, batching, budget)

    padded = [plan.padded_length for plan in plans]
    assert sorted(padded, reverse=True) == padded
    for width in set(padded):
        rows = np.concatenate([plan.rows for plan in plans if plan.padded_length == width])
        assert (np.diff(rows) > 0).all()


@given(st.integers(0, 10_000_000))
def test_the_ladder_holds_every_length(length):
    """Nothing is cut; above 64 at most 6.25 % is padding; a step is a step of itself."""
    step = padded_length(length)

    assert step >= max(length, 1)
    assert padded_length(step) == step
    if length > 64:
        assert step <= length * 1.0625


@given(st.integers(0, 1_000_000), st.integers(0, 1_000_000))
def test_the_ladder_is_monotone(left, right):
    """A longer row is never padded to less."""
    low, high = sorted((left, right))

    assert padded_length(low) <= padded_length(high)


@pytest.mark.parametrize("octave", [128, 1024, 65_536])
def test_an_octave_has_sixteen_steps(octave):
    """Few enough for a model that is compiled or tuned for each shape."""
    assert len({padded_length(length) for length in range(octave + 1, 2 * octave + 1)}) == 16


@given(lengths, batchings, budgets, st.integers(1, 3000))
def test_no_row_is_padded_beyond_what_the_model_takes(lengths, batching, budget, most):
    """The ladder ends at the model's limit; a row beyond it keeps its own length."""
    for plan in plan_batches(lengths, batching, budget, most):
        for row in plan.rows:
            own = lengths[row]
            assert own <= plan.padded_length <= max(own, most)
            if batching == "masked" and padded_length(own) <= most:
                assert padded_length(own) == plan.padded_length


@given(st.lists(st.lists(st.integers(0, 99), min_size=1, max_size=5), max_size=40), st.data())
def test_file_order_is_kept(windows, data):
    """Each part once, in order, padded to its batch's longest; no batch reaches over a group."""
    size = data.draw(st.integers(1, 9))
    lengths = [length for item in windows for length in item]
    owners = np.repeat(np.arange(len(windows)), [len(item) for item in windows])

    plans = plan_file_order(lengths, owners, size)

    assert list(range(len(lengths))) == [row for plan in plans for row in plan.rows.tolist()]
    for plan in plans:
        assert 1 <= len(plan.rows) <= size
        assert plan.padded_length == max(lengths[row] for row in plan.rows)
        assert len(set(owners[plan.rows] // size)) == 1
    if all(len(item) == 1 for item in windows):
        assert [len(plan.rows) for plan in plans[:-1]] == [size] * len(plans[:-1])


@given(st.integers(1, 500), st.integers(1, 60), st.integers(1, 20))
def test_blocks_run_the_batches_of_the_whole_split(rows, block, size):
    """A block's span begins and ends with batches of the split, and holds no more than it needs."""
    for first in range(0, rows, block):
        last = min(rows, first + block)

        begin, end = whole_batches(first, last, rows, size)

        assert begin % size == 0
        assert end % size == 0 or end == rows
        assert begin <= first < begin + size
        assert last <= end < last + size


@pytest.mark.parametrize(
    ("free", "expected"),
    [
        (None, 2048),
        (0, 4096),
        (1 << 30, 4096),
        (4 << 30, 8192),
        ((4 << 30) - 1, 4096),
        (12 << 30, 16_384),
        (80 << 30, 65_536),
        (1 << 40, 65_536),
    ],
)
def test_the_budget_comes_from_free_memory(free, expected):
    """The largest power of two at half a MiB a token, within its bounds; a CPU's is fixed."""
    assert choose_token_budget(free) == expected

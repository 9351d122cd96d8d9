"""The sizes of the test sets, and deriving them from accuracies."""

from __future__ import annotations

import csv
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geneb.benchmark.sizes import load_test_sizes, smallest_size
from geneb.benchmark.spec import load_spec
from geneb.reporting.submission import Submission, shipped_submissions


def cut(value: float) -> float:
    """A number as the published tables have it."""
    return math.floor(value * 1e6) / 1e6


def test_every_task_has_a_size():
    """All are certain, and they stand in the spec's order."""
    assert list(load_spec().task_ids) == list(load_test_sizes())


def test_sizes_are_those_of_the_real_test_sets(real_data):
    """Where a task's CSV is at hand, it has so many test rows."""
    sizes = load_test_sizes()
    paths = [path for path in sorted((real_data / "tasks").glob("*.csv")) if path.stem in sizes]
    found = {}
    for path in paths:
        with path.open(encoding="utf-8", newline="") as stream:
            found[path.stem] = sum(row["split"] == "test" for row in csv.DictReader(stream))

    assert len(found) >= 13
    assert {task: sizes[task] for task in found} == found


def test_the_file_is_what_the_published_accuracies_give():
    """Derived again, for the largest, the smallest and some between."""
    shipped = [Submission.model_validate_json(data) for data in shipped_submissions().values()]
    sizes = load_test_sizes()
    by_size = sorted(sizes, key=lambda task: sizes[task])
    for task in [*by_size[:2], *by_size[::30], by_size[-1]]:
        accuracies = [one.scores["full"][task]["Acc"] for one in shipped]

        assert smallest_size(accuracies) == sizes[task]


@settings(deadline=None, max_examples=30)
@given(st.integers(50, 900), st.sets(st.integers(1, 49), min_size=8))
def test_a_size_is_found_again(size, right):
    """Of cut accuracies, one of them a single row's; below 1,000 no smaller size comes near it."""
    accuracies = [cut(sum([count / size] * 5) / 5) for count in {1, *right}]

    assert smallest_size(accuracies, limit=4000) == size


@pytest.mark.parametrize(
    "accuracies",
    [[0.123456], [0.5, 0.5, 0.5], [cut(k / 50_021) for k in (3, 50_000, 20_000)]],
)
def test_what_could_be_chance_is_not_certain(accuracies):
    """Few different values, or a large test set with few of them."""
    assert smallest_size(accuracies) is None


def test_no_size_fits():
    """Accuracies of different test sets."""
    assert smallest_size([cut(k / 997) for k in range(1, 20)] + [cut(1 / 991)], limit=5000) is None

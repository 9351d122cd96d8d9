"""Category, macro and micro scores, and ranks."""

from __future__ import annotations

import csv
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geneb.benchmark.spec import load_spec
from geneb.reporting.aggregate import aggregate, mean, ranks

SPEC = load_spec()
COMPLETE = {task: 0.1 + place / 1000 for place, task in enumerate(SPEC.task_ids)}


def exact_mean(values) -> float:
    """The mean in whole numbers, rounded once at the end of the sum and once by the division."""
    return float(sum(map(Fraction, values))) / len(values)


def test_category_macro_and_micro():
    """Category = mean of its tasks, macro = mean of categories, micro = mean of tasks."""
    found = aggregate(COMPLETE, SPEC)
    members = {
        category: [COMPLETE[task.id] for task in SPEC.tasks if task.category == category]
        for category in SPEC.categories
    }
    expected = {category: exact_mean(values) for category, values in members.items()}
    assert found.categories == expected
    assert list(found.categories) == list(SPEC.categories)
    assert found.macro == exact_mean(expected.values())
    assert found.micro == exact_mean(COMPLETE.values())
    assert found.macro != found.micro


@pytest.mark.parametrize("missing", [SPEC.task_ids[0], SPEC.task_ids[-1]])
def test_nothing_is_averaged_over_what_happens_to_be_there(missing):
    """One task less: its category, macro and micro are gone, the other categories stay."""
    scores = {task: value for task, value in COMPLETE.items() if task != missing}
    found = aggregate(scores, SPEC)
    absent = [category for category, value in found.categories.items() if value is None]
    assert absent == [SPEC.find(missing).category]
    assert (found.macro, found.micro, len(found.tasks)) == (None, None, 99)


def test_own_tasks_change_nothing():
    """They stand apart, and a hundredth task of one's own completes nothing."""
    found = aggregate({**COMPLETE, "zz": 1.0, "aa": 1.0}, SPEC)
    assert list(found.own) == ["aa", "zz"]
    honest = aggregate(COMPLETE, SPEC)
    assert (found.macro, found.micro, found.tasks) == (honest.macro, honest.micro, honest.tasks)

    replaced = {**COMPLETE, "own": 1.0}
    del replaced[SPEC.task_ids[7]]
    assert aggregate(replaced, SPEC).micro is None


def test_no_scores():
    """Everything is absent."""
    found = aggregate({}, SPEC)
    assert (found.macro, found.micro, found.tasks, found.own) == (None, None, {}, {})


@given(st.permutations(list(COMPLETE)))
@settings(max_examples=20, deadline=None)
def test_the_order_of_the_scores_plays_no_part(order):
    """To the bit."""
    assert aggregate({task: COMPLETE[task] for task in order}, SPEC) == aggregate(COMPLETE, SPEC)


def test_sums_are_exact():
    """Where adding one by one loses the small number."""
    assert mean([1e16, 1.0, -1e16]) == 1 / 3


@given(st.lists(st.none() | st.sampled_from([0.1, 0.2, math.nextafter(0.2, 1), 0.3])))
@settings(deadline=None)
def test_ranks_count_the_larger_values(values):
    """Equal values share a rank; a difference in the last bit is a difference."""
    for value, rank in zip(values, ranks(values), strict=True):
        if value is None:
            assert rank is None
        else:
            assert rank == 1 + len([v for v in values if v is not None and v > value])


def test_the_rank_after_a_tie_is_left_out():
    """1, 2, 2, 4."""
    assert ranks([0.3, 0.5, 0.3, None, 0.1]) == [2, 1, 2, None, 4]


def test_published_macro_values(root):
    """Two of the published macro MCCs, from published scores rounded to six digits."""
    path = root.parent / "shared/reference/published_scores.csv"
    if not path.exists():
        pytest.skip("the published scores are not here")
    scores: dict[str, dict[str, float]] = {}
    with path.open(newline="", encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            if row["regime"] == "full":
                scores.setdefault(row["model_id"], {})[row["task_id"]] = float(row["MCC"])
    macros = sorted((aggregate(each, SPEC).macro for each in scores.values()), reverse=True)
    assert len(macros) == 41
    # Published to three digits.
    assert [round(value, 3) for value in macros[:3]] == [0.605, 0.589, 0.581]

"""Warnings of scores that cannot come from the benchmark's test sets."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geneb.benchmark.sizes import load_test_sizes
from geneb.reporting.plausible import decimals_of, implausible
from geneb.results import reported_value

SIZES = load_test_sizes()
SEEDS = (13, 17, 42, 123, 997)
TASK = "leannmlindsey_GUE_mouse_3"
PRECISE = {"MCC": 0.123456789012345, "Acc": 120 / 239, "F1": 0.5}


def summary(regime="full", task=TASK, **scores):
    """One task's scores, in full precision unless they are all given otherwise."""
    return {regime: {task: {**PRECISE, **scores}}}


def cut(value, decimals):
    return math.floor(value * 10**decimals) / 10**decimals


@given(
    st.sampled_from(sorted(SIZES)),
    st.data(),
    st.sampled_from(["exact", "rounded", "cut"]),
    st.integers(1, 10),
)
@settings(deadline=None, max_examples=200)
def test_no_honest_accuracy_is_doubted(task, data, kind, decimals):
    """A mean over the seeds of right rows over test rows, as it is, rounded or cut."""
    for regime, fits in (("full", 1), ("10shot", 5)):
        right = data.draw(st.lists(st.integers(1, SIZES[task] - 1), min_size=fits, max_size=fits))
        value = reported_value([count / SIZES[task] for count in right], SEEDS)
        if kind != "exact":
            value = round(value, decimals) if kind == "rounded" else cut(value, decimals)
        found = {regime: {task: {"MCC": value / 3, "Acc": value, "F1": value}}}
        if kind != "exact":
            found[regime][task] |= {"MCC": value, "F1": value}

        assert [one for one in implausible(found) if one.where.endswith("Acc")] == []


@pytest.mark.parametrize(
    ("regime", "accuracy", "doubted"),
    [
        ("full", 120 / 239, False),
        ("full", 600 / 1195, False),
        ("full", 601 / 1195, True),
        ("10shot", 601 / 1195, False),
        ("1shot", 601.5 / 1195, True),
        ("full", 120 / 240, True),
        ("full", 0.83, True),
    ],
)
def test_multiples_of_the_test_size(regime, accuracy, doubted):
    """239 test rows, and five seeds in the few-shot regimes."""
    found = list(implausible(summary(regime, Acc=accuracy)))

    assert bool(found) == doubted
    for one in found:
        assert one.where == f"$.results.{regime}.{TASK}.Acc"
        assert "239 test rows" in one.expected


def test_six_decimals_are_enough_to_tell():
    """Of the size of the published files' precision."""
    rounded = {"MCC": 0.123456, "F1": 0.5}

    assert list(implausible(summary(**rounded, Acc=0.502092))) == []
    assert list(implausible(summary(**rounded, Acc=0.502094)))


def test_two_decimals_say_little():
    """Then nothing is doubted."""
    assert list(implausible(summary(MCC=0.12, Acc=0.83, F1=0.5))) == []


def test_a_task_of_unknown_size():
    """Its accuracy may be anything."""
    assert list(implausible(summary(task="own", Acc=0.83))) == []


@pytest.mark.parametrize(
    ("scores", "word"),
    [
        ({"Acc": 1.0}, "no row was wrong"),
        ({"MCC": 1.0}, "no row was wrong"),
        ({"F1": 1.0}, "no row was wrong"),
        ({"Acc": 0.0}, "0 together"),
        ({"F1": 0.0}, "0 together"),
        ({"Acc": 0.0, "F1": 0.0}, "not above 0"),
        ({"MCC": -1.0}, "every row was wrong"),
    ],
)
def test_metrics_that_cannot_be_together(scores, word):
    """Whatever the classes."""
    assert [word in one.problem for one in implausible(summary(task="own", **scores))] == [True]


@pytest.mark.parametrize(
    "scores",
    [
        {"MCC": 1.0, "Acc": 1.0, "F1": 1.0},
        {"MCC": 1.0 - 1e-15, "Acc": 1.0, "F1": 1.0},
        {"MCC": -1.0, "Acc": 0.0, "F1": 0.0},
        {"MCC": 0.0, "Acc": 0.0, "F1": 0.0},
        {"MCC": 0.0},
        {"MCC": 0.7, "Acc": 238 / 239},
    ],
)
def test_metrics_that_can(scores):
    """Perfect, all wrong, all one class, unbalanced."""
    other = {"full": {"own": {**PRECISE}, TASK: {**PRECISE, **scores}}}

    assert list(implausible(other)) == []


@pytest.mark.parametrize(
    ("value", "decimals"),
    [(0.5, 1), (0.25, 2), (1e-07, 7), (1.5e-07, 8), (1 / 3, 16), (1.0, 1), (0.0, 1)],
)
def test_decimals(value, decimals):
    """As many as a number has when it is written out."""
    assert decimals_of({"full": {"own": {"MCC": value, "Acc": 0.0, "F1": 0.0}}}) == decimals

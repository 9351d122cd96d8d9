"""Regimes: their names, how many rows of a class they take, and which."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.plain_loop import drawn

from geneb.errors import InputError
from geneb.probing.regimes import Regime, draw, parse_regime, short_classes

LABELS = st.lists(st.integers(0, 4), min_size=1, max_size=60).map(np.array)


def shot_regime(shots: int) -> Regime:
    return parse_regime(f"{shots}shot")


@given(LABELS, st.integers(1, 12), st.integers(0, 2**32 - 1))
@settings(deadline=None)  # a busy machine is no failure
def test_a_draw_is_the_plain_loops(labels, shots, seed):
    """The same rows in the same order, for any labels, shots and seed."""
    assert draw(labels, shot_regime(shots), seed).tolist() == drawn(labels, shots, seed).tolist()


@given(LABELS, st.integers(1, 12), st.integers(0, 1000))
@settings(deadline=None)  # a busy machine is no failure
def test_a_draw_takes_shots_of_each_class_and_none_twice(labels, shots, seed):
    """Classes stand in ascending order, each with min(shots, rows) distinct rows of its own."""
    chosen = draw(labels, shot_regime(shots), seed)
    classes, counts = np.unique(labels, return_counts=True)
    sizes = np.minimum(counts, shots)
    assert labels[chosen].tolist() == np.repeat(classes, sizes).tolist()
    assert len(set(chosen.tolist())) == len(chosen)
    assert short_classes(labels, shot_regime(shots)) == (counts < shots).sum()


def test_a_known_draw():
    """Frozen: these rows are what RandomState(13) gives for these labels."""
    labels = np.array([1, 0, 1, 0, 1, 0, 1, 0])
    assert draw(labels, shot_regime(2), 13).tolist() == [3, 7, 2, 6]


@given(LABELS, st.integers(1, 99), st.integers(0, 1000))
@settings(deadline=None)  # a busy machine is no failure
def test_a_share_takes_the_same_part_of_each_class(labels, percent, seed):
    """Rounded up, exactly: each class keeps at least one row, and no class is short."""
    regime = parse_regime(f"{percent}%")
    chosen = draw(labels, regime, seed)
    classes, counts = np.unique(labels, return_counts=True)
    sizes = [-(-percent * count // 100) for count in counts.tolist()]
    assert labels[chosen].tolist() == np.repeat(classes, sizes).tolist()
    assert len(set(chosen.tolist())) == len(chosen)
    assert short_classes(labels, regime) == 0


@pytest.mark.parametrize("percent", ["0.5", "12.5", "7", "07"])
def test_a_share_is_exact(percent):
    """No rounding of a binary fraction adds a row."""
    for count in (1, 199, 200, 201, 1000, 123_456):
        expected = math.ceil(round(float(percent) * 10) * count / 1000)
        assert parse_regime(f"{percent}%").size(count) == expected


def test_only_a_draw_has_seeds():
    """All of the train set is the same for every seed."""
    drawn_ones = [parse_regime(name).is_drawn for name in ("full", "1shot", "99%")]
    assert drawn_ones == [False, True, True]


@pytest.mark.parametrize(
    "name", ["", "Full", "0shot", "-1shot", "1.5shot", "shot", "0%", "0.0%", "100%", "5 %", "٣shot"]
)
def test_names_that_are_none(name):
    """The message says how regimes are named."""
    with pytest.raises(InputError, match="5%"):
        parse_regime(name)

"""One-hot letters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geneb.errors import InputError
from geneb.extractors.onehot import OneHotExtractor
from geneb.testing import ExtractorContract


class TestOneHotContract(ExtractorContract):
    def make(self):
        return OneHotExtractor(60)

    def variants(self):
        return [OneHotExtractor(59), OneHotExtractor(61)]


def test_each_base_has_its_place():
    """A, C, G, T of either case; other letters and positions beyond the end are zeros."""
    (row,) = OneHotExtractor(7).embed(["ACgtUN"])

    expected = np.zeros((7, 4), np.float32)
    expected[range(4), range(4)] = 1
    np.testing.assert_array_equal(expected.ravel(), row)


@given(st.lists(st.text(max_size=12), max_size=6), st.integers(1, 9))
def test_any_text_keeps_its_positions(sequences, positions):
    """One character is one position, whatever it is and whatever stands beside it."""
    found = OneHotExtractor(positions).embed(sequences)

    assert found.shape == (len(sequences), 4 * positions)
    for text, row in zip(sequences, found.reshape(-1, positions, 4), strict=True):
        for position in range(positions):
            letter = text[position : position + 1]
            expected = [
                float(letter in pair) if letter else 0.0 for pair in ("Aa", "Cc", "Gg", "Tt")
            ]
            assert expected == row[position].tolist()


def test_what_is_cut_is_marked():
    """Truncation is counted by the engine, from these marks."""
    items = OneHotExtractor(3).prepare(["AC", "ACG", "ACGT"])

    assert [item.truncated for item in items] == [False, False, True]


@pytest.mark.parametrize("positions", [0, -1, 1.5, True, "8"])
def test_other_numbers_of_positions_are_refused(positions):
    """At least one letter is looked at."""
    with pytest.raises(InputError, match="whole number"):
        OneHotExtractor(positions)

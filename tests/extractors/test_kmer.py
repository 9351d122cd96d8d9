"""k-mer frequencies against the definition, written down the plain way."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geneb.errors import InputError
from geneb.extractors import kmer
from geneb.extractors.kmer import KmerExtractor
from geneb.testing import ExtractorContract

LETTERS = st.one_of(
    st.text(alphabet="ACGT", max_size=40),
    st.text(alphabet="ACGTacgtNnUuRY", max_size=40),
    st.text(max_size=20),
    st.text(alphabet=st.sampled_from("ACGTßﬁŉǰ\ud800\U0001f9ec?N"), max_size=30),
)


def defined(sequence: str, k: int) -> np.ndarray:
    """Count and divide, one window after the other."""
    words = {"".join(word): place for place, word in enumerate(product("ACGT", repeat=k))}
    folded = ["ACGT"["acgt".index(letter)] if letter in "acgt" else letter for letter in sequence]
    counts = [0] * len(words)
    for start in range(len(folded) - k + 1):
        word = "".join(folded[start : start + k])
        if len(word) == k and word in words:
            counts[words[word]] += 1
    total = sum(counts)
    return np.array([np.float32(count / total) if total else 0.0 for count in counts], np.float32)


@pytest.mark.parametrize("k", [1, 2, 3, 8])
class TestKmerContract(ExtractorContract):
    @pytest.fixture(autouse=True)
    def _k(self, k):
        self.k = k

    def make(self):
        return KmerExtractor(self.k)

    def variants(self):
        return [KmerExtractor(k) for k in range(1, 9) if k != self.k]


@settings(deadline=None)
@given(st.lists(LETTERS, min_size=1, max_size=6), st.integers(1, 5))
def test_frequencies_are_those_of_the_definition(sequences, k):
    """Equal to the bit, for any text, in any company."""
    found = KmerExtractor(k).embed(sequences)

    assert found.dtype == np.float32
    np.testing.assert_array_equal(np.stack([defined(text, k) for text in sequences]), found)


@settings(deadline=None)
@given(
    st.lists(LETTERS, min_size=1, max_size=8),
    st.integers(1, 4),
    st.integers(1, 12),
    st.sampled_from([1, 256, 600]),
)
def test_slabs_do_not_show(sequences, k, letters, counters):
    """Wherever the work is cut, no window is lost and none is counted twice."""
    expected = np.stack([defined(text, k) for text in sequences])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kmer, "_SLAB_LETTERS", letters)
        patch.setattr(kmer, "_SLAB_COUNTERS", counters)
        found = KmerExtractor(k).embed(sequences)

    np.testing.assert_array_equal(expected, found)


def test_words_are_in_lexicographic_order():
    """AA, AC, AG, AT, CA ... TT."""
    (row,) = KmerExtractor(2).embed(["ACG"])

    assert np.flatnonzero(row).tolist() == [1, 6]
    assert row[1] == row[6] == 0.5


def test_shares_are_of_the_windows_that_were_counted():
    """Three windows hold an N and do not count; the other two are a half each."""
    (row,) = KmerExtractor(2).embed(["AANTT"])

    assert row[0] == row[15] == 0.5


@pytest.mark.parametrize("sequence", ["", "ACG", "NNNNNNNN", "ACGNACGNACG", "UUUUUU"])
def test_without_a_counted_window_the_row_is_zeros(sequence):
    """Nothing is divided by zero."""
    assert not KmerExtractor(4).embed([sequence]).any()


def test_no_sequences_are_no_rows():
    """The width stays."""
    assert KmerExtractor(3).embed([]).shape == (0, 64)


@pytest.mark.parametrize("k", [0, 9, -1, 2.0, "3", True, None])
def test_other_word_lengths_are_refused(k):
    """k is a whole number from 1 to 8."""
    with pytest.raises(InputError, match="from 1 to 8"):
        KmerExtractor(k)

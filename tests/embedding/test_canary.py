"""The canary: sixteen fixed sequences that tell whether a model still is what it was."""

from __future__ import annotations

import numpy as np
import pytest
from support.odd_extractors import Letters, Neighbourly, NotFinite, Unmasked

from geneb.embedding.canary import (
    canary_digest,
    canary_sequences,
    check_drift,
    make_canary,
    relative_difference,
    tolerance,
)
from geneb.embedding.engine import Engine
from geneb.errors import DriftError, WorkError
from geneb.extractors.base import LAST


def test_the_sequences_never_change():
    """Stores are compared by them: they are part of the format."""
    sequences = canary_sequences()

    assert len(sequences) == 16
    assert sequences[0] == "CCTGCCTACTCT"
    assert canary_digest() == "73599d2c04b4e9c01232a5fe94898e9b7bac059e8236ecc5f893eb4008719469"


def test_the_sequences_have_what_models_differ_in():
    """Lengths that meet in a batch and some that do not, an N, lower case."""
    sequences = canary_sequences()

    assert len({len(sequence) for sequence in sequences}) < 16
    assert sum("N" in sequence for sequence in sequences) == 1
    assert sum(sequence.islower() for sequence in sequences) == 1
    assert set("".join(sequences)) == set("ACGTNacgt")


def test_an_extractor_in_order_gets_its_canary():
    """The vectors are those of the sequences alone."""
    canary = make_canary(Engine(Letters(), 1000))[LAST]

    assert canary.dtype == np.float32
    np.testing.assert_array_equal(Letters().embed(canary_sequences()), canary)


@pytest.mark.parametrize("extractor", [Unmasked(), Neighbourly()])
def test_an_extractor_that_minds_its_company_is_refused(extractor):
    """Padding in a mean, or a vector that depends on its neighbours."""
    with pytest.raises(WorkError, match="another vector in company") as caught:
        make_canary(Engine(extractor, 16_384))

    assert "at most 0.0001" in caught.value.expected


def test_a_vector_that_is_not_finite_is_named():
    """Already the canary says so, before a store is made."""

    class Always(NotFinite):
        def embed(self, sequences):
            return super().embed([sequence + "A" * 8 for sequence in sequences])

    with pytest.raises(WorkError, match="NaN or infinity") as caught:
        make_canary(Engine(Always(), 1000))

    assert caught.value.where.endswith("of the canary (counted from 0)")


def test_differences_are_relative_to_a_row():
    """A row's largest difference over its root mean square."""
    right = np.array([[3.0, 4.0], [300.0, 400.0], [0.0, 0.0], [0.0, 0.0]], dtype=np.float32)
    left = np.array([[3.0, 4.5], [300.0, 400.5], [0.0, 0.0], [0.0, 0.1]], dtype=np.float32)

    found = relative_difference(left, right)

    scale = np.sqrt(12.5)
    np.testing.assert_allclose(found, [0.5 / scale, 0.005 / scale, 0, np.inf], rtol=1e-12)


@pytest.mark.parametrize(
    ("compute", "stored", "small", "large"),
    [
        ("float32", "float32", 5e-5, 2e-4),
        ("float32", "float16", 1e-3, 3e-3),
        ("bfloat16", "float32", 4e-2, 6e-2),
        ("float16", "float32", 4e-2, 6e-2),
        ("unstated", "float32", 5e-5, 2e-4),
    ],
)
def test_drift_is_what_is_beyond_the_tolerance(compute, stored, small, large):
    """Sums in another order pass, other numbers do not; half precision is allowed more."""
    canary = np.ones((16, 8), dtype=np.float32)
    allowed = tolerance(compute, stored)

    check_drift(canary * np.float32(1 + small), canary, allowed, "store")
    with pytest.raises(DriftError, match="no longer those") as caught:
        check_drift(canary * np.float32(1 + large), canary, allowed, "store")

    assert f"{allowed:g}" in caught.value.expected
    assert caught.value.exit_code == 2


def test_a_canary_that_is_not_finite_is_drift():
    """NaN is within no tolerance."""
    canary = np.ones((16, 8), dtype=np.float32)
    broken = canary.copy()
    broken[3, 3] = np.nan

    with pytest.raises(DriftError):
        check_drift(canary, broken, 1e-4, "store")

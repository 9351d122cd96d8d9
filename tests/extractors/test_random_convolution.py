"""The stand-in encoder that measurements use."""

from __future__ import annotations

import numpy as np
import pytest

from geneb.extractors.registry import load
from geneb.testing.extractors import bases


@pytest.fixture
def model(root):
    """The class behind the adapter, as scripts load it."""
    return load(
        f"{root / 'tools' / 'measure' / 'random_convolution.py'}:RandomConvolution"
    ).extractor


def test_a_vector_is_the_same_to_the_bit_in_any_batch(model):
    """Each sequence has a matrix product of its own."""
    sequences = [bases(length, seed=length) for length in (12, 101, 101, 300)]

    together = model.embed(sequences)

    assert together.shape == (4, 768)
    for sequence, row in zip(sequences, together, strict=True):
        np.testing.assert_array_equal(row, model.embed([sequence])[0])


def test_mean_and_maximum_are_those_of_the_definition(model):
    """Window by window, in float64; a float32 product of 48 terms stays within 1e-5."""
    inner = model._model
    sequence = bases(40, seed=3)
    one_hot = np.array([[letter == base for base in "ACGT"] for letter in sequence], dtype=float)
    windows = np.stack([one_hot[start : start + 12].ravel() for start in range(29)])
    active = np.maximum(windows @ inner.filters.astype(float) + inner.bias, 0)

    (row,) = model.embed([sequence])

    np.testing.assert_allclose(row[:384], active.mean(axis=0), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(row[384:], active.max(axis=0), rtol=1e-5, atol=1e-5)


def test_a_long_sequence_is_worked_through_in_pieces(model):
    """Every window once: the pieces' means and maxima are those of the whole."""
    inner = model._model
    sequence = bases(10_000, seed=5)

    (row,) = model.embed([sequence])

    pieces = [sequence[start : start + 1011] for start in range(0, 9_989, 1000)]
    parts = np.stack([inner._embed(piece) for piece in pieces])
    windows = np.array([len(piece) - 11 for piece in pieces], dtype=float)
    assert windows.sum() == 9_989
    np.testing.assert_allclose(
        row[:384], (parts[:, :384] * windows[:, None]).sum(axis=0) / 9_989, rtol=1e-5
    )
    np.testing.assert_allclose(row[384:], parts[:, 384:].max(axis=0), rtol=1e-5)


@pytest.mark.parametrize("sequence", ["", "ACGT", "N" * 20])
def test_short_and_unknown_sequences_have_a_vector(model, sequence):
    """Finite, and that of nothing but the bias where there are no bases."""
    assert np.isfinite(model.embed([sequence])).all()

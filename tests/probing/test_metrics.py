"""Metrics: scikit-learn's, to the last bit."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from geneb.probing.metrics import score


def scikit_learn(truth, predicted):
    """The three metrics as the published loop computes them; it warns of degenerate cases."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return {
            "MCC": float(matthews_corrcoef(truth, predicted)),
            "Acc": float(accuracy_score(truth, predicted)),
            "F1": float(f1_score(truth, predicted, average="macro")),
        }


@given(
    st.integers(1, 45).flatmap(
        lambda classes: st.lists(
            st.tuples(st.integers(0, classes - 1), st.integers(0, classes - 1)), min_size=1
        )
    )
)
def test_any_predictions_score_what_scikit_learn_says(pairs):
    """Equal, not close: any classes, also ones that only truth or only predictions have."""
    truth, predicted = np.array(pairs).T

    assert scikit_learn(truth, predicted) == score(truth, predicted)


@pytest.mark.parametrize("classes", [2, 3, 20, 40])
def test_many_predictions_score_what_scikit_learn_says(classes):
    """With the counts of real test sets, where products of counts are no longer small."""
    generator = np.random.default_rng(classes)
    truth = generator.integers(0, classes, 120_000)
    predicted = np.where(
        generator.random(len(truth)) < 0.6, truth, generator.integers(0, classes, len(truth))
    )

    assert scikit_learn(truth, predicted) == score(truth, predicted)


@pytest.mark.parametrize(
    ("truth", "predicted", "expected"),
    [
        ([0, 1, 0, 1], [0, 1, 0, 1], {"MCC": 1.0, "Acc": 1.0, "F1": 1.0}),
        ([0, 1, 0, 1], [1, 0, 1, 0], {"MCC": -1.0, "Acc": 0.0, "F1": 0.0}),
        # Constant predictions; F1 of class 0 is 2/3, of class 1 it is 0.
        ([0, 1, 0, 1], [0, 0, 0, 0], {"MCC": 0.0, "Acc": 0.5, "F1": 1 / 3}),
        # A test set of one class, all of it right: MCC is 0 by definition.
        ([1, 1], [1, 1], {"MCC": 0.0, "Acc": 1.0, "F1": 1.0}),
        # Class 2 is never predicted, since no train row has it; it counts with an F1 of 0.
        ([0, 1, 2], [0, 1, 1], {"MCC": 3 / 24**0.5, "Acc": 2 / 3, "F1": 5 / 9}),
    ],
)
def test_metrics_of_degenerate_cases(truth, predicted, expected):
    """No warning leaks (here it would be an error); the values are worked out by hand."""
    # The hand-made fractions may differ from scikit-learn's in the last bit.
    assert score(np.array(truth), np.array(predicted)) == pytest.approx(expected, abs=1e-15)

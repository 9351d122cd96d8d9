"""Predictions from one product are those of every single fit, ties included."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from geneb.probing.backends import SklearnBackend
from geneb.probing.predict import predict_together, score_errors
from geneb.probing.protocol import GENEB_LR_1

BACKEND = SklearnBackend()
# Small integers and tiny, huge and equal values: sums that tie exactly, or but for rounding.
NUMBERS = st.one_of(
    st.integers(-3, 3).map(float),
    st.sampled_from([0.1, -0.1, 0.3, 1 / 3, 1e-30, 1e-45, 3e18, -3e18]),
    st.floats(-2, 2, width=32),
).map(lambda value: float(np.float32(value)))


class Fixed:
    """A linear fit with given weights; its own predictions use a product of its own."""

    n_iter = 1
    converged = True

    def __init__(self, coef: np.ndarray, intercept: np.ndarray) -> None:
        self.coef = coef
        self.intercept = intercept
        self.classes = np.arange(max(2, len(coef)))
        self.asked = 0

    def predict(self, rows: np.ndarray) -> np.ndarray:
        self.asked += 1
        scores = rows @ self.coef.T + self.intercept
        if scores.shape[1] == 1:
            return self.classes[(scores[:, 0] > 0).astype(int)]
        return self.classes[scores.argmax(axis=1)]


@st.composite
def near_ties(draw):
    """Rows with duplicates, zero rows and repeated columns, and fits that use them against."""
    dim = draw(st.integers(1, 24))
    width = st.sampled_from([1, 3, 4])
    rows = draw(arrays(np.float32, (draw(st.integers(1, 12)), dim), elements=NUMBERS))
    rows = np.vstack([rows, rows[::-1], np.zeros((1, dim), dtype=np.float32)])
    if draw(st.booleans()):  # every column stands twice, with opposite weights below
        rows = np.hstack([rows, rows])
    fits = []
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from([np.float32, np.float64]))
        classes = draw(width)
        coef = draw(arrays(np.float32, (classes, dim), elements=NUMBERS)).astype(kind)
        if classes > 1 and draw(st.booleans()):
            coef[1] = coef[0]  # two classes that always tie
        if rows.shape[1] > dim:
            coef = np.hstack([coef, -coef])
        intercept = draw(arrays(np.float32, classes, elements=NUMBERS)).astype(kind)
        fits.append(Fixed(coef, intercept))
    kinds = {fit.coef.dtype for fit in fits}
    if len(kinds) > 1:
        for fit in fits:
            fit.coef, fit.intercept = fit.coef.astype(np.float64), fit.intercept.astype(np.float64)
    return rows, fits


@given(near_ties())
@settings(max_examples=80, deadline=None)
def test_one_product_predicts_what_each_fit_predicts(case):
    """Whatever the rounding of either product, the classes are the same."""
    rows, fits = case
    expected = [fit.predict(rows).tolist() for fit in fits]
    assert [each.tolist() for each in predict_together(fits, rows)] == expected


@given(
    st.integers(1, 40).flatmap(
        lambda dim: st.tuples(
            arrays(np.float32, dim, elements=NUMBERS),
            arrays(np.float32, dim, elements=NUMBERS),
            NUMBERS,
            st.permutations(range(dim)),
        )
    )
)
@settings(max_examples=80, deadline=None)
def test_the_bound_holds_for_any_order_of_summation(case):
    """A float32 sum, added up in any order, is within the bound of the exact one."""
    row, weights, intercept, order = case
    total = np.float32(0)
    for place in order:
        total = np.float32(total + np.float32(row[place] * weights[place]))
    found = Fraction(float(np.float32(total + np.float32(intercept))))
    exact = Fraction(intercept) + sum(
        Fraction(float(a)) * Fraction(float(b)) for a, b in zip(row, weights, strict=True)
    )
    bound = score_errors(row[np.newaxis], weights[np.newaxis], np.float32([intercept]))[0, 0]
    assert abs(found - exact) <= Fraction(float(bound))


def test_clear_decisions_ask_no_fit_again():
    """The one product is what is used where no tie is near."""
    generator = np.random.default_rng(0)
    rows = generator.choice([-1.0, 1.0], size=(50, 8)).astype(np.float32)
    two = Fixed(np.eye(1, 8, dtype=np.float32), np.zeros(1, dtype=np.float32))
    three = Fixed(
        np.eye(3, 8, dtype=np.float32) * np.float32([[1], [2], [4]]),
        np.float32([0.3, 0.2, 0.1]),
    )
    expected = [two.predict(rows).tolist(), three.predict(rows).tolist()]
    assert [each.tolist() for each in predict_together([two, three], rows)] == expected
    assert (two.asked, three.asked) == (1, 1)  # by this test alone


@pytest.mark.parametrize("classes", [1, 3])
def test_a_tie_is_left_to_the_fit_itself(classes):
    """A zero row ties exactly; that fit is asked for all rows, the other one is not."""
    rows = np.vstack([np.zeros((1, 4)), np.ones((3, 4))]).astype(np.float32)
    tied = Fixed(np.ones((classes, 4), dtype=np.float32), np.zeros(classes, dtype=np.float32))
    clear = Fixed(np.ones((1, 4), dtype=np.float32), np.ones(1, dtype=np.float32))
    predict_together([tied, clear], rows)
    assert (tied.asked, clear.asked) == (1, 0)


def test_scores_that_overflow_are_left_to_the_fit_itself():
    """An infinite or undefined score is never certain."""
    rows = np.full((2, 4), 3e38, dtype=np.float32)
    fit = Fixed(np.float32([[3e38, -3e38, 1, 1]] * 3), np.zeros(3, dtype=np.float32))
    with np.errstate(all="ignore"):
        predict_together([fit], rows)
    assert fit.asked == 1


@pytest.mark.parametrize("classes", [2, 3])
def test_real_fits_on_awkward_embeddings(classes):
    """Constant, duplicated and zero columns, duplicated and zero rows, fitted for real."""
    generator = np.random.default_rng(classes)
    rows = generator.normal(size=(60, 12)).astype(np.float32)
    rows[:, 0] = 7
    rows[:, 1] = rows[:, 2]
    rows[:, 3] = 0
    rows[10:20] = rows[:10]
    rows[20] = 0
    labels = generator.integers(0, classes, size=60)
    fits = []
    for _ in range(6):
        chosen = generator.choice(60, size=20, replace=False)
        fits.append(BACKEND.fit(rows[chosen], labels[chosen], GENEB_LR_1.probe.parameters))
    expected = [fit.predict(rows).tolist() for fit in fits]
    assert [each.tolist() for each in predict_together(fits, rows)] == expected

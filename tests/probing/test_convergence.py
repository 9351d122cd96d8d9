"""The gradient norm that is recorded with each fit."""

from __future__ import annotations

import numpy as np
import pytest
from support.small_stores import random_task

from geneb.probing.backends import SklearnBackend
from geneb.probing.convergence import optimality, residuals
from geneb.probing.linear import PlainFit
from geneb.probing.protocol import GENEB_LR_1


def objective(coef, intercept, rows, labels, strength):
    """Mean log-loss plus the penalty, written out."""
    scores = rows.astype(np.float64) @ coef.T + intercept
    if scores.shape[1] == 1:
        scores = np.hstack([np.zeros_like(scores), scores])
    losses = np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(len(labels)), labels]
    return losses.mean() + (coef**2).sum() / (2 * strength * len(rows))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("strength", [1.0, 0.25])
def test_it_is_the_slope_of_the_objective(classes, strength):
    """Compared with differences of the objective, far from its optimum."""
    task = random_task(1, classes=classes)
    vectors = 1 if classes == 2 else classes
    fit = PlainFit(
        np.arange(classes),
        np.random.default_rng(0).normal(size=(vectors, task.train.shape[1])),
        np.random.default_rng(1).normal(size=vectors),
        n_iter=0,
        converged=False,
    )

    slopes = []
    step = 1e-6
    for values in (fit.coef, fit.intercept):
        for place in np.ndindex(values.shape):
            ends = []
            for sign in (1, -1):
                values[place] += sign * step
                ends.append(
                    objective(fit.coef, fit.intercept, task.train, task.train_labels, strength)
                )
                values[place] -= sign * step
            slopes.append((ends[0] - ends[1]) / (2 * step))

    found = optimality(fit, task.train, task.train_labels, strength)
    # Central differences of a double are good to about 1e-9 here.
    assert found.gradient_norm == pytest.approx(np.abs(slopes).max(), rel=1e-6)
    # Sums of 40 doubles in another order.
    assert found.objective == pytest.approx(
        objective(fit.coef, fit.intercept, task.train, task.train_labels, strength), rel=1e-12
    )


def test_a_converged_fit_is_within_the_solvers_tolerance():
    """The same number, measured by scikit-learn in float32, made the solver stop at 1e-4."""
    task = random_task(2, classes=3)
    fit = SklearnBackend().fit(task.train, task.train_labels, GENEB_LR_1.probe.parameters)
    assert fit.converged
    # float32 sums over 40 rows leave an error of about 1e-6.
    assert optimality(fit, task.train, task.train_labels, 1.0).gradient_norm <= 1e-4 + 1e-5


def test_slabs_change_nothing(monkeypatch):
    """Rows are taken in slabs to spare memory; the sums are the same but for rounding."""
    task = random_task(3)
    fit = SklearnBackend().fit(task.train, task.train_labels, {"max_iter": 3, "tol": 0.1})
    whole = optimality(fit, task.train, task.train_labels, 1.0)
    monkeypatch.setattr("geneb.probing.convergence._SLAB_BYTES", 7 * task.train.shape[1] * 8)
    found = optimality(fit, task.train, task.train_labels, 1.0)
    # Sums of 40 doubles in another order.
    assert found.gradient_norm == pytest.approx(whole.gradient_norm, rel=1e-12)
    assert found.objective == pytest.approx(whole.objective, rel=1e-12)


@pytest.mark.parametrize("score", [30.0, 200.0, 700.0])
@pytest.mark.parametrize("vectors", [1, 3])
def test_what_is_left_of_a_certain_decision_keeps_its_digits(score, vectors):
    """The residual of a row that is told apart by far is a tiny number, not zero or rounding."""
    scores = np.zeros((1, vectors))
    scores[0, -1] = score
    classes = np.arange(max(2, vectors))

    residual, losses = residuals(scores, classes[-1:], classes)

    others = (len(classes) - 1) * np.exp(-score)  # of which a double has every digit
    # A few operations in float64.
    assert residual[0, -1] == pytest.approx(-others, rel=1e-12)
    assert losses[0] == pytest.approx(others, rel=1e-12)


def test_a_certain_mistake_costs_its_score():
    """Nothing overflows."""
    residual, losses = residuals(np.array([[1e6, 0.0, 0.0]]), np.array([2]), np.arange(3))

    assert residual.tolist() == [[1.0, 0.0, -1.0]]
    assert losses.tolist() == [1e6]

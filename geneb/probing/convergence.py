"""How close to the optimum a fit ended, measured in the same way for every backend."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from geneb.probing.backends import LinearFit

_SLAB_BYTES = 64 << 20


class Optimality(NamedTuple):
    """Where a fit ended, in float64.

    Attributes
    ----------
    objective
        Mean log-loss plus ``|w|^2 / (2 C n)``; intercepts are not penalised.
    gradient_norm
        Largest absolute component of the objective's gradient.
    """

    objective: float
    gradient_norm: float


def optimality(fit: LinearFit, rows: np.ndarray, labels: np.ndarray, strength: float) -> Optimality:
    """Return the objective of logistic regression and its gradient's size at a solution.

    scikit-learn stops where its own computation of the same gradient falls below ``tol``; on
    float32 rows it computes in float32, so the two need not agree in every digit.

    Parameters
    ----------
    rows, labels
        What was fitted: shapes (n, dim) and (n,).
    strength
        C, the inverse of the penalty's strength.
    """
    coef = fit.coef.astype(np.float64)
    count = len(rows)
    weights = np.zeros_like(coef)
    intercept = np.zeros(len(coef))
    loss = 0.0
    slab = max(1, _SLAB_BYTES // (rows.shape[1] * 8))
    for first in range(0, count, slab):
        part = rows[first : first + slab].astype(np.float64)
        scores = part @ coef.T + fit.intercept
        residual, losses = _residuals(scores, labels[first : first + slab], fit.classes)
        weights += residual.T @ part
        intercept += residual.sum(axis=0)
        loss += losses.sum()
    weights = weights / count + coef / (strength * count)
    penalty = (coef**2).sum() / (2 * strength * count)
    return Optimality(
        objective=float(loss / count + penalty),
        gradient_norm=float(max(np.abs(weights).max(), np.abs(intercept / count).max())),
    )


def _residuals(
    scores: np.ndarray, labels: np.ndarray, classes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities minus truth, one column a weight vector, and each row's log-loss."""
    vectors = scores.shape[1]
    if vectors == 1:  # one weight vector: the other class has score 0
        scores = np.hstack([np.zeros_like(scores), scores])
    scores = scores - scores.max(axis=1, keepdims=True)
    powers = np.exp(scores)
    sums = powers.sum(axis=1, keepdims=True)
    truth = labels[:, np.newaxis] == classes
    losses = np.log(sums[:, 0]) - scores[truth]
    return (powers / sums - truth)[:, -vectors:], losses

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
        residual, losses = residuals(scores, labels[first : first + slab], fit.classes)
        weights += residual.T @ part
        intercept += residual.sum(axis=0)
        loss += losses.sum()
    weights = weights / count + coef / (strength * count)
    penalty = (coef**2).sum() / (2 * strength * count)
    return Optimality(
        objective=float(loss / count + penalty),
        gradient_norm=float(max(np.abs(weights).max(), np.abs(intercept / count).max())),
    )


def residuals(
    scores: np.ndarray, labels: np.ndarray, classes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return how far predicted probabilities are from the truth, and each row's log-loss.

    Parameters
    ----------
    scores
        float64, shape (n, weight vectors).
    labels, classes
        Shapes (n,) and (K,).

    Returns
    -------
    residual : ndarray of float64, of the scores' shape
        Probabilities minus truth. The true class's is the sum of the others': close to 1, a
        probability has lost the digits that tell by how much.
    losses : ndarray of float64, shape (n,)
        To their last digits, however small.
    """
    vectors = scores.shape[1]
    if vectors == 1:  # one weight vector: the other class has score 0
        scores = np.hstack([np.zeros_like(scores), scores])
    places = np.arange(len(scores))
    own = places, np.searchsorted(classes, labels)
    top = places, scores.argmax(axis=1)
    scores = scores - scores[top][:, np.newaxis]
    powers = np.exp(scores)
    powers[top] = 0.0
    others = powers.sum(axis=1)
    powers[top] = 1.0
    losses = np.log1p(others) - scores[own]
    powers /= (1.0 + others)[:, np.newaxis]
    powers[own] = 0.0
    powers[own] = -powers.sum(axis=1)
    return powers[:, -vectors:], losses

"""How close to the optimum a fit ended, measured in the same way for every backend."""

from __future__ import annotations

import numpy as np

from geneb.probing.backends import LinearFit

_SLAB_BYTES = 64 << 20


def gradient_norm(fit: LinearFit, rows: np.ndarray, labels: np.ndarray, strength: float) -> float:
    """Return the largest absolute component of the gradient of the mean objective, in float64.

    The objective is the mean log-loss plus ``|w|^2 / (2 C n)``; intercepts are not penalised.
    scikit-learn stops where its own computation of the same number falls below ``tol``; on
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
    slab = max(1, _SLAB_BYTES // (rows.shape[1] * 8))
    for first in range(0, count, slab):
        part = rows[first : first + slab].astype(np.float64)
        residual = _residuals(part @ coef.T + fit.intercept, labels[first : first + slab], fit)
        weights += residual.T @ part
        intercept += residual.sum(axis=0)
    weights = weights / count + coef / (strength * count)
    return float(max(np.abs(weights).max(), np.abs(intercept / count).max()))


def _residuals(scores: np.ndarray, labels: np.ndarray, fit: LinearFit) -> np.ndarray:
    """Return probabilities minus truth, one column a weight vector."""
    if scores.shape[1] == 1:  # one weight vector: the other class has score 0
        scores = np.hstack([np.zeros_like(scores), scores])
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    probabilities = powers / powers.sum(axis=1, keepdims=True)
    residuals = probabilities - (labels[:, np.newaxis] == fit.classes)
    return residuals[:, -len(fit.coef) :]

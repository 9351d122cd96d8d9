"""scikit-learn's logistic regression without what it does around the mathematics.

An evaluation of its objective asks of every array which library it belongs to, and where it lies.
On the few rows of a few-shot fit that takes several times as long as the loss and its gradient.
Here the same operations are done in the same order, on arrays of the same layout, with the same
compiled loss and the same optimiser under the same options: solution, iterations and status are
scikit-learn's to the last bit. That holds for the versions that it was compared with, so only
these are stood in for; `geneb.probing.backends` turns to scikit-learn itself for all else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.optimize
import sklearn
from sklearn._loss import HalfBinomialLoss, HalfMultinomialLoss

from geneb.probing.linear import PlainFit

COMPARED = ("1.9.0", "1.9.1")
"""Versions of scikit-learn whose bits these are; those of 1.8 are others."""

_ARGUMENTS = {"C", "solver", "max_iter", "tol"}

Objective = Callable[[np.ndarray], tuple[float, np.ndarray]]


def stands_in(dtype: np.dtype, parameters: Mapping[str, Any]) -> bool:
    """Return whether `solve` does here what LogisticRegression does, for rows of this dtype."""
    return (
        sklearn.__version__ in COMPARED
        and dtype in (np.float32, np.float64)
        and set(parameters) == _ARGUMENTS
        and parameters["solver"] == "lbfgs"
    )


def solve(rows: np.ndarray, labels: np.ndarray, parameters: Mapping[str, Any]) -> PlainFit:
    """Fit a logistic regression with an L2 penalty by lbfgs.

    Parameters
    ----------
    rows
        float32 or float64, shape (n, dim), finite.
    labels
        Integers, shape (n,), of at least two classes.
    parameters
        C, solver, max_iter and tol of LogisticRegression.

    Returns
    -------
    PlainFit
        Of the rows' dtype.
    """
    rows = np.ascontiguousarray(rows)
    classes, places = np.unique(labels, return_inverse=True)
    targets = places.astype(rows.dtype)
    penalty = 1.0 / (parameters["C"] * len(rows))
    vectors = len(classes) if len(classes) > 2 else 1
    objective = _binomial if vectors == 1 else _multinomial
    found = scipy.optimize.minimize(
        objective(rows, targets, penalty, vectors),
        np.zeros(vectors * (rows.shape[1] + 1), dtype=rows.dtype),
        method="L-BFGS-B",
        jac=True,
        options={
            "maxiter": parameters["max_iter"],
            "maxls": 50,
            "gtol": parameters["tol"],
            "ftol": 64 * np.finfo(float).eps,
        },
    )
    # The layout that scikit-learn leaves: the order in which products are added up hangs on it.
    solution = found.x.reshape((vectors, -1), order="F").astype(rows.dtype)
    return PlainFit(
        classes=classes,
        coef=solution[:, :-1] if vectors > 1 else solution[0, :-1][np.newaxis],
        intercept=solution[:, -1],
        n_iter=min(found.nit, parameters["max_iter"]),
        converged=found.status == 0,
    )


def _binomial(rows: np.ndarray, targets: np.ndarray, penalty: float, vectors: int) -> Objective:
    """Return loss and gradient for two classes; what is solved for is shape (dim + 1,)."""
    del vectors
    count, dtype = len(rows), rows.dtype
    loss_gradient = HalfBinomialLoss().closs.loss_gradient

    def evaluate(solution: np.ndarray) -> tuple[float, np.ndarray]:
        weights = solution[:-1]
        scores = rows @ weights.astype(dtype) + solution[-1].astype(dtype)
        losses, residual = np.empty_like(targets), np.empty_like(scores)
        loss_gradient(targets, scores, None, losses, residual, 1)
        loss = float(losses.sum() / count) + float(0.5 * penalty * (weights @ weights))
        residual /= count
        gradient = np.empty_like(solution)
        gradient[:-1] = rows.T @ residual + penalty * weights
        gradient[-1] = residual.sum()
        return loss, gradient

    return evaluate


def _multinomial(rows: np.ndarray, targets: np.ndarray, penalty: float, vectors: int) -> Objective:
    """Return loss and gradient for more classes; what is solved for is raveled column by column."""
    count, dtype = len(rows), rows.dtype
    loss_gradient = HalfMultinomialLoss(n_classes=vectors).closs.loss_gradient

    def evaluate(solution: np.ndarray) -> tuple[float, np.ndarray]:
        solution = solution.reshape((vectors, -1), order="F")
        weights = solution[:, :-1]
        scores = rows @ weights.astype(dtype).T + solution[:, -1].astype(dtype)
        losses, residual = np.empty_like(targets), np.empty_like(scores)
        loss_gradient(targets, scores, None, losses, residual, 1)
        flat = weights.ravel(order="K")
        loss = float(losses.sum() / count) + float(0.5 * penalty * np.dot(flat, flat))
        residual /= count
        gradient = np.empty_like(solution, order="F")
        gradient[:, :-1] = residual.T @ rows + penalty * weights
        gradient[:, -1] = residual.sum(axis=0)
        return loss, gradient.ravel(order="F")

    return evaluate

"""Predictions of many fits from one matrix product, identical to one product a fit.

A sum of d products depends on the order in which it is added up, and BLAS adds in another order
for ten weight vectors than for one. The two results can be told apart only where a decision hangs
on rounding, so those decisions are found by a bound that holds for every order, and taken from
the fit's own predictions instead.

The bound. Let u be the unit roundoff (half of eps) of the dtype that is computed in, and
g(k) = k u / (1 - k u). For every order of summation, with or without fused multiply-add,

    |fl(x . w) - x . w| <= g(d) sum_i |x_i w_i| <= g(d) |x| |w|        (Cauchy-Schwarz),

and rounding once more when the intercept b is added gives

    |fl(x . w + b) - (x . w + b)| <= g(d + 1) (|x| |w| + |b|) + underflow = E,

where each product that underflows adds at most the smallest normal number. Two computed values of
one score thus differ by at most 2 E. A sign is certain if the score is beyond 2 E of zero; the
winning class is certain if the lead over the second exceeds 4 max E over the classes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from geneb.probing.backends import LinearFit

_SLACK = 1.01  # covers the rounding of the bound itself, which is computed in float64


def predict_together(fits: Sequence[LinearFit], rows: np.ndarray) -> list[np.ndarray]:
    """Return what ``[fit.predict(rows) for fit in fits]`` returns, element for element.

    Parameters
    ----------
    fits
        All of the same dimension and dtype; there may be none.
    rows
        float32, shape (n, dim), finite.

    Returns
    -------
    list of ndarray of int64, shape (n,)
    """
    if not fits:
        return []
    coef = np.concatenate([fit.coef for fit in fits])
    intercept = np.concatenate([fit.intercept for fit in fits])
    with np.errstate(over="ignore", invalid="ignore"):  # such scores are uncertain, see `_decide`
        scores = rows @ coef.T + intercept
        errors = score_errors(rows, coef, intercept)
    predictions = []
    first = 0
    for fit in fits:
        columns = slice(first, first + len(fit.coef))
        first = columns.stop
        winners, certain = _decide(scores[:, columns], errors[:, columns])
        if certain.all():
            predictions.append(fit.classes[winners])
        else:
            predictions.append(fit.predict(rows))
    return predictions


def score_errors(rows: np.ndarray, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
    """Return E of the module's docstring for each row and weight vector.

    Returns
    -------
    ndarray of float64, shape (n, weight vectors)
    """
    kind = np.finfo(np.result_type(rows, coef))
    dim = rows.shape[1]
    roundoff = (dim + 1) * float(kind.eps) / 2
    growth = roundoff / (1 - roundoff)
    size = np.outer(_norms(rows), _norms(coef)) + np.abs(intercept.astype(np.float64))
    return _SLACK * growth * size + 2 * dim * float(kind.tiny)


def _norms(vectors: np.ndarray) -> np.ndarray:
    """Return Euclidean norms, added up in float64 without a float64 copy of the vectors."""
    return np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))


def _decide(scores: np.ndarray, errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the winning class of each row, and whether no rounding could change it.

    A score that is not a number makes every comparison below false, hence uncertain.
    """
    if scores.shape[1] == 1:
        winners = (scores[:, 0] > 0).astype(np.intp)
        return winners, np.abs(scores[:, 0]) > 2 * errors[:, 0]
    winners = scores.argmax(axis=1)
    best_two = np.partition(scores, -2, axis=1)[:, -2:].astype(np.float64)
    with np.errstate(invalid="ignore"):
        lead = best_two[:, 1] - best_two[:, 0]
    return winners, lead > 4 * errors.max(axis=1)

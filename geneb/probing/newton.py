"""Newton's method for logistic regression with an L2 penalty: its optimum, in float64.

The objective is that of `geneb.probing.convergence`. Each step solves the Newton equations by
conjugate gradients. scikit-learn's newton-cg does so too, but stops short on raw embeddings of
several classes: features of very different scales take more inner iterations than its 200, and it
ended a thousand steps at a gradient of 1e-4. Here the inner iterations are preconditioned with
one Cholesky factor for each weight vector, which takes the scales out.

With fewer rows than dimensions the optimum lies in the rows' span, so it is looked for there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from geneb.probing.backends import LinearFit
from geneb.probing.convergence import optimality, residuals
from geneb.probing.linear import PlainFit

_MAX_STEPS = 200
_MAX_INNER = 500
_MAX_HALVINGS = 50
_INNER_TOLERANCE = 1e-4  # of the right-hand side: each step gains some four digits near the end
_SUFFICIENT = 1e-4  # share of the decrease that the slope promises
_ROUNDING = 1e-13  # relative: below it, values of the objective cannot be told apart
_FACTOR_BYTES = 512 << 20
_SLAB_BYTES = 64 << 20


def finish(
    start: LinearFit, rows: np.ndarray, labels: np.ndarray, strength: float, tolerance: float
) -> PlainFit:
    """Take a fit to the optimum.

    Parameters
    ----------
    start
        Where to begin; what it is changes the number of steps only.
    rows, labels
        What was fitted: shapes (n, dim) and (n,).
    strength
        C, the inverse of the penalty's strength.
    tolerance
        Largest absolute component of the gradient that is called converged. Once there, steps go
        on for as long as they lower it by a tenth, so that what is left of the error is rounding,
        whatever the size of the embeddings.

    Where rounding leaves a larger gradient than that, as on embeddings of 1e5 and more that are
    hard to tell apart, the fit ends there and is not called converged.

    Returns
    -------
    PlainFit
        float64; ``n_iter`` counts the iterations of the start and the steps made here.
    """
    basis, objective = _pose(rows, labels, start.classes, strength)
    points = [np.zeros((len(start.coef), objective.matrix.shape[1]))]
    with np.errstate(over="ignore", invalid="ignore"):
        inner = start.coef.astype(np.float64)
        points.append(np.column_stack([inner if basis is None else inner @ basis, start.intercept]))
        values = [objective.at(point).value for point in points]
    point = points[1] if values[1] < values[0] else points[0]
    if len(point) > 1:
        point = point - point.mean(axis=0)
    point, steps = _minimise(objective, point, basis, tolerance)
    coef, intercept = point[:, :-1], point[:, -1]
    fit = PlainFit(
        start.classes,
        coef if basis is None else coef @ basis.T,
        intercept,
        start.n_iter + steps,
        converged=False,
    )
    reached = optimality(fit, rows, labels, strength).gradient_norm <= tolerance
    return PlainFit(fit.classes, fit.coef, fit.intercept, fit.n_iter, converged=reached)


def finish_bytes(n_train: int, dim: int, vectors: int) -> int:
    """Return the most memory that `finish` takes, in bytes, besides the rows it is given.

    Parameters
    ----------
    n_train, dim
        Shape of the rows.
    vectors
        Weight vectors: one for each class, or one for two classes.
    """
    span = n_train < dim
    inner = min(n_train, dim) + 1
    matrix = 8 * n_train * inner
    # The rows' transpose in float64, its QR factors and LAPACK's copy of it.
    basis = 4 * 8 * n_train * dim if span else 0
    factors = _factors_of(inner, vectors) + 1  # and the one that is being made
    slabs = 2 * min(_SLAB_BYTES, matrix)
    return matrix + basis + 8 * inner**2 * factors + slabs


def _factors_of(dim: int, vectors: int) -> int:
    """Return how many factors there may be: one a weight vector if memory allows, or one."""
    return vectors if 8 * vectors * dim**2 <= _FACTOR_BYTES else 1


def _pose(
    rows: np.ndarray, labels: np.ndarray, classes: np.ndarray, strength: float
) -> tuple[np.ndarray | None, _Objective]:
    """Return a basis of the rows' span, where that is smaller than the space, and the problem."""
    basis = None
    inner = rows
    if rows.shape[0] < rows.shape[1]:
        basis, triangle = np.linalg.qr(rows.T.astype(np.float64))
        inner = triangle.T
    matrix = np.ones((len(inner), inner.shape[1] + 1))
    matrix[:, :-1] = inner
    return basis, _Objective(matrix, labels, classes, strength)


class _State(NamedTuple):
    """The objective at a point: each row's residuals, value and gradient, of the point's shape."""

    scores: np.ndarray
    residual: np.ndarray
    value: float
    gradient: np.ndarray


class _Objective:
    """Mean log-loss plus penalty, as a function of weight vectors with the intercept at their end.

    Parameters
    ----------
    matrix
        float64, shape (n, d + 1), whose last column is 1.
    """

    def __init__(
        self, matrix: np.ndarray, labels: np.ndarray, classes: np.ndarray, strength: float
    ) -> None:
        self.matrix = matrix
        self._labels = labels
        self._classes = classes
        self._truth = np.searchsorted(classes, labels)
        self._penalty = np.full(matrix.shape[1], 1 / (strength * len(matrix)))
        self._penalty[-1] = 0.0

    def at(self, point: np.ndarray) -> _State:
        """Return the objective at a point."""
        scores = self.matrix @ point.T
        residual, losses = residuals(scores, self._labels, self._classes)
        return _State(
            scores,
            residual,
            losses.mean() + 0.5 * (self._penalty * point**2).sum(),
            residual.T @ self.matrix / len(scores) + self._penalty * point,
        )

    def along(
        self,
        state: _State,
        slopes: np.ndarray,
        point: np.ndarray,
        direction: np.ndarray,
        step: float,
    ) -> tuple[float, float]:
        """Return value and slope at ``point + step direction``, where scores change by slopes."""
        residual, losses = residuals(state.scores + step * slopes, self._labels, self._classes)
        there = point + step * direction
        value = losses.mean() + 0.5 * (self._penalty * there**2).sum()
        slope = (residual * slopes).sum() / len(residual)
        return float(value), float(slope + (self._penalty * there * direction).sum())

    def curve(self, state: _State, direction: np.ndarray) -> np.ndarray:
        """Return the Hessian times a direction."""
        slopes = self.matrix @ direction.T
        residual = state.residual
        if residual.shape[1] == 1:
            bent = np.abs(residual) * (1 - np.abs(residual)) * slopes
        else:
            # Relative to the true class's: what is subtracted then is as small as the result.
            own = np.arange(len(slopes)), self._truth
            slopes -= slopes[own][:, np.newaxis]
            shares = residual.copy()
            shares[own] += 1
            bent = shares * (slopes - (shares * slopes).sum(axis=1, keepdims=True))
        return bent.T @ self.matrix / len(slopes) + self._penalty * direction

    def factors(self, state: _State) -> list[tuple[np.ndarray, bool]]:
        """Return Cholesky factors of the Hessian's blocks, one a weight vector if memory allows.

        Otherwise one stands for all: that of their mean.
        """
        size = np.abs(state.residual)
        bends = size * (1 - size)  # p (1 - p), whichever class is the true one
        if _factors_of(self.matrix.shape[1], bends.shape[1]) == 1:
            bends = bends.mean(axis=1, keepdims=True)
        return [self._factor(bends[:, place]) for place in range(bends.shape[1])]

    def _factor(self, bend: np.ndarray) -> tuple[np.ndarray, bool]:
        count, dim = self.matrix.shape
        block = np.zeros((dim, dim))
        slab = max(1, _SLAB_BYTES // (dim * 8))
        for first in range(0, count, slab):
            place = slice(first, first + slab)
            part = np.sqrt(bend[place, np.newaxis]) * self.matrix[place]
            block += part.T @ part
        block /= count
        diagonal = np.diagonal(block) + self._penalty
        # Rounding must not make it indefinite; a preconditioner need not be exact.
        np.fill_diagonal(block, diagonal + 1e-13 * diagonal.max() + np.finfo(float).tiny)
        return cho_factor(block, lower=True, overwrite_a=True, check_finite=False)


def _minimise(
    objective: _Objective, point: np.ndarray, basis: np.ndarray | None, tolerance: float
) -> tuple[np.ndarray, int]:
    """Return the optimum, or the point where rounding leaves no way down, and the steps made."""
    state = objective.at(point)
    steps = 0
    while steps < _MAX_STEPS:
        near = _size(state.gradient, basis) <= tolerance
        direction = _solve(objective, state)
        step = _search(objective, state, point, direction)
        if step == 0:
            break
        following = point + step * direction
        after = objective.at(following)
        stuck = _size(after.gradient, basis) > 0.9 * _size(state.gradient, basis)
        if stuck and (near or after.value >= state.value):
            break
        point, state = following, after
        steps += 1
    return point, steps


def _size(gradient: np.ndarray, basis: np.ndarray | None) -> float:
    """Return the largest absolute component of a gradient, in the space of the rows."""
    inner = gradient[:, :-1] if basis is None else gradient[:, :-1] @ basis.T
    return float(max(np.abs(inner).max(), np.abs(gradient[:, -1]).max()))


def _solve(objective: _Objective, state: _State) -> np.ndarray:
    """Return a direction that solves the Newton equations, by preconditioned conjugate gradients.

    Any iterate of these is a direction downhill, so that they may stop at any time.
    """
    factors = objective.factors(state)
    residual = -state.gradient
    found = np.zeros_like(residual)
    conditioned = _apply(factors, residual)
    search = conditioned
    product = first = (residual * conditioned).sum()
    for _ in range(_MAX_INNER):
        if product <= _INNER_TOLERANCE**2 * first:
            break
        curved = objective.curve(state, search)
        bend = (search * curved).sum()
        if bend <= 0:  # only rounding can make it so
            break
        length = product / bend
        found = found + length * search
        residual = residual - length * curved
        conditioned = _apply(factors, residual)
        product, before = (residual * conditioned).sum(), product
        search = conditioned + product / before * search
    return found


def _apply(factors: list[tuple[np.ndarray, bool]], vectors: np.ndarray) -> np.ndarray:
    """Return what a preconditioner makes of a gradient.

    What all classes have in common changes no probability, hence is taken out.
    """
    if len(factors) == 1:
        made = cho_solve(factors[0], vectors.T, check_finite=False).T
    else:
        pairs = zip(factors, vectors, strict=True)
        made = np.stack([cho_solve(factor, vector, check_finite=False) for factor, vector in pairs])
    return made if len(made) == 1 else made - made.mean(axis=0)


def _search(
    objective: _Objective, state: _State, point: np.ndarray, direction: np.ndarray
) -> float:
    """Return how far to go: the first of 1, 1/2, 1/4 ... that descends; 0 where none does.

    Close to the optimum values differ by rounding only; there a step descends if the slope at its
    end is smaller than at its beginning, which for a convex objective says the same.
    """
    promised = float((state.gradient * direction).sum())
    if promised >= 0:
        return 0.0
    slopes = objective.matrix @ direction.T
    step = 1.0
    for _ in range(_MAX_HALVINGS):
        value, slope = objective.along(state, slopes, point, direction, step)
        change = value - state.value
        level = abs(change) <= _ROUNDING * abs(state.value)
        if change <= _SUFFICIENT * step * promised or (level and abs(slope) <= 0.9 * -promised):
            return step
        step /= 2
    return 0.0

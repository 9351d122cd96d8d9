"""A fitted linear classifier as plain arrays: what a solver hands back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class PlainFit:
    """A `geneb.probing.backends.LinearFit` made of its numbers.

    Attributes
    ----------
    classes
        int64, shape (K,), ascending.
    coef
        float32 or float64, shape (K, dim), or (1, dim) for two classes.
    intercept
        shape (K,) or (1,).
    n_iter, converged
        Of the solver; None where there is none.
    """

    classes: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    n_iter: int | None
    converged: bool | None

    def predict(self, rows: np.ndarray) -> np.ndarray:
        """Return the class of the highest score; the first of several, as scikit-learn does."""
        scores = rows @ self.coef.T + self.intercept
        if scores.shape[1] == 1:
            return self.classes[(scores[:, 0] > 0).astype(np.intp)]
        return self.classes[scores.argmax(axis=1)]

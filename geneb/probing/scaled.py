"""Logistic regression on transformed rows, its penalty given or chosen on a part of train."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from geneb.probing.backends import Backend, Fitted
from geneb.probing.convergence import Optimality
from geneb.probing.estimators import TransformedFit
from geneb.probing.metrics import score
from geneb.probing.probes import LogisticProbe
from geneb.probing.regimes import draw, parse_regime
from geneb.probing.transforms import Transform, projection, standardisation


@dataclass(frozen=True)
class ScaledProbe:
    """Logistic regression on standardised rows, or on their first principal components.

    Parameters
    ----------
    regression
        What is fitted to the transformed rows.
    components
        Principal components kept; None for all features as they are.
    """

    regression: LogisticProbe
    components: int | None = None
    seeded = False
    row_order_matters = True

    @property
    def backends(self) -> tuple[str, ...]:
        """Names of the backends that can fit the regression."""
        return self.regression.backends

    def describe(self) -> str:
        """Return the regression's arguments, and what is done to rows first."""
        kept = f", first {self.components} components" if self.components else ""
        return f"{self.regression.describe()}, standardised{kept}"

    def fit(
        self, rows: np.ndarray, labels: np.ndarray, seed: int | None, backend: Backend
    ) -> TransformedFit:
        """Fit; a seed changes nothing."""
        transform = self._learn(rows)
        fit = self.regression.fit(transform(rows), labels, seed, backend)
        return TransformedFit(transform, fit, fit.classes, fit.n_iter, fit.converged)

    def optimality(self, fit: Fitted, rows: np.ndarray, labels: np.ndarray) -> Optimality:
        """Return the objective on the transformed rows and its gradient, in float64."""
        assert isinstance(fit, TransformedFit)  # it is what `fit` returned
        return self.regression.optimality(fit.classifier, fit.transform(rows), labels)

    def _learn(self, rows: np.ndarray) -> Transform:
        if self.components is None:
            return standardisation(rows)
        return projection(rows, self.components)


@dataclass(frozen=True)
class TunedFit(TransformedFit):
    """A fit whose penalty was chosen.

    Attributes
    ----------
    probe
        With the C that was chosen.
    """

    probe: ScaledProbe | None = None


@dataclass(frozen=True)
class TunedProbe:
    """Logistic regression on standardised rows, with the C that does best on a part of train.

    That part, the carve, is drawn by the rule of a regime that is a share of each class, with one
    seed for all: it hangs on labels alone, so that it is the same rows for all models. A class of
    one row keeps it for fitting. Each C is fitted to the rest, standardised by the rest, and the
    one with the highest MCC on the carve is fitted to all rows; the smallest of several. Where
    the carve would not have rows of two classes, as in 1shot, C stays what it is.

    Parameters
    ----------
    regression
        What is fitted, and the C where none can be chosen.
    grid
        The values of C, ascending.
    share
        Name of the regime that says how much is carved.
    carve_seed
        Of the draw.
    """

    regression: LogisticProbe
    grid: tuple[float, ...]
    share: str
    carve_seed: int
    seeded = False
    row_order_matters = True

    @property
    def backends(self) -> tuple[str, ...]:
        """Names of the backends that can fit the regression."""
        return self.regression.backends

    def describe(self) -> str:
        """Return the regression, the grid and the carve."""
        grid = ", ".join(f"{strength:g}" for strength in self.grid)
        return (
            f"{ScaledProbe(self.regression).describe()}, C of {grid} by MCC on {self.share} of "
            f"each class of train (seed {self.carve_seed})"
        )

    def fit(
        self, rows: np.ndarray, labels: np.ndarray, seed: int | None, backend: Backend
    ) -> TunedFit:
        """Choose, and fit; a seed changes nothing."""
        best = ScaledProbe(self.choose(rows, labels, backend))
        fit = best.fit(rows, labels, seed, backend)
        return TunedFit(fit.transform, fit.classifier, fit.classes, fit.n_iter, fit.converged, best)

    def optimality(self, fit: Fitted, rows: np.ndarray, labels: np.ndarray) -> Optimality:
        """Return the objective with the chosen C and its gradient, in float64."""
        assert isinstance(fit, TunedFit)  # it is what `fit` returned
        assert fit.probe is not None
        return fit.probe.optimality(fit, rows, labels)

    def carve(self, labels: np.ndarray) -> np.ndarray:
        """Return which rows are carved out of train: bool, shape (n,); none where none can be."""
        carved = np.zeros(len(labels), dtype=bool)
        classes, counts = np.unique(labels, return_counts=True)
        if (counts > 1).sum() > 1:
            several = np.flatnonzero(np.isin(labels, classes[counts > 1]))
            drawn = draw(labels[several], parse_regime(self.share), self.carve_seed)
            carved[several[drawn]] = True
        return carved

    def choose(self, rows: np.ndarray, labels: np.ndarray, backend: Backend) -> LogisticProbe:
        """Return the regression with the C that does best on the carve of these rows."""
        carved = self.carve(labels)
        if not carved.any():
            return self.regression
        transform = standardisation(rows[~carved])
        kept, held = transform(rows[~carved]), transform(rows[carved])
        best, best_value = self.regression, -math.inf
        for strength in self.grid:
            candidate = replace(
                self.regression, parameters={**self.regression.parameters, "C": strength}
            )
            fit = candidate.fit(kept, labels[~carved], None, backend)
            value = score(labels[carved], fit.predict(held))["MCC"]
            if value > best_value:
                best, best_value = candidate, value
        return best

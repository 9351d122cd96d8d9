"""Probes that need no solver of logistic regressions: centroids, neighbours, ridge, perceptron.

Why each parameter is what it is stands in `geneb.probing.catalogue`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.linear_model import RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier

from geneb.probing.backends import Backend, Fitted, SklearnBackend, converges
from geneb.probing.convergence import Optimality
from geneb.probing.linear import PlainFit
from geneb.probing.transforms import Transform, slabs, standardisation, unit_length


@dataclass(frozen=True)
class TransformedFit:
    """A classifier of transformed rows.

    Attributes
    ----------
    transform
        What is done to rows first.
    classifier
        What then predicts: has a method ``predict``, as `Fitted` and scikit-learn's have.
    classes, n_iter, converged
        See `geneb.probing.backends.Fitted`.
    """

    transform: Transform
    classifier: Any
    classes: np.ndarray
    n_iter: int | None = None
    converged: bool | None = None

    def predict(self, rows: np.ndarray) -> np.ndarray:
        """Return the predicted labels of float32 rows: int64, shape (n,)."""
        return np.concatenate(
            [self.classifier.predict(self.transform(part)) for part in slabs(rows)]
        )


class WithoutObjective:
    """What probes share that leave the backend out, and have no objective to be told of."""

    seeded: bool = False
    row_order_matters: bool = False
    backends: ClassVar[tuple[str, ...]] = (SklearnBackend.name,)

    def optimality(self, fit: Fitted, rows: np.ndarray, labels: np.ndarray) -> Optimality | None:
        """Return None."""
        del fit, rows, labels
        return None


@dataclass(frozen=True)
class CentroidProbe(WithoutObjective):
    """The class whose mean is nearest."""

    def describe(self) -> str:
        """Return what is measured."""
        return "nearest mean of a class, Euclidean distance in float64, rows as they are"

    def fit(
        self, rows: np.ndarray, labels: np.ndarray, seed: int | None, backend: Backend
    ) -> PlainFit:
        """Fit; a seed changes nothing.

        Half the squared distance is linear in the row but for a term that all classes share.
        """
        del seed, backend
        classes = np.unique(labels)
        means = np.stack([rows[labels == one].mean(axis=0, dtype=np.float64) for one in classes])
        middle = means.mean(axis=0)  # what all means have in common would cost digits
        coef = means - middle
        intercept = -((means + middle) * coef).sum(axis=1) / 2
        if len(classes) == 2:
            coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
        return PlainFit(classes, coef, intercept, n_iter=None, converged=None)


@dataclass(frozen=True)
class NeighboursProbe(WithoutObjective):
    """A vote of the nearest train rows.

    Parameters
    ----------
    neighbours
        Rows that vote; all of them where there are fewer.
    """

    neighbours: int
    row_order_matters = True  # of rows that are equally far, the first ones vote

    def describe(self) -> str:
        """Return how many vote, and how."""
        return (
            f"{self.neighbours} nearest rows by cosine, votes weighted by 1 / distance of the "
            "rows brought to length 1"
        )

    def fit(
        self, rows: np.ndarray, labels: np.ndarray, seed: int | None, backend: Backend
    ) -> TransformedFit:
        """Fit; a seed changes nothing."""
        del seed, backend
        # Of rows of length 1, those at the smallest Euclidean distance have the largest cosine.
        estimator = KNeighborsClassifier(
            n_neighbors=min(self.neighbours, len(rows)), weights="distance", algorithm="brute"
        )
        estimator.fit(unit_length(rows), labels)
        return TransformedFit(unit_length, estimator, estimator.classes_)


@dataclass(frozen=True)
class RidgeProbe(WithoutObjective):
    """Least squares with an L2 penalty on standardised rows, one target a class."""

    def describe(self) -> str:
        """Return the penalty."""
        return "RidgeClassifier(alpha=number of features) on standardised float64 rows"

    def fit(
        self, rows: np.ndarray, labels: np.ndarray, seed: int | None, backend: Backend
    ) -> TransformedFit:
        """Fit; a seed changes nothing."""
        del seed, backend
        transform = standardisation(rows)
        estimator = RidgeClassifier(alpha=float(rows.shape[1]), copy_X=False)
        estimator.fit(transform(rows), labels)
        return TransformedFit(transform, estimator, estimator.classes_)


@dataclass(frozen=True)
class PerceptronProbe(WithoutObjective):
    """A perceptron with one hidden layer on standardised rows.

    Parameters
    ----------
    hidden
        Units of the hidden layer.
    epochs
        Most passes over the rows; fewer where the loss no longer falls.
    """

    hidden: int
    epochs: int
    seeded = True
    row_order_matters = True

    def describe(self) -> str:
        """Return the network's size and how long it is trained."""
        return (
            f"MLPClassifier(hidden_layer_sizes=({self.hidden},), max_iter={self.epochs}, "
            "random_state=seed) on standardised float64 rows"
        )

    def fit(
        self, rows: np.ndarray, labels: np.ndarray, seed: int | None, backend: Backend
    ) -> TransformedFit:
        """Fit; the seed decides initial weights and the order of the rows."""
        del backend
        transform = standardisation(rows)
        estimator = MLPClassifier((self.hidden,), max_iter=self.epochs, random_state=seed)
        moved = transform(rows)
        converged = converges(lambda: estimator.fit(moved, labels))
        return TransformedFit(
            transform, estimator, estimator.classes_, int(estimator.n_iter_), converged
        )

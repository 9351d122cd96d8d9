"""What solves the fits. A backend is asked for by name, and its name stands beside its numbers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol, runtime_checkable

import numpy as np
import sklearn
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from geneb.base.env import cuml_accel_active
from geneb.errors import InputError


class Fitted(Protocol):
    """A fitted classifier.

    Attributes
    ----------
    classes
        int64, shape (K,), ascending.
    n_iter
        Iterations of the solver; None where there are none.
    converged
        Whether the solver says that it reached its tolerance; None where it does not iterate.
    """

    classes: np.ndarray
    n_iter: int | None
    converged: bool | None

    def predict(self, rows: np.ndarray) -> np.ndarray:
        """Return the predicted labels of finite float32 rows: int64, shape (n,)."""


@runtime_checkable
class LinearFit(Fitted, Protocol):
    """A fitted linear classifier: class k wins where ``rows @ coef[k] + intercept[k]`` is largest.

    With two classes there is one weight vector, and a value above 0 means ``classes[1]``.

    Attributes
    ----------
    coef
        float32 or float64, shape (K, dim), or (1, dim) for two classes.
    intercept
        shape (K,) or (1,).
    """

    coef: np.ndarray
    intercept: np.ndarray


class Backend(Protocol):
    """Fits linear probes.

    Attributes
    ----------
    name
        Recorded with each result.
    """

    name: str

    def fit(self, rows: np.ndarray, labels: np.ndarray, parameters: Mapping[str, Any]) -> LinearFit:
        """Fit one probe to float32 rows of shape (n, dim) and integer labels of shape (n,)."""


def _without_checks() -> AbstractContextManager[None]:
    """Leave out scikit-learn's checks: rows and parameters were checked once, for all fits."""
    return sklearn.config_context(assume_finite=True, skip_parameter_validation=True)


class _SklearnFit:
    def __init__(self, estimator: LogisticRegression, *, converged: bool) -> None:
        self._estimator = estimator
        self.classes = estimator.classes_
        self.coef = estimator.coef_
        self.intercept = estimator.intercept_
        self.n_iter = int(np.max(estimator.n_iter_))
        self.converged = converged

    def predict(self, rows: np.ndarray) -> np.ndarray:
        with _without_checks():
            return self._estimator.predict(rows)


class SklearnBackend:
    """scikit-learn's LogisticRegression on the CPU: what the published numbers were made with.

    Raises
    ------
    InputError
        When made while cuml.accel is active: that replaces scikit-learn's solver by another one,
        whose results must not bear scikit-learn's name.
    """

    name = "sklearn"

    def __init__(self) -> None:
        if cuml_accel_active():
            raise InputError(
                "cuml.accel has taken over scikit-learn in this process",
                expected="scikit-learn's own solver, which the backend sklearn stands for",
                fix="unset CUML_ACCEL_ENABLED and do not load cuml.accel",
            )

    def fit(self, rows: np.ndarray, labels: np.ndarray, parameters: Mapping[str, Any]) -> LinearFit:
        """Fit one probe; that it did not converge is recorded, not warned about."""
        estimator = LogisticRegression(**parameters)
        with _without_checks(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            estimator.fit(rows, labels)
        converged = True
        for warning in caught:
            if issubclass(warning.category, ConvergenceWarning):
                converged = False
            else:
                warnings.warn_explicit(
                    warning.message, warning.category, warning.filename, warning.lineno
                )
        return _SklearnFit(estimator, converged=converged)


BACKENDS: dict[str, Callable[[], Backend]] = {SklearnBackend.name: SklearnBackend}


def open_backend(name: str) -> Backend:
    """Return a backend, ready to fit.

    Raises
    ------
    InputError
        If there is none of that name, or it cannot work here.
    """
    if name not in BACKENDS:
        raise InputError("there is no such backend", expected=", ".join(BACKENDS), found=name)
    return BACKENDS[name]()

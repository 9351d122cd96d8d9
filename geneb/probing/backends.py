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

from geneb.base.env import cuml_accel_active, processor
from geneb.errors import InputError
from geneb.probing import lean


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
        Recorded with each result. What stands before a colon says which backend, what stands
        behind it where it ran.
    packages
        Distributions whose versions decide the numbers.
    device
        What it runs on.
    """

    name: str
    packages: tuple[str, ...]
    device: str

    def fit(self, rows: np.ndarray, labels: np.ndarray, parameters: Mapping[str, Any]) -> LinearFit:
        """Fit one probe to float32 rows of shape (n, dim) and integer labels of shape (n,)."""


KEY_PACKAGES = ("scikit-learn", "scipy", "numpy")


def _without_checks() -> AbstractContextManager[None]:
    """Leave out scikit-learn's checks: rows and parameters were checked once, for all fits."""
    return sklearn.config_context(assume_finite=True, skip_parameter_validation=True)


def refuse_cuml_accel() -> None:
    """Refuse to go on where scikit-learn's solver is no longer its own.

    Raises
    ------
    InputError
    """
    if cuml_accel_active():
        raise InputError(
            "cuml.accel has taken over scikit-learn in this process",
            expected="scikit-learn's own solver",
            fix="unset CUML_ACCEL_ENABLED and do not install cuml.accel",
        )


def fit_quietly(estimator: LogisticRegression, rows: Any, labels: np.ndarray) -> bool:
    """Fit without scikit-learn's checks, and return whether it converged."""
    with _without_checks():
        return converges(lambda: estimator.fit(rows, labels))


def converges(fit: Callable[[], object]) -> bool:
    """Fit, and return whether it converged: that it did not is recorded, not warned about."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    converged = True
    for warning in caught:
        if issubclass(warning.category, ConvergenceWarning):
            converged = False
        else:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    return converged


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
    packages = KEY_PACKAGES

    def __init__(self) -> None:
        refuse_cuml_accel()
        self.device = processor()

    def fit(self, rows: np.ndarray, labels: np.ndarray, parameters: Mapping[str, Any]) -> LinearFit:
        """Fit one probe; that it did not converge is recorded, not warned about."""
        if lean.stands_in(rows.dtype, parameters):
            return lean.solve(rows, labels, parameters)
        estimator = LogisticRegression(**parameters)
        return _SklearnFit(estimator, converged=fit_quietly(estimator, rows, labels))


def _open_torch(device: str = "auto") -> Backend:
    from geneb.probing.torch_backend import TorchBackend

    return TorchBackend(device)


def _open_cuml() -> Backend:
    from geneb.probing.cuml_backend import CumlBackend

    return CumlBackend()


BACKENDS: dict[str, Callable[..., Backend]] = {
    SklearnBackend.name: SklearnBackend,
    "torch": _open_torch,
    "cuml": _open_cuml,
}
_WITH_DEVICE = ("torch",)


def family(name: str) -> str:
    """Return which backend a backend's name says, without the device that may follow."""
    return name.partition(":")[0]


def open_backend(name: str) -> Backend:
    """Return a backend, ready to fit.

    Parameters
    ----------
    name
        ``sklearn``, ``torch`` or ``cuml``; torch may be followed by a device, as in
        ``torch:cuda:1``.

    Raises
    ------
    InputError
        If there is none of that name, or it cannot work here.
    """
    which, colon, device = name.partition(":")
    if which not in BACKENDS or (colon and which not in _WITH_DEVICE):
        raise InputError(
            "there is no such backend",
            expected=f"{', '.join(BACKENDS)}, or torch:DEVICE such as torch:cpu, torch:cuda",
            found=name,
        )
    return BACKENDS[which](device) if colon else BACKENDS[which]()

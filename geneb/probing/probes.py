"""What a protocol fits: one classifier to one set of rows, described so that it can be told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from geneb.errors import InputError
from geneb.probing.backends import BACKENDS, Backend, Fitted, LinearFit, family
from geneb.probing.convergence import Optimality, optimality


class Probe(Protocol):
    """Fits a classifier. Has no state: worker processes get a copy.

    Attributes
    ----------
    seeded
        Whether a fit depends on its seed beyond the rows that were drawn with it. Where it does
        not, one fit stands for all seeds of the full regime.
    backends
        Names of the backends that can solve it, without their devices.
    row_order_matters
        Whether predictions may change with the order of the rows fitted, beyond rounding.

    A method ``working_bytes(n_train, dim, vectors)`` may say how much memory a fit takes that
    grows with its rows; a probe without one is taken to copy them in float64.
    """

    seeded: bool
    backends: tuple[str, ...]
    row_order_matters: bool

    def describe(self) -> str:
        """Return in one line all that decides what is fitted: a part of the run key."""

    def fit(
        self, rows: np.ndarray, labels: np.ndarray, seed: int | None, backend: Backend
    ) -> Fitted:
        """Fit one classifier.

        Parameters
        ----------
        rows
            float32, shape (n, dim), finite.
        labels
            int64, shape (n,), of at least two classes.
        seed
            Of the draw; None where nothing was drawn and the probe is not seeded.
        """

    def optimality(self, fit: Fitted, rows: np.ndarray, labels: np.ndarray) -> Optimality | None:
        """Return how close the fit came to the optimum of its objective, None without one."""


def check_backend(probe: Probe, backend: Backend) -> None:
    """Refuse a backend that cannot solve a probe.

    Raises
    ------
    InputError
    """
    if family(backend.name) not in probe.backends:
        raise InputError(
            "this backend cannot fit this probe",
            where=probe.describe(),
            expected=", ".join(probe.backends),
            found=backend.name,
        )


@dataclass(frozen=True)
class LogisticProbe:
    """Logistic regression with an L2 penalty on the rows as they are.

    Parameters
    ----------
    parameters
        Arguments of scikit-learn's LogisticRegression. Nothing else is passed to it, so that no
        version warns about an argument that has come or gone.
    dtype
        What rows are fitted in.
    """

    parameters: Mapping[str, Any] = field(hash=False)
    dtype: str = "float32"
    seeded = False
    backends = tuple(BACKENDS)
    row_order_matters = True  # a solver that stops early stops elsewhere

    def describe(self) -> str:
        """Return the arguments, and what the rows are fitted in."""
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        return f"LogisticRegression({arguments}) on {self.dtype} rows"

    def fit(
        self, rows: np.ndarray, labels: np.ndarray, seed: int | None, backend: Backend
    ) -> LinearFit:
        """Fit with all classes at once; a seed changes nothing."""
        del seed
        return backend.fit(rows.astype(self.dtype, copy=False), labels, self.parameters)

    def working_bytes(self, n_train: int, dim: int, vectors: int) -> int:
        """Return the bytes of a copy of the rows, where one is made."""
        del vectors
        return 0 if self.dtype == "float32" else np.dtype(self.dtype).itemsize * n_train * dim

    def optimality(self, fit: Fitted, rows: np.ndarray, labels: np.ndarray) -> Optimality:
        """Return the objective and its gradient, in float64."""
        assert isinstance(fit, LinearFit)  # it is what `fit` returned
        return optimality(fit, rows, labels, self.parameters["C"])

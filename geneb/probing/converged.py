"""Logistic regression taken to its optimum, which no solver, machine or backend has a say in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geneb.probing.backends import Backend, Fitted, LinearFit
from geneb.probing.convergence import Optimality
from geneb.probing.linear import PlainFit
from geneb.probing.newton import finish, finish_bytes
from geneb.probing.probes import LogisticProbe


@dataclass(frozen=True)
class ConvergedProbe:
    """The optimum of a logistic regression's objective.

    The backend makes a start; Newton's method takes that to the optimum in float64, on the CPU.
    The objective has one optimum only, so the start decides how long this takes and no more.

    Parameters
    ----------
    start
        States the objective, and how the backend begins.
    tolerance
        Largest absolute component of the gradient that is called converged.
    """

    start: LogisticProbe
    tolerance: float
    seeded = False
    row_order_matters = False

    @property
    def backends(self) -> tuple[str, ...]:
        """Names of the backends that can make the start."""
        return self.start.backends

    def describe(self) -> str:
        """Return the start's arguments, and how far it is taken."""
        return f"{self.start.describe()}, then newton-cg in float64 to gradient {self.tolerance:g}"

    def fit(
        self, rows: np.ndarray, labels: np.ndarray, seed: int | None, backend: Backend
    ) -> PlainFit:
        """Fit; a seed changes nothing, nor does the order of the rows but for rounding."""
        start = self.start.fit(rows, labels, seed, backend)
        return finish(start, rows, labels, self.start.parameters["C"], self.tolerance)

    def working_bytes(self, n_train: int, dim: int, vectors: int) -> int:
        """Return the bytes of the start, and of Newton's matrix, basis and factors."""
        return self.start.working_bytes(n_train, dim, vectors) + finish_bytes(n_train, dim, vectors)

    def optimality(self, fit: Fitted, rows: np.ndarray, labels: np.ndarray) -> Optimality:
        """Return the objective and its gradient, in float64."""
        assert isinstance(fit, LinearFit)  # it is what `fit` returned
        return self.start.optimality(fit, rows, labels)

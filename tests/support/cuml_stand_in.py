"""A module in cuML's place: the signatures that the backend calls, on the CPU.

What it takes and gives is what cuML 25.10 to 26.x do: keywords only, labels of any numbers,
attributes as the asked-for kind of array in Fortran order, a float32 fit of float32 rows, a number
of iterations as an array, and no word on why it stopped.
"""

from __future__ import annotations

import sys
import warnings
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import ClassVar

import numpy as np
import sklearn.linear_model
from sklearn.exceptions import ConvergenceWarning


class LogisticRegression:
    """Stops at a gradient relative to the objective, which is cuML's way."""

    seen: ClassVar[list[np.ndarray]] = []

    def __init__(
        self,
        *,
        penalty="l2",
        tol=1e-4,
        C=1.0,
        fit_intercept=True,
        class_weight=None,
        max_iter=1000,
        linesearch_max_iter=50,
        l1_ratio=None,
        solver="qn",
        verbose=False,
        handle=None,
        output_type=None,
    ):
        assert (penalty, fit_intercept, class_weight, solver) == ("l2", True, None, "qn")
        assert output_type == "numpy", "attributes would be arrays on the GPU"
        self.tol, self.C, self.max_iter = tol, C, max_iter

    def fit(self, X, y, sample_weight=None, *, convert_dtype=True):
        assert X.flags.c_contiguous
        LogisticRegression.seen.append(np.array(y))
        solver = sklearn.linear_model.LogisticRegression(
            C=self.C, tol=self.tol * 0.3, max_iter=self.max_iter
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # cuML raises none
            solver.fit(X, y)
        self.classes_ = np.unique(y)
        self.coef_ = np.asfortranarray(solver.coef_.astype(X.dtype))
        self.intercept_ = solver.intercept_.astype(X.dtype)
        self.n_iter_ = np.asarray([solver.n_iter_.max()])
        return self


def install(monkeypatch, name: bytes = b"Stand-in GPU") -> None:
    """Let ``import cuml`` and ``import cupy`` find the stand-ins for one test."""
    modules = {one: ModuleType(one) for one in ("cuml", "cuml.linear_model", "cupy")}
    for one, module in modules.items():
        module.__spec__ = ModuleSpec(one, None)
        monkeypatch.setitem(sys.modules, one, module)
    modules["cuml"].linear_model = modules["cuml.linear_model"]
    modules["cuml.linear_model"].LogisticRegression = LogisticRegression
    modules["cupy"].cuda = SimpleNamespace(
        runtime=SimpleNamespace(getDeviceProperties=lambda index: {"name": name})
    )
    monkeypatch.setattr(LogisticRegression, "seen", [])

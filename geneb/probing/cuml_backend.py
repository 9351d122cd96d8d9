"""cuML's logistic regression on a GPU: the published objective with another solver.

What differs from scikit-learn's lbfgs, so that its scores need a calibration to be compared
(see `geneb.probing.calibration`):

- it stops where the gradient is at most ``tol * max(objective, tol)``, not ``tol``, and where the
  objective changed by less than ``0.01 * tol`` of itself over some iterations;
- L-BFGS keeps 5 pairs of steps and gradients, not 10 (OWL-QN, its other solver, is for L1 only);
- float32 rows are fitted in float32 throughout; scikit-learn's optimiser is float64;
- sums on a GPU need not come out the same twice.

The objective is the same: it divides the penalty by the number of rows as scikit-learn does,
leaves the intercept out of it, and has one weight vector a class, or one for two.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from geneb.base import env
from geneb.errors import InputError, MissingExtraError
from geneb.probing.backends import KEY_PACKAGES
from geneb.probing.linear import PlainFit

# One library under three names: by conda, and from PyPI for each major version of CUDA.
_DISTRIBUTIONS = ("cuml", "cuml-cu12", "cuml-cu13")


class CumlBackend:
    """cuML's LogisticRegression.

    Attributes
    ----------
    device
        The GPU's name, as far as cupy, which cuML stands on, tells it.

    Raises
    ------
    MissingExtraError
        Without cuML.
    InputError
        If it cannot be used here, as without a GPU.
    """

    name = "cuml"

    def __init__(self) -> None:
        if not env.importable("cuml"):
            raise MissingExtraError("cuml", "cuml", "for the backend cuml")
        try:
            importlib.import_module("cuml.linear_model")
            cupy = importlib.import_module("cupy")
            self.device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
        except Exception as error:  # whatever CUDA's libraries raise without a driver or a device
            raise InputError(
                "the backend cuml cannot be used here",
                expected="an NVIDIA GPU with its driver",
                found=f"{type(error).__name__}: {error}",
            ) from error
        installed = tuple(name for name in _DISTRIBUTIONS if env.version(name))
        self.packages = (*KEY_PACKAGES, *installed)

    def fit(self, rows: np.ndarray, labels: np.ndarray, parameters: Mapping[str, Any]) -> PlainFit:
        """Fit one probe.

        Labels go in as 0..K-1, since versions have counted classes by the largest. cuML says how
        many iterations it made, not why it ended: it is taken to have converged unless they were
        as many as allowed, and the gradient norm beside each fit tells how far that holds.

        Raises
        ------
        MemoryError
            If the GPU has too little.
        """
        classes, encoded = np.unique(labels, return_inverse=True)
        arguments = dict(parameters)
        if (solver := arguments.pop("solver", "lbfgs")) != "lbfgs":
            raise InputError("cuml has no such solver", expected="lbfgs", found=str(solver))
        solve = importlib.import_module("cuml.linear_model").LogisticRegression
        estimator = solve(**arguments, output_type="numpy")
        estimator.fit(np.ascontiguousarray(rows), encoded)
        n_iter = int(np.max(estimator.n_iter_))
        return PlainFit(
            classes,
            np.ascontiguousarray(np.atleast_2d(estimator.coef_)),
            np.atleast_1d(estimator.intercept_),
            n_iter,
            converged=n_iter < estimator.max_iter,
        )

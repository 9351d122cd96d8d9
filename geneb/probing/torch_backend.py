"""scikit-learn's own lbfgs with loss and gradient on a torch device, through the array API.

Objective, optimiser and stopping rule are those of the backend ``sklearn``, and scores agree with
its within the tolerances of `geneb.probing.calibration`. Only where rounding decides when a fit
stops they need not: on embeddings so small that a few iterations bring the gradient to 1e-4, the
order in which float32 numbers are added up can make it one iteration more or less. That is no
lesser answer but another one; ``geneb analyze backends`` says whether a store is such a case, and
the converged protocol has none.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import sklearn
from packaging.version import Version
from sklearn.linear_model import LogisticRegression

from geneb.base.env import importable
from geneb.errors import InputError, MissingExtraError
from geneb.extractors.devices import CPU, available_devices
from geneb.probing.backends import KEY_PACKAGES, fit_quietly, refuse_cuml_accel
from geneb.probing.linear import PlainFit

VARIABLE = "SCIPY_ARRAY_API"
_NEEDED = Version("1.9")


class TorchBackend:
    """scikit-learn's LogisticRegression(solver="lbfgs") on arrays of torch.

    Parameters
    ----------
    device
        ``auto`` (CUDA where there is a device, else the CPU), ``cpu``, ``cuda`` or ``cuda:1``.

    Attributes
    ----------
    name
        ``torch:cpu`` or ``torch:cuda``: which of several devices did it changes nothing.
    device
        What it is.

    Raises
    ------
    MissingExtraError
        Without torch.
    InputError
        If there is no such device, scikit-learn is too old, the array API is not switched on, or
        cuml.accel is active.
    """

    packages = (*KEY_PACKAGES, "torch")

    def __init__(self, device: str = "auto") -> None:
        if not importable("torch"):
            raise MissingExtraError("torch", "models", "for the backend torch")
        refuse_cuml_accel()
        _check_array_api()
        there = _devices()
        gpus = [name for name in there if name.startswith("cuda")]
        wanted = {"auto": next(iter(gpus), CPU), "cuda": "cuda:0"}.get(device, device)
        if wanted not in (CPU, *gpus):
            raise InputError(
                "the backend torch can use no such device here",
                expected=", ".join(f"torch:{name}" for name in (CPU, *gpus)),
                found=f"torch:{device}",
            )
        self._place = wanted
        self.name = f"torch:{wanted.partition(':')[0]}"
        self.device = there[wanted]

    def fit(self, rows: np.ndarray, labels: np.ndarray, parameters: Mapping[str, Any]) -> PlainFit:
        """Fit one probe; what is returned is back on the CPU.

        Raises
        ------
        MemoryError
            If the device has too little.
        """
        import torch

        estimator = LogisticRegression(**parameters)
        try:
            with sklearn.config_context(array_api_dispatch=True), _full_precision():
                there = torch.tensor(rows, device=self._place)
                converged = fit_quietly(estimator, there, labels)
        except torch.OutOfMemoryError as error:
            raise MemoryError(f"{self.name} ran out of memory") from error
        return PlainFit(
            estimator.classes_,
            estimator.coef_.cpu().numpy(),
            estimator.intercept_.cpu().numpy(),
            int(estimator.n_iter_.max()),
            converged=converged,
        )


def _devices() -> dict[str, str]:
    """Return what each device is, by its name."""
    try:
        return {device.name: device.description for device in available_devices()}
    except (ImportError, OSError) as error:
        raise InputError(
            "torch is installed and cannot be imported",
            found=f"{type(error).__name__}: {error}",
            fix="install torch again",
        ) from error


def _check_array_api() -> None:
    if Version(sklearn.__version__) < _NEEDED:
        raise InputError(
            "the backend torch needs a newer scikit-learn",
            expected=f"{_NEEDED} or newer, whose logistic regression takes arrays of torch",
            found=sklearn.__version__,
            fix=f"python -m pip install 'scikit-learn>={_NEEDED}'",
        )
    if os.environ.get(VARIABLE) != "1":
        raise InputError(
            "the backend torch needs scipy's array API, which is switched on before scipy is "
            "imported",
            expected=f"{VARIABLE}=1",
            found=os.environ.get(VARIABLE, "not set"),
            fix=f"set {VARIABLE}=1 before Python starts; `geneb probe --backend torch` does so "
            "itself",
        )


@contextlib.contextmanager
def _full_precision() -> Iterator[None]:
    """Multiply in float32 also where a container's settings allow 19 bits (TF32)."""
    import torch

    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before

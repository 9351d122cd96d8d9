"""Probes that this project does not bring: a user's estimator, and those of installed packages.

Naming one runs its code, with all that the user may do. Nothing is run that was not named.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import re
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from geneb.base.files import check_name
from geneb.base.text import plain
from geneb.errors import InputError, WorkError
from geneb.probing.backends import Backend, Fitted, converges
from geneb.probing.convergence import Optimality
from geneb.probing.estimators import WithoutObjective
from geneb.probing.factories import Factory, load_factory
from geneb.probing.probes import Probe
from geneb.probing.transforms import slabs

GROUP = "geneb.probes"
"""Entry points of this group are protocols: the name is the id, the object a factory."""

OWN = "own"
"""What the id of a user's own protocol begins with, before a colon that no other id has."""

_RESERVED = "geneb-"
_CONTRACT = "run the tests of geneb.testing.ProbeContract on it"
_SHOWN = 300  # characters of an estimator's parameters that stand in a description


@dataclass(frozen=True)
class OwnProbe(WithoutObjective):
    """Fits a new estimator of a user's factory, to copies of rows and labels from 0 to K - 1.

    Attributes
    ----------
    target
        ``package.module:factory``; worker processes import it again.
    description
        Of the estimator, its parameters and its source.
    seeded
        Whether the factory is given a ``random_state``.
    """

    target: str
    description: str
    seeded: bool
    row_order_matters = True  # nobody knows

    def describe(self) -> str:
        """Return the estimator with its parameters, the factory and the digest of its source."""
        return self.description

    def fit(
        self, rows: np.ndarray, labels: np.ndarray, seed: int | None, backend: Backend
    ) -> OwnFit:
        """Fit; the factory gets the seed where it takes one.

        Raises
        ------
        WorkError
            If the estimator raises anything.
        """
        del backend
        source = load_factory(self.target)
        classes, places = np.unique(labels, return_inverse=True)
        with source.running(
            f"{self.target} could not be fitted to {len(rows):,} rows of {len(classes):,} classes",
            WorkError,
            "let it cope with so few rows, or name the regimes that it can be fitted in by "
            "--regimes",
        ):
            estimator = _make(source, seed)
            quiet = converges(lambda: estimator.fit(np.array(rows), places))
            n_iter = _iterations(estimator)
        converged = quiet if n_iter is not None or not quiet else None
        return OwnFit(source, estimator, np.arange(len(classes)), classes, n_iter, converged)


@dataclass(frozen=True)
class OwnFit:
    """What a stranger's code has fitted; see `geneb.probing.backends.Fitted`.

    Attributes
    ----------
    source
        For messages.
    classifier
        Has a method ``predict``.
    known
        Shape (K,), ascending: what it knows the classes by.
    """

    source: Factory
    classifier: Any
    known: np.ndarray
    classes: np.ndarray
    n_iter: int | None
    converged: bool | None

    def predict(self, rows: np.ndarray) -> np.ndarray:
        """Return the predicted labels of float32 rows: int64, shape (n,).

        Raises
        ------
        WorkError
            If the classifier raises anything, or returns something else than labels.
        """
        with self.source.running(
            f"{self.source.target} could not predict", WorkError, "mend its method predict"
        ):
            parts = [np.asarray(self.classifier.predict(np.array(part))) for part in slabs(rows)]
            found = np.concatenate(parts)
            if found.shape != (len(rows),) or not np.isin(found, self.known).all():
                raise WorkError(
                    f"{self.source.target} predicted what is not a label",
                    expected="a classifier: one of the labels that it was fitted to, for each row",
                    found=plain(f"shape {found.shape}, {found.dtype}: {found.ravel()[:5]}"),
                )
            return self.classes[np.searchsorted(self.known, found)]


@dataclass(frozen=True)
class ForeignProbe:
    """A probe of a stranger's, with the digest of its source in what it describes."""

    target: str
    probe: Probe
    source: str

    @property
    def seeded(self) -> bool:
        """What the probe says."""
        return self.probe.seeded

    @property
    def backends(self) -> tuple[str, ...]:
        """What the probe says."""
        return self.probe.backends

    @property
    def row_order_matters(self) -> bool:
        """What the probe says; True where it does not."""
        return getattr(self.probe, "row_order_matters", True)

    def describe(self) -> str:
        """Return what the probe says, and where it comes from."""
        return plain(f"{self.probe.describe()} ({self.source})", 2000)

    def fit(
        self, rows: np.ndarray, labels: np.ndarray, seed: int | None, backend: Backend
    ) -> OwnFit:
        """Fit as the probe does.

        Raises
        ------
        WorkError
            If it raises anything.
        """
        source, classes = load_factory(self.target), np.unique(labels)
        with source.running(
            f"{self.target} could not be fitted to {len(rows):,} rows of {len(classes):,} classes",
            WorkError,
            _CONTRACT,
        ):
            fit = self.probe.fit(np.array(rows), labels.copy(), seed, backend)
            n_iter = None if fit.n_iter is None else int(fit.n_iter)
            converged = None if fit.converged is None else bool(fit.converged)
        return OwnFit(source, fit, classes, classes, n_iter, converged)

    def optimality(self, fit: Fitted, rows: np.ndarray, labels: np.ndarray) -> Optimality | None:
        """Return what the probe says.

        Raises
        ------
        WorkError
            If it raises anything.
        """
        assert isinstance(fit, OwnFit)  # it is what `fit` returned
        with fit.source.running(
            f"{self.target} could not tell how near the optimum it came", WorkError, _CONTRACT
        ):
            return self.probe.optimality(fit.classifier, rows, labels)


def own_probe(target: str) -> Probe:
    """Return the probe that a factory's estimator makes.

    Parameters
    ----------
    target
        ``package.module:factory``: what is called without arguments, or with ``random_state=seed``
        if it takes that, and returns an estimator with the methods ``fit`` and ``predict``, as
        scikit-learn's classifiers have; such a class is one. It may return a
        `geneb.probing.probes.Probe` instead. Modules in the working directory are found too.

    Raises
    ------
    InputError
        If it cannot be imported or called, or makes neither.
    """
    source = load_factory(target)
    with source.running(
        f"{target} could not make an estimator",
        InputError,
        "name a function or class that needs no arguments, but for random_state",
    ):
        if not callable(source.call):
            raise InputError(
                f"{target} is not a factory",
                expected="a function or class that returns an estimator",
                found=type(source.call).__name__,
            )
        made = _make(source, seed=0)
        where = f"{target}, {source.digest()}"
        if _is_probe(made):
            return ForeignProbe(target, made, where)
        if not callable(getattr(made, "fit", None)) or not callable(getattr(made, "predict", None)):
            raise InputError(
                f"{target} makes no classifier",
                expected="an object with the methods fit and predict",
                found=type(made).__name__,
            )
        where = ", ".join([where, *_libraries(made)])
        return OwnProbe(target, f"{_describe(made)} of {where}", source.takes_seed)


def registered() -> dict[str, importlib.metadata.EntryPoint]:
    """Return the protocols of installed packages by their ids, sorted; nothing is imported."""
    points = importlib.metadata.entry_points(group=GROUP)
    return {point.name: point for point in sorted(points, key=lambda point: point.name)}


def registered_probe(name: str) -> Probe:
    """Return the probe of an installed package's protocol: its code is run.

    Raises
    ------
    InputError
        If the name cannot be a protocol's, or several packages have it; see `own_probe`.
    """
    check_name(name, "protocol")
    if name.startswith(_RESERVED) or "+" in name:
        raise InputError(
            "a package cannot give its protocol this name",
            expected=f"a name without a plus that does not begin with {_RESERVED}",
            found=name,
        )
    point = registered()[name]
    same = importlib.metadata.entry_points(group=GROUP, name=name)
    if len({one.value for one in same}) > 1:
        raise InputError(
            "several packages have a protocol of this name",
            where=name,
            found=", ".join(sorted(one.value for one in same)),
            fix="uninstall all but one of them",
        )
    return own_probe(f"{point.module}:{point.attr}")


def _make(source: Factory, seed: int | None) -> Any:
    made = source.make(seed)
    # A factory may hand out the same object each time; a later fit must not change this one.
    return made if _is_probe(made) else clone(made, safe=False)


def _is_probe(made: Any) -> bool:
    names = ("seeded", "backends", "describe", "fit", "optimality")
    return all(hasattr(made, name) for name in names)


def _describe(estimator: Any) -> str:
    """Return an estimator with its parameters in one line, the same in every process."""
    text = _steady(repr(estimator))
    if len(text) <= _SHOWN:
        return plain(text, _SHOWN)
    whole = _steady(repr(sorted(_parameters(estimator).items(), key=str))) + text
    digest = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{plain(text, _SHOWN)} (parameters sha256 {digest})"


def _libraries(estimator: Any) -> list[str]:
    """Return libraries with their versions that an estimator and its parts come from.

    scikit-learn's and numpy's versions are a part of every run key.
    """
    parts = [estimator, *_parameters(estimator).values()]
    names = {type(part).__module__.partition(".")[0] for part in parts}
    versions = {name: getattr(sys.modules.get(name), "__version__", None) for name in names}
    return [
        f"{name} {version}"
        for name, version in sorted(versions.items())
        if version and name not in ("numpy", "sklearn")
    ]


def _parameters(estimator: Any) -> dict[str, Any]:
    """Return an estimator's parameters and those of its parts, where it tells them."""
    asked = getattr(estimator, "get_params", None)
    return asked() if asked else {}


def _steady(text: str) -> str:
    """Return one line without addresses in memory, and without the seed that it was made with."""
    text = re.sub(r" at 0x[0-9a-fA-F]+", "", " ".join(text.split()))
    return re.sub(r"\brandom_state=0\b", "random_state=seed", text)


def _iterations(estimator: Any) -> int | None:
    """Return the iterations of an estimator, or of a pipeline's last step; None without any."""
    steps = getattr(estimator, "steps", None)
    n_iter = getattr(steps[-1][1] if steps else estimator, "n_iter_", None)
    return None if n_iter is None else int(np.max(n_iter))

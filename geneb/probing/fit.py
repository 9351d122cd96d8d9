"""One task: from its embeddings and labels to the fits of all regimes and seeds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from geneb.errors import InputError
from geneb.probing.backends import Backend, LinearFit
from geneb.probing.convergence import gradient_norm
from geneb.probing.metrics import score
from geneb.probing.predict import predict_together
from geneb.probing.protocol import Protocol, Regime, draw, short_classes
from geneb.results import Fit


@dataclass(frozen=True)
class TaskArrays:
    """What a probe needs of one task, in file order.

    Attributes
    ----------
    train, test
        float32, shape (n, dim).
    train_labels, test_labels
        int64, shape (n,); None where the data is unlabelled.
    """

    train: np.ndarray
    train_labels: np.ndarray | None
    test: np.ndarray
    test_labels: np.ndarray | None


@dataclass(frozen=True)
class _Solved:
    regime: Regime
    seed: int | None
    chosen: np.ndarray | slice
    fit: LinearFit
    seconds: float


def probe_task(
    arrays: TaskArrays,
    protocol: Protocol,
    backend: Backend,
    fitted: Callable[[Regime], None] = lambda _: None,
) -> list[Fit]:
    """Fit and score every regime and seed of a protocol on one task.

    Parameters
    ----------
    arrays
        The task; loaded once for all fits.
    fitted
        Called after each fit.

    Returns
    -------
    list of Fit
        Regimes and seeds in the protocol's order.

    Raises
    ------
    InputError
        If this task cannot be probed: no labels, no rows, a number that is not finite, a train
        set of one class.
    """
    train_labels, test_labels = _check_arrays(arrays)
    solved = []
    for regime in protocol.regimes:
        seeds = [None] if regime.shots is None else protocol.seeds
        for seed in seeds:
            chosen = _choose_rows(train_labels, regime, seed)
            solved.append(
                _solve(arrays.train, train_labels, chosen, regime, seed, protocol, backend)
            )
            fitted(regime)
    predictions = _predict(solved, arrays.test)
    unseen = len(np.setdiff1d(test_labels, train_labels))
    return [
        Fit(
            regime=one.regime.name,
            seed=one.seed,
            **score(test_labels, predicted),
            n_train=len(train_labels[one.chosen]),
            n_test=len(test_labels),
            n_classes=len(one.fit.classes),
            short_classes=short_classes(train_labels, one.regime.shots),
            unseen_classes=unseen,
            n_iter=one.fit.n_iter,
            converged=one.fit.converged,
            gradient_norm=gradient_norm(
                one.fit,
                arrays.train[one.chosen],
                train_labels[one.chosen],
                protocol.parameters["C"],
            ),
            seconds=one.seconds,
        )
        for one, predicted in zip(solved, predictions, strict=True)
    ]


def _check_arrays(arrays: TaskArrays) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels of both splits, once everything that a fit needs is there."""
    if arrays.train_labels is None or arrays.test_labels is None:
        raise InputError("this task has no labels, so it cannot be probed")
    for name, rows, labels in (
        ("train", arrays.train, arrays.train_labels),
        ("test", arrays.test, arrays.test_labels),
    ):
        if len(rows) == 0 or len(rows) != len(labels):
            raise InputError(
                f"the {name} split cannot be used",
                expected="rows, each with a label",
                found=f"{len(rows):,} rows, {len(labels):,} labels",
            )
        if not _all_finite(rows):
            bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
            raise InputError(
                f"embeddings of the {name} split are not finite",
                found=f"{len(bad):,} such rows, the first at row {bad[0]:,}",
                fix="embed the task again; a store written by geneb holds finite numbers only",
            )
    if len(np.unique(arrays.train_labels)) < 2:
        raise InputError(
            "the train split has rows of one class only, so there is nothing to tell apart",
            expected="at least two classes",
        )
    return arrays.train_labels, arrays.test_labels


def _all_finite(rows: np.ndarray) -> bool:
    # NaN and infinities spoil a sum, and float64 is wide enough for any sum of float32; unlike
    # isfinite of every number, this needs no array of the rows' size.
    with np.errstate(invalid="ignore"):
        return bool(np.isfinite(rows.sum(dtype=np.float64)))


def _choose_rows(labels: np.ndarray, regime: Regime, seed: int | None) -> np.ndarray | slice:
    if regime.shots is None or seed is None:
        return slice(None)
    return draw(labels, regime.shots, seed)


def _solve(
    train: np.ndarray,
    labels: np.ndarray,
    chosen: np.ndarray | slice,
    regime: Regime,
    seed: int | None,
    protocol: Protocol,
    backend: Backend,
) -> _Solved:
    began = time.perf_counter()
    fit = backend.fit(train[chosen], labels[chosen], protocol.parameters)
    return _Solved(regime, seed, chosen, fit, time.perf_counter() - began)


def _predict(solved: list[_Solved], test: np.ndarray) -> list[np.ndarray]:
    """Return each fit's predictions; those of the few-shot fits come from one product."""
    few_shot = [one for one in solved if one.regime.shots is not None]
    together = iter(predict_together([one.fit for one in few_shot], test) if few_shot else ())
    return [one.fit.predict(test) if one.regime.shots is None else next(together) for one in solved]

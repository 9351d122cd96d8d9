"""One task: from its embeddings and labels to the fits of all regimes and seeds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from geneb.errors import InputError
from geneb.probing.backends import Backend, Fitted, LinearFit
from geneb.probing.metrics import score
from geneb.probing.predict import predict_together
from geneb.probing.protocol import Protocol
from geneb.probing.regimes import Regime, draw, short_classes
from geneb.probing.seen import Overlap, find_overlap, score_without_seen
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
    train_row_ids, test_row_ids
        uint8, shape (n, 16): digests of the sequences.
    """

    train: np.ndarray
    train_labels: np.ndarray | None
    train_row_ids: np.ndarray
    test: np.ndarray
    test_labels: np.ndarray | None
    test_row_ids: np.ndarray


@dataclass(frozen=True)
class Outcome:
    """One fit: what is reported of it, and its predictions.

    Attributes
    ----------
    predicted
        int64, shape (n test,).
    """

    fit: Fit
    predicted: np.ndarray


@dataclass(frozen=True)
class _Solved:
    regime: Regime
    seed: int | None
    chosen: np.ndarray | slice
    fit: Fitted
    seconds: float


def probe_task(
    arrays: TaskArrays,
    protocol: Protocol,
    backend: Backend,
    fitted: Callable[[Regime], None] = lambda _: None,
) -> list[Outcome]:
    """Fit and score every regime and seed of a protocol on one task.

    Parameters
    ----------
    arrays
        The task; loaded once for all fits.
    fitted
        Called after each fit.

    Returns
    -------
    list of Outcome
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
        for seed in protocol.seeds_of(regime):
            chosen = _choose_rows(train_labels, regime, seed)
            began = time.perf_counter()
            fit = protocol.probe.fit(arrays.train[chosen], train_labels[chosen], seed, backend)
            solved.append(_Solved(regime, seed, chosen, fit, time.perf_counter() - began))
            fitted(regime)
    overlap = find_overlap(train_labels, test_labels, arrays.train_row_ids, arrays.test_row_ids)
    return [
        Outcome(
            _describe(one, predicted, overlap, protocol, arrays.train, train_labels, test_labels),
            predicted,
        )
        for one, predicted in zip(solved, _predict(solved, arrays.test), strict=True)
    ]


def _describe(
    one: _Solved,
    predicted: np.ndarray,
    overlap: Overlap,
    protocol: Protocol,
    train: np.ndarray,
    train_labels: np.ndarray,
    test_labels: np.ndarray,
) -> Fit:
    """Return what is reported of one fit."""
    labels = train_labels[one.chosen]
    optimality = protocol.probe.optimality(one.fit, train[one.chosen], labels)
    without_seen = score_without_seen(test_labels, predicted, overlap)
    return Fit(
        regime=one.regime.name,
        seed=one.seed,
        **score(test_labels, predicted),
        n_train=len(labels),
        n_test=len(test_labels),
        n_classes=len(one.fit.classes),
        predicted_classes=len(np.unique(predicted)),
        short_classes=short_classes(train_labels, one.regime),
        unseen_classes=overlap.unseen_classes,
        untested_classes=overlap.untested_classes,
        seen_rows=overlap.seen_rows,
        **{f"{metric}_without_seen": value for metric, value in without_seen.items()},
        n_iter=one.fit.n_iter,
        converged=one.fit.converged,
        objective=optimality.objective if optimality else None,
        gradient_norm=optimality.gradient_norm if optimality else None,
        seconds=one.seconds,
    )


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
    if not regime.is_drawn or seed is None:
        return slice(None)
    return draw(labels, regime, seed)


def _predict(solved: list[_Solved], test: np.ndarray) -> list[np.ndarray]:
    """Return each fit's predictions; those of drawn linear fits come from one product."""
    together = {
        place: one.fit
        for place, one in enumerate(solved)
        if one.regime.is_drawn and isinstance(one.fit, LinearFit)
    }
    done = dict(zip(together, predict_together(list(together.values()), test), strict=True))
    return [
        done[place] if place in done else one.fit.predict(test) for place, one in enumerate(solved)
    ]

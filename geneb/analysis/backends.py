"""How far apart the scores of two backends lie, and the calibration that says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from geneb.analysis.twice import Way, labelled_tasks, otherwise, probe_twice, reported
from geneb.base import env
from geneb.base.progress import Progress
from geneb.benchmark.spec import load_spec
from geneb.errors import InputError
from geneb.probing.backends import Backend, LinearFit, open_backend
from geneb.probing.calibration import Calibration, Pair, Side, Values, calibration_tasks
from geneb.probing.protocol import GENEB_LR_1
from geneb.stores import Store


class _Keeping:
    """A backend that keeps the fits it made, in order."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.name, self.packages, self.device = backend.name, backend.packages, backend.device
        self.fits: list[LinearFit] = []

    def fit(self, rows: np.ndarray, labels: np.ndarray, parameters: Mapping[str, Any]) -> LinearFit:
        self.fits.append(self._backend.fit(rows, labels, parameters))
        return self.fits[-1]


def calibrate(
    store: Store, backends: Sequence[str], tasks: Sequence[str], progress: Progress
) -> Calibration:
    """Probe tasks by the published protocol on two backends.

    Parameters
    ----------
    backends
        Names of two; the first is what the other is measured by.
    tasks
        Ids, labels, categories or globs. Default is the fixed subset, `calibration_tasks`, which
        a calibration for a submission has.

    Raises
    ------
    InputError, NotFoundError
        If nothing was started.
    GenebError
        If a task cannot be probed.
    """
    if len(backends) != 2 or backends[0] == backends[1]:
        raise InputError(
            "two backends are compared", expected="such as sklearn,torch", found=",".join(backends)
        )
    chosen = labelled_tasks(store, tasks) if tasks else _fixed_subset(store)
    first, second = (_Keeping(open_backend(name)) for name in backends)
    progress.start(2 * len(chosen) * GENEB_LR_1.fits, "fits")
    pairs = {}
    try:
        for task_id in chosen:
            pairs[task_id] = _measure_task(store, task_id, (first, second), progress)
    finally:
        progress.finish()
    return Calibration(
        model_id=store.model_id,
        store_fingerprint=store.fingerprint_id,
        protocol=GENEB_LR_1.id,
        seeds=list(GENEB_LR_1.seeds),
        reference=_describe(first),
        compared=_describe(second),
        tasks=pairs,
    )


def _fixed_subset(store: Store) -> list[str]:
    subset = calibration_tasks(load_spec())
    missing = sorted(set(subset) - set(store.task_ids()))
    if missing:
        raise InputError(
            "the store lacks tasks that backends are compared on",
            where=str(store.path),
            expected="the first task of each category",
            found=f"without {', '.join(missing)}",
            fix="embed them, or name others in --tasks for a comparison that is no calibration",
        )
    return subset


def _measure_task(
    store: Store, task_id: str, backends: tuple[_Keeping, _Keeping], progress: Progress
) -> dict[str, Pair]:
    """Return the pair of each regime."""
    for backend in backends:
        backend.fits.clear()
    first, second = (Way(GENEB_LR_1, backend) for backend in backends)
    found = probe_twice(store, task_id, (first, second), lambda: progress.advance(1, task_id))
    solutions = zip(*(backend.fits for backend in backends), strict=True)
    seeds = GENEB_LR_1.seeds
    return {
        regime: Pair(
            coef=max(_relative(*next(solutions)) for _ in pairs),
            predictions=max(map(otherwise, pairs)),
            reference=Values(**reported([one for one, _ in pairs], seeds)),
            compared=Values(**reported([other for _, other in pairs], seeds)),
        )
        for regime, pairs in found.items()
    }


def _relative(reference: LinearFit, other: LinearFit) -> float:
    """Return the largest difference of two weights over the largest weight."""
    largest = np.abs(reference.coef).max()
    return float(np.abs(reference.coef - other.coef).max() / (largest or 1.0))


def _describe(backend: Backend) -> Side:
    return Side(
        backend=backend.name,
        device=backend.device,
        versions={name: env.version(name) or "unknown" for name in backend.packages},
        blas=[row for row in env.blas() if row.get("user_api") == "blas"],
    )

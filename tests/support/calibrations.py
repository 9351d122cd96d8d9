"""Calibrations, without probing anything."""

from __future__ import annotations

from collections.abc import Mapping

from geneb.benchmark.spec import load_spec
from geneb.probing.calibration import Calibration, Pair, Side, Values, calibration_tasks
from geneb.results import METRICS

SPEC = load_spec()


def calibration(differences: Mapping[tuple[str, str, str], float] | None = None) -> Calibration:
    """One of cuml, in which the two sides differ by so much in a task, regime and metric."""
    given = differences or {}

    def values(task: str, regime: str, share: float) -> Values:
        return Values(**{m: 0.5 + share * given.get((task, regime, m), 0.0) for m in METRICS})

    def side(backend: str, versions: dict[str, str]) -> Side:
        return Side(backend=backend, device="a device", versions=versions, blas=[])

    return Calibration(
        model_id="some-model",
        store_fingerprint="a" * 64,
        protocol=SPEC.protocol.id,
        seeds=list(SPEC.seeds),
        reference=side("sklearn", {"scikit-learn": "1.9.1"}),
        compared=side("cuml", {"cuml-cu12": "26.4.0"}),
        tasks={
            task: {
                regime: Pair(
                    coef=0.01,
                    predictions=0.001,
                    reference=values(task, regime, 0.0),
                    compared=values(task, regime, 1.0),
                )
                for regime in SPEC.regimes
            }
            for task in calibration_tasks(SPEC)
        },
    )

"""A calibration: how far two backends' scores of one store lie apart, as a document.

cuML stops by another rule than scikit-learn. How much that matters depends on the embeddings, so
it is measured on the store that was probed: on the first task of each category, in all regimes
and seeds of the published protocol. The document holds the scores of both sides; whoever reads it
takes the differences anew.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from geneb.base.canonical import pretty_json
from geneb.base.files import atomic_write, read_json
from geneb.benchmark.spec import Spec
from geneb.errors import Fault, InputError
from geneb.results import METRICS

# Where kernels, versions or backends differ, ill-conditioned fits end elsewhere: largest
# differences that are taken for that, of one task and of a macro score, in every metric.
TASK_TOLERANCE = 0.01
MACRO_TOLERANCE = 0.002

REFERENCE = "sklearn"
UNCALIBRATED = "cuml"
"""The backend whose scores are not submitted without a calibration."""

_AGAIN = "geneb analyze backends STORE --backends sklearn,cuml --out FILE"

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Score = Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)]
Size = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Text = Annotated[str, Field(max_length=500)]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", defer_build=True)


class Side(_Strict):
    """One of the two backends, and what it ran on.

    Attributes
    ----------
    versions, blas
        As in a results folder's ``run.json``.
    """

    backend: Text
    device: Text
    versions: dict[str, Text]
    blas: list[dict[str, Text | int]]


class Values(_Strict):
    """Reported values of one regime of one task."""

    MCC: Score
    Acc: Share
    F1: Share


class Pair(_Strict):
    """One regime of one task, on both backends.

    Attributes
    ----------
    coef
        Largest difference of two weights over the largest weight of the reference; of all fits
        the largest.
    predictions
        Share of the test rows that are predicted otherwise; of all fits the largest.
    """

    coef: Size
    predictions: Share
    reference: Values
    compared: Values

    def difference(self, metric: str) -> float:
        """Return the compared backend's reported value minus the reference's."""
        return float(getattr(self.compared, metric) - getattr(self.reference, metric))


class Calibration(_Strict):
    """What `geneb analyze backends` stores.

    Attributes
    ----------
    tasks
        Task -> regime -> the pair.
    """

    format: Literal["geneb-calibration-1"] = "geneb-calibration-1"
    model_id: Text
    store_fingerprint: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    protocol: Text
    seeds: list[int]
    task_tolerance: Size = TASK_TOLERANCE
    macro_tolerance: Size = MACRO_TOLERANCE
    reference: Side
    compared: Side
    tasks: dict[str, dict[str, Pair]]

    def macro_difference(self, regime: str, metric: str, spec: Spec) -> float | None:
        """Return the difference of the mean over categories of the mean over tasks; None without.

        Tasks outside the benchmark have no category and are left out.
        """
        by_category: dict[str, list[float]] = {}
        for task_id, regimes in self.tasks.items():
            if (task := spec.find(task_id)) and regime in regimes:
                found = by_category.setdefault(task.category, [])
                found.append(regimes[regime].difference(metric))
        means = [math.fsum(values) / len(values) for values in by_category.values()]
        return math.fsum(means) / len(means) if means else None


def calibration_tasks(spec: Spec) -> list[str]:
    """Return the fixed subset: the first task of each category, in the spec's order."""
    first: dict[str, str] = {}
    for task in spec.tasks:
        first.setdefault(task.category, task.id)
    return list(first.values())


def read_calibration(path: Path) -> Calibration:
    """Read a calibration.

    Raises
    ------
    NotFoundError, InputError
        If it is not one.
    """
    try:
        return Calibration.model_validate(read_json(path))
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"
            for fault in error.errors(include_url=False)[:8]
        )
        raise InputError(
            "this is not a calibration", where=str(path), found=faults, fix=f"make one: {_AGAIN}"
        ) from error


def write_calibration(path: Path, calibration: Calibration) -> None:
    """Write a calibration; one that lies there is replaced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, pretty_json(calibration.model_dump(mode="json")))


def shortcomings(calibration: Calibration, spec: Spec) -> Iterator[Fault]:
    """Yield why scores of the compared backend cannot stand beside the reference's."""
    for name, found, expected in (
        ("protocol", calibration.protocol, spec.protocol.id),
        ("seeds", calibration.seeds, list(spec.seeds)),
        ("reference.backend", calibration.reference.backend, REFERENCE),
    ):
        if found != expected:
            yield _fault(name, "this calibration is of something else", str(expected), str(found))
    for task_id in calibration_tasks(spec):
        lacking = [one for one in spec.regimes if one not in calibration.tasks.get(task_id, {})]
        if lacking:
            yield _fault(f"tasks.{task_id}", "this calibration lacks regimes", None, str(lacking))
    yield from excesses(calibration, spec)


def excesses(calibration: Calibration, spec: Spec) -> Iterator[Fault]:
    """Yield where the two backends lie further apart than is tolerated."""
    for task_id, regimes in calibration.tasks.items():
        for regime, pair in regimes.items():
            for metric in METRICS:
                size = abs(pair.difference(metric))
                if size > TASK_TOLERANCE:
                    yield _excess(f"tasks.{task_id}.{regime}.{metric}", TASK_TOLERANCE, size)
    for regime in spec.regimes:
        for metric in METRICS:
            macro = calibration.macro_difference(regime, metric, spec)
            if macro is not None and abs(macro) > MACRO_TOLERANCE:
                yield _excess(f"macro.{regime}.{metric}", MACRO_TOLERANCE, abs(macro))


def _excess(place: str, tolerance: float, size: float) -> Fault:
    return Fault(
        f"calibration.{place}",
        "the two backends do not agree",
        expected=f"within {tolerance:g}",
        found=f"{size:.4g} apart",
        fix=f"probe this store with the backend {REFERENCE}",
    )


def _fault(place: str, problem: str, expected: str | None, found: str) -> Fault:
    return Fault(f"calibration.{place}", problem, expected, found, fix=f"make another: {_AGAIN}")


def calibration_faults(
    calibration: Calibration | None,
    *,
    backend: str,
    store_fingerprint: str,
    versions: dict[str, str],
    spec: Spec,
) -> Iterator[Fault]:
    """Yield why results cannot stand beside scikit-learn's for want of a calibration.

    Parameters
    ----------
    backend, store_fingerprint, versions
        What the results were made with.
    """
    if backend != UNCALIBRATED:
        return
    if calibration is None:
        yield Fault(
            "calibration",
            f"scores of the backend {UNCALIBRATED} need a calibration",
            found="none",
            fix=f"make one: {_AGAIN}; then geneb submission pack RESULTS --calibration FILE",
        )
        return
    for name, found, expected in (
        ("compared.backend", calibration.compared.backend, backend),
        ("store_fingerprint", calibration.store_fingerprint, store_fingerprint),
        ("compared.versions", calibration.compared.versions, versions),
    ):
        if found != expected:
            yield _fault(name, "this calibration is of something else", str(expected), str(found))
    yield from shortcomings(calibration, spec)

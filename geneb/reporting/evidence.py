"""What stands beside a submission: all that its schema has no room for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from geneb.base.canonical import digest
from geneb.base.text import name_some
from geneb.benchmark.sizes import load_test_sizes
from geneb.benchmark.spec import load_spec
from geneb.errors import Fault
from geneb.probing.calibration import Calibration, calibration_faults
from geneb.reporting.document import json_path, show
from geneb.reporting.submission import ModelId

Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0)]


def _check_finite(value: Any) -> Any:
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        raise ValueError("there is a number in it that is not finite") from None
    return value


Json = Annotated[Any, AfterValidator(_check_finite)]
_PACK_AGAIN = "pack submission and evidence together, and edit neither"


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", defer_build=True)


class FitSummary(_Strict):
    """The fits behind one reported value.

    Attributes
    ----------
    fits
        One for each seed, or one in the full regime, where seeds change nothing.
    n_train, n_test, n_classes, short_classes, unseen_classes
        As in `geneb.results.Fit`; the same for all seeds.
    converged
        Fits that converged, of ``fits``.
    n_iter, gradient_norm
        The largest of all fits.
    """

    fits: Count
    n_train: Count
    n_test: Count
    n_classes: Count
    short_classes: Count
    unseen_classes: Count
    converged: Count
    n_iter: Count
    gradient_norm: Annotated[float, Field(ge=0, allow_inf_nan=False)]


class TaskEvidence(_Strict):
    """One task.

    Attributes
    ----------
    embeddings_digest
        SHA-256 of the task's manifest in the store: embeddings, row ids, labels, their order.
    """

    embeddings_digest: Sha256
    regimes: dict[str, FitSummary]


class StoreEvidence(_Strict):
    """The embedding store.

    Attributes
    ----------
    fingerprint_id
        SHA-256 of all that changed the numbers in it.
    fingerprint
        That itself; None where the store was not at hand.
    """

    fingerprint_id: Sha256
    fingerprint: dict[str, Json] | None


class _Evidence(_Strict):
    schema_version: Literal["1.0"]
    model_id: ModelId
    submission_sha256: Sha256


class ProbeEvidence(_Evidence):
    """Evidence of a submission that was packed from a results folder.

    Attributes
    ----------
    submission_sha256
        Of the submission's file.
    run_key, versions, blas, environment
        As in the results folder's ``run.json``.
    calibration
        How far the backend's scores lie from scikit-learn's; None where nobody measured it.
    """

    source: Literal["probe"]
    protocol: str
    seeds: list[int]
    backend: str
    store: StoreEvidence
    run_key: str
    versions: dict[str, str]
    blas: list[dict[str, Json]]
    environment: dict[str, Json]
    tasks: dict[str, TaskEvidence]
    calibration: Calibration | None = None


class LegacyScores(_Strict):
    """One result file of the published runner.

    Attributes
    ----------
    std
        Spread over the seeds, as the file states it.
    """

    file: str
    sha256: Sha256
    std: dict[str, float | None]


class LegacyEvidence(_Evidence):
    """Evidence of a submission that was packed from the published runner's files.

    They say nothing about store, versions or backend; their protocol is the published one.

    Attributes
    ----------
    tasks
        Task -> regime -> file.
    """

    source: Literal["legacy"]
    tasks: dict[str, dict[str, LegacyScores]]


Evidence = Annotated[ProbeEvidence | LegacyEvidence, Field(discriminator="source")]
"""What an evidence file holds."""


def contradictions(evidence: ProbeEvidence | LegacyEvidence) -> Iterator[Fault]:
    """Yield what cannot be true of a submission's evidence, with its JSON path."""
    yield from _unknown_names(evidence)
    if isinstance(evidence, LegacyEvidence):
        return
    spec = load_spec()
    for name, stated, published in (
        ("protocol", evidence.protocol, spec.protocol.id),
        ("seeds", evidence.seeds, list(spec.seeds)),
    ):
        if stated != published:
            yield Fault(
                f"$.{name}",
                "only results of the published protocol are submitted",
                expected=str(published),
                found=show(stated),
                fix="probe the store again, without --protocol and --seeds",
            )
    for fault in calibration_faults(
        evidence.calibration,
        backend=evidence.backend,
        store_fingerprint=evidence.store.fingerprint_id,
        versions=evidence.versions,
        spec=spec,
    ):
        yield replace(fault, where=f"$.{fault.where}")
    store = evidence.store
    if store.fingerprint is not None and digest(store.fingerprint) != store.fingerprint_id:
        yield Fault(
            "$.store.fingerprint",
            "this is not the fingerprint of the store that is named",
            expected=store.fingerprint_id,
            found=digest(store.fingerprint),
            fix=_PACK_AGAIN,
        )
    for task, regime, fits in _fits(evidence):
        place = json_path(("tasks", task, "regimes", regime))
        if fits.fits not in (1, len(spec.seeds)) or fits.converged > fits.fits:
            yield Fault(
                place,
                "there is one fit, or one for each seed, and no more of them converged",
                found=f"{fits.fits:,} fits, {fits.converged:,} converged",
                fix=_PACK_AGAIN,
            )


def gaps(evidence: ProbeEvidence | LegacyEvidence) -> Iterator[Fault]:
    """Yield what makes evidence doubtful: tasks without any, and tests on other rows."""
    lacking = [task for task in load_spec().task_ids if task not in evidence.tasks]
    if lacking:
        yield Fault(
            "$.tasks",
            f"{len(lacking):,} tasks are without evidence",
            found=f"none for {name_some(lacking, 3)}",
            fix=_PACK_AGAIN,
        )
    if isinstance(evidence, LegacyEvidence):
        return
    sizes = load_test_sizes()
    for task, regime, fits in _fits(evidence):
        if fits.n_test != sizes.get(task, fits.n_test):
            yield Fault(
                json_path(("tasks", task, "regimes", regime, "n_test")),
                "the task's test set has another number of rows",
                expected=f"{sizes[task]:,}",
                found=f"{fits.n_test:,}",
                fix="compare the task's CSV with the benchmark's: `geneb task show`",
            )


def _fits(evidence: ProbeEvidence) -> Iterator[tuple[str, str, FitSummary]]:
    for task, of_task in evidence.tasks.items():
        for regime, fits in of_task.regimes.items():
            yield task, regime, fits


def _unknown_names(evidence: ProbeEvidence | LegacyEvidence) -> Iterator[Fault]:
    spec = load_spec()
    for task, of_task in evidence.tasks.items():
        regimes = of_task.regimes if isinstance(of_task, TaskEvidence) else of_task
        if task not in spec.task_ids:
            yield Fault(
                json_path(("tasks", task)), "this is no task of the benchmark", fix=_PACK_AGAIN
            )
        for regime in regimes:
            if regime not in spec.regimes:
                place = json_path(("tasks", task, "regimes", regime))
                yield Fault(place, "this is no regime of the benchmark", fix=_PACK_AGAIN)

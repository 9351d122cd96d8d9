"""What stands beside a submission: all that its schema has no room for."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from geneb.reporting.submission import ModelId

Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0)]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


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
    fingerprint: dict[str, Any] | None


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
    """

    source: Literal["probe"]
    protocol: str
    seeds: list[int]
    backend: str
    store: StoreEvidence
    run_key: str
    versions: dict[str, str]
    blas: list[dict[str, Any]]
    environment: dict[str, Any]
    tasks: dict[str, TaskEvidence]


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

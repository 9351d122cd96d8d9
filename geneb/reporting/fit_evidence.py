"""From a probe's results to the evidence that goes with a submission."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from geneb.errors import InputError
from geneb.probing.calibration import Calibration
from geneb.reporting.evidence import FitSummary, ProbeEvidence, StoreEvidence, TaskEvidence
from geneb.reporting.submission import SCHEMA_VERSION
from geneb.results import Fit, RunInfo, TaskResults, complete_regimes
from geneb.stores import Store


def probe_evidence(
    info: RunInfo,
    results: Sequence[TaskResults],
    store: Store | None,
    calibration: Calibration | None,
    *,
    submission_sha256: str,
) -> ProbeEvidence:
    """Return the evidence of a submission that is packed from results.

    Parameters
    ----------
    store
        The store that was probed, for its whole fingerprint.
    calibration
        Of the backend.
    submission_sha256
        Of the submission's file.

    Raises
    ------
    InputError, pydantic.ValidationError
        If the results cannot be a probe's.
    """
    return ProbeEvidence(
        schema_version=SCHEMA_VERSION,
        model_id=info.model_id,
        submission_sha256=submission_sha256,
        source="probe",
        protocol=info.protocol,
        seeds=info.seeds,
        backend=info.backend,
        store=StoreEvidence(
            fingerprint_id=info.store_fingerprint,
            fingerprint=store.fingerprint.as_read() if store else None,
        ),
        run_key=info.key,
        versions=info.versions,
        blas=info.blas,
        environment=info.environment,
        tasks={
            task.origin.task: TaskEvidence(
                embeddings_digest=task.origin.embeddings_digest,
                regimes={
                    regime: _summarise_fits(fits)
                    for regime, fits in complete_regimes(task, info.seeds).items()
                },
            )
            for task in results
        },
        calibration=calibration,
    )


def _summarise_fits(fits: Sequence[Fit]) -> FitSummary:
    first = fits[0]
    return FitSummary(
        fits=len(fits),
        n_train=first.n_train,
        n_test=first.n_test,
        n_classes=first.n_classes,
        short_classes=first.short_classes,
        unseen_classes=first.unseen_classes,
        converged=sum(fit.converged is True for fit in fits),
        n_iter=_largest([fit.n_iter for fit in fits], "n_iter"),
        gradient_norm=_largest([fit.gradient_norm for fit in fits], "gradient_norm"),
    )


def _largest(values: Sequence[float | None], column: str) -> Any:
    """Return the largest value; the published protocol's fits all have one."""
    known = [value for value in values if value is not None]
    if len(known) != len(values):
        raise InputError(
            "these results do not tell how their fits ended",
            expected=f"a number in the column {column} of every fit",
            fix="probe the store again",
        )
    return max(known)

"""What a contributor claims: a submission's scores, and the evidence beside them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from geneb.base.files import read_bytes
from geneb.errors import InputError
from geneb.reporting.document import parse_document
from geneb.reporting.evidence import Evidence, ProbeEvidence
from geneb.reporting.faults import listed
from geneb.reporting.submission import EVIDENCE_ENDING, MAX_BYTES
from geneb.reporting.validate import check_document, validate_files
from geneb.results import Summary


@dataclass(frozen=True)
class Claims:
    """One submission.

    Attributes
    ----------
    sha256
        Of the submission's file.
    evidence
        What the scores were made of and with; None where nothing says so.
    """

    model_id: str
    sha256: str
    summary: Summary
    evidence: ProbeEvidence | None


def read_claims(path: Path) -> Claims:
    """Read a complete submission, and its evidence if that lies beside it.

    Raises
    ------
    NotFoundError, InputError
        If the submission or the evidence is not what it must be, with everything that is wrong;
        or if the evidence is of another submission.
    """
    data = read_bytes(path, MAX_BYTES)
    found = check_document(data)
    if faults := [*found.faults, *found.missing]:
        raise InputError("this is not a complete submission", where=str(path), found=listed(faults))
    model_id = found.document["model_id"]
    sha256 = hashlib.sha256(data).hexdigest()
    evidence = _read_evidence(path.with_name(f"{model_id}{EVIDENCE_ENDING}"), sha256)
    return Claims(model_id, sha256, found.summary, evidence)


def _read_evidence(path: Path, submission_sha256: str) -> ProbeEvidence | None:
    if not path.exists():
        return None
    (report,) = validate_files([path])
    if report.faults:
        raise InputError(
            "this is not a submission's evidence", where=str(path), found=listed(report.faults)
        )
    document, _ = parse_document(read_bytes(path, MAX_BYTES))
    evidence = TypeAdapter(Evidence).validate_python(document)
    if evidence.submission_sha256 != submission_sha256:
        raise InputError(
            "this evidence is of another submission",
            where=str(path),
            expected=submission_sha256,
            found=evidence.submission_sha256,
            fix="fetch both files together",
        )
    return evidence if isinstance(evidence, ProbeEvidence) else None

"""Who stands in the leaderboard, and what is said about each model.

What is published about a model (``benchmark/model_meta.json``) was looked up; what a submission
says about itself was not. So, field by field:

=============  ===================================================================
model_id       the submission's, which is also its file's name
scores         the submission's
zero_shot      the submission's: nobody else knows; false where it says nothing
display        the published one, else the submission's
params         the published one, else the submission's
provenance     the published one, else ``self-reported``, whatever the submission
               says; a verification record of this very file raises it
=============  ===================================================================

A submission of a model whose published scores are official is taken only from those who made
them: others' scores of the same model need an id of their own. That goes by the name in the
submission; whether it is theirs is for those to judge who own the folder.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from geneb.benchmark.spec import ModelFacts, load_model_meta, load_spec
from geneb.errors import Fault, InputError, NotFoundError
from geneb.probing.calibration import REFERENCE
from geneb.reporting.faults import listed
from geneb.reporting.sources import Source, read_sources
from geneb.reporting.submission import ENDING, EVIDENCE_ENDING
from geneb.reporting.validate import (
    OFFICIAL,
    SELF_REPORTED,
    Findings,
    Report,
    validate_files,
)
from geneb.reporting.verification import VerificationRecord, find_record
from geneb.results import Summary

NOT_SUBMITTED = "not submitted"
PROVENANCES = (OFFICIAL, "verified", "scores-verified", SELF_REPORTED)
"""The most trustworthy first."""


@dataclass(frozen=True)
class Entry:
    """One model of the leaderboard.

    Attributes
    ----------
    display
        Its name for people.
    params
        Number of parameters; None where nobody says (never in a built leaderboard).
    provenance
        One of `PROVENANCES`, or ``not submitted`` for a results folder.
    zero_shot
        Whether the submission says that the model never saw the tasks' sequences.
    protocol
        What the scores were made by; a submission is of the published one by definition.
    backend
        What solved the fits; None where nothing says so.
    """

    model_id: str
    display: str
    params: int | None
    provenance: str
    zero_shot: bool
    protocol: str
    summary: Summary
    backend: str | None = None

    @property
    def official(self) -> bool:
        """Whether the benchmark's authors made the scores."""
        return self.provenance == OFFICIAL


@dataclass(frozen=True)
class Leaderboard:
    """All entries of a leaderboard, and what was noticed while they were read.

    Attributes
    ----------
    entries
        Sorted by model id, case aside.
    notes
        Sentences about records that were not used, and about names that several models have.
    """

    entries: tuple[Entry, ...]
    notes: tuple[str, ...]


def read_leaderboard(submissions: Path, verifications: Path | None = None) -> Leaderboard:
    """Read every submission of a folder; all must be valid and complete.

    Parameters
    ----------
    submissions
        Folder of ``<model id>.json``; hidden files are passed over. What lies beside them as
        their evidence must be valid too: it says which backend the scores are of.
    verifications
        Folder of verification records; None for none.

    Raises
    ------
    NotFoundError
        If there is no such folder, or no submission in the first.
    InputError
        Naming every file that is refused, and everything that is wrong with it.
    """
    reports = validate_files(submission_files(submissions))
    evidence = [submissions / f"{report.path.stem}{EVIDENCE_ENDING}" for report in reports]
    beside = validate_files(path for path in evidence if path.exists())
    _refuse([*reports, *beside], submissions)
    backends = {one.path.name.removesuffix(EVIDENCE_ENDING): one.backend for one in beside}
    if verifications is not None and not verifications.is_dir():
        raise NotFoundError(
            "there is no such folder of verification records", where=str(verifications)
        )
    entries: list[Entry] = []
    notes: list[str] = []
    for report in reports:
        # What was checked is what is used: the file is not read a second time.
        record, note = _record_of(report, verifications)
        notes += [note] if note else []
        entry = _make_entry(report.found, record)
        entries.append(replace(entry, backend=backends.get(entry.model_id)))
    if verifications is not None:
        notes += _records_of_nobody(verifications, {entry.model_id for entry in entries})
    ordered = sorted(entries, key=lambda entry: (entry.model_id.lower(), entry.model_id))
    notes += backend_notes(ordered)
    notes += [
        f"{' and '.join(ids)} are both shown as {display}"
        for display, ids in same_names(ordered).items()
    ]
    return Leaderboard(tuple(ordered), tuple(notes))


def _refuse(reports: Sequence[Report], folder: Path) -> None:
    faults = [
        Fault(f"{report.path.name}, {fault.where}", fault.problem, fault.expected, fault.found)
        for report in reports
        for fault in report.faults
    ]
    if faults:
        raise InputError(
            "the leaderboard is not built from submissions that are invalid or incomplete",
            where=str(folder),
            found=listed(faults),
            fix="mend these files, or take them out of the folder",
        )


def submission_files(folder: Path) -> list[Path]:
    """Return the submissions of a folder, by name.

    Raises
    ------
    NotFoundError
        If there is no such folder, or no submission in it.
    """
    if not folder.is_dir():
        raise NotFoundError("there is no such folder of submissions", where=str(folder))
    paths = [
        path
        for path in sorted(folder.iterdir())
        if path.suffix.lower() == ENDING  # in capitals it is refused by name, not passed over
        and not path.name.startswith(".")
        and not path.name.endswith(EVIDENCE_ENDING)
    ]
    if not paths:
        raise NotFoundError(
            "there are no submissions in this folder", where=str(folder), expected="<model id>.json"
        )
    return paths


def _record_of(
    report: Report, verifications: Path | None
) -> tuple[VerificationRecord | None, str | None]:
    """Return the record of exactly this file, or a sentence on why there is none."""
    record = find_record(verifications, report.model_id) if verifications else None
    if record is None:
        return None, None
    if record.submission_sha256 != report.sha256:
        return None, f"{report.model_id}: its verification record is of another version of the file"
    return record, None


def _records_of_nobody(verifications: Path, model_ids: Collection[str]) -> Iterator[str]:
    """Yield a sentence for each record whose submission is not there."""
    for path in sorted(verifications.glob(f"*{ENDING}")):
        if path.stem not in model_ids and not path.name.startswith("."):
            yield f"{path.name}: there is no submission that this verification record is of"


def _make_entry(found: Findings, record: VerificationRecord | None) -> Entry:
    """Return the entry of a valid submission; see the table at the top for who decides what."""
    model_id, claims = found.document["model_id"], found.document["meta"]
    facts = load_model_meta().find(model_id)
    return Entry(
        model_id=model_id,
        display=facts.display if facts else claims["display"],
        params=facts.params if facts else claims["params"],
        provenance=_provenance(facts, record),
        zero_shot=claims.get("zero_shot") is True,
        protocol=load_spec().protocol.id,
        summary=found.summary,
    )


def _provenance(facts: ModelFacts | None, record: VerificationRecord | None) -> str:
    published = facts.provenance if facts else SELF_REPORTED
    earned = record.level if record and record.level in PROVENANCES else SELF_REPORTED
    return min(published, earned, key=PROVENANCES.index)


def backend_notes(entries: Sequence[Entry]) -> list[str]:
    """Return a sentence for each model whose fits were not solved by scikit-learn on the CPU."""
    return [
        f"{entry.model_id}: its fits were solved by the backend {entry.backend}"
        for entry in entries
        if entry.backend not in (None, REFERENCE)
    ]


def same_names(entries: Sequence[Entry]) -> dict[str, list[str]]:
    """Return the names for people that several models have, case aside, with the models' ids."""
    ids: dict[str, list[str]] = {}
    first: dict[str, str] = {}
    for entry in entries:
        ids.setdefault(first.setdefault(entry.display.casefold(), entry.display), []).append(
            entry.model_id
        )
    return {display: found for display, found in ids.items() if len(found) > 1}


def entries_of(paths: Sequence[Path]) -> list[Entry]:
    """Read results folders and submission files for a look at them; they may be incomplete.

    Raises
    ------
    NotFoundError, InputError
        As `geneb.reporting.sources.read_sources`.
    """
    return [_look_at(source) for source in read_sources(paths)]


def _look_at(source: Source) -> Entry:
    if source.submission is not None:
        # Whatever is published about the model: these scores have not been taken in.
        return replace(_make_entry(source.submission, None), provenance=SELF_REPORTED)
    facts = load_model_meta().find(source.model_id)
    return Entry(
        model_id=source.model_id,
        display=facts.display if facts else source.model_id,
        params=facts.params if facts else None,
        provenance=NOT_SUBMITTED,
        zero_shot=False,
        protocol=source.protocol,
        summary=source.summary,
        backend=source.backend,
    )

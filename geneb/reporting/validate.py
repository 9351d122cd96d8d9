"""Validating submissions: every fault of every file at once, each with its JSON path."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from geneb.base.files import PARTIAL, read_bytes
from geneb.base.text import plain
from geneb.benchmark.spec import load_model_meta
from geneb.errors import Fault, GenebError, InputError
from geneb.reporting.document import json_path, parse_document, show
from geneb.reporting.evidence import Evidence, contradictions, gaps
from geneb.reporting.faults import MISSING_TASK
from geneb.reporting.plausible import implausible
from geneb.reporting.submission import ENDING, EVIDENCE_ENDING, MAX_BYTES, Submission
from geneb.results import METRICS, Summary

# A file made to do harm can have more faults than anybody reads, or memory holds well.
MAX_FAULTS = 2000
OFFICIAL = "official"
SELF_REPORTED = "self-reported"

_MAINTAINERS_WORDS = (OFFICIAL, "verified")

# What lacks in a document that can be shown all the same, by the length of its path.
_INCOMPLETE = {2: "this regime is missing", 3: MISSING_TASK}

_FIX_INCOMPLETE = "probe what is missing, and pack all of it with `geneb submission pack`"

# What `geneb probe` writes into results.json, which is taken for a submission now and then.
_KEYS_OF_A_PROBE = {"model_id", "protocol", "results"}

_SUMMARY_OF_A_PROBE = Fault(
    "$",
    "this is a probe's summary, not a submission",
    fix="pack the folder that it lies in: geneb submission pack FOLDER --out DIR",
)

_KINDS_OF_EVIDENCE = (("probe",), ("legacy",))

# Kinds of pydantic's errors -> what is wrong, what to do. All others are "not what it must be".
_KINDS = {
    "missing": ("this is missing", "add it; `geneb submission pack` writes complete files"),
    "extra_forbidden": ("this is not known here", "remove it, or correct its name"),
    "finite_number": ("this is not a finite number", "probe the task again"),
    "literal_error": ("this is not one of the known values", None),
}
_NUMBER = "write the number itself, as the probe gave it"
_FIXES = {"float_type": _NUMBER, "int_type": _NUMBER, "string_type": "write it in quotation marks"}


@dataclass
class Findings:
    """What is wrong with one document.

    Attributes
    ----------
    document
        As parsed; None if it could not be.
    faults
        Of the form: the document cannot be used.
    missing
        Regimes and tasks that a complete submission has: the rest can be shown, not listed.
    """

    document: Any
    faults: list[Fault] = field(default_factory=list)
    missing: list[Fault] = field(default_factory=list)

    @cached_property
    def summary(self) -> Summary:
        """The scores that are there, of a document without faults of form."""
        return {
            regime: {
                # Adding zero turns -0.0, which would be shown as such, into 0.0.
                task: {metric: float(values[metric]) + 0.0 for metric in METRICS}
                for task, values in tasks.items()
            }
            for regime, tasks in self.document["results"].items()
        }


@dataclass
class Report:
    """What is wrong with one file.

    Attributes
    ----------
    model_id
        None where the file does not tell.
    found
        What was found in the submission itself; None where nothing could be read, and for an
        evidence file.
    sha256
        Of the file; None where it could not be read.
    backend
        What solved the fits, as a valid evidence file says; None for all else.
    read
        Whether there was a file to look into.
    faults
        Each with its JSON path; a file with none is valid.
    """

    path: Path
    model_id: str | None = None
    found: Findings | None = None
    sha256: str | None = None
    backend: str | None = None
    read: bool = True
    faults: list[Fault] = field(default_factory=list)

    @property
    def valid(self) -> bool:
        """Whether nothing but warnings was found."""
        return not self.faults

    @cached_property
    def warnings(self) -> list[Fault]:
        """What is doubtful, but may be so; looked for only when it is asked for."""
        usable = self.found is not None and not self.found.faults
        return list(implausible(self.found.summary)) if usable else []


def validate_files(paths: Iterable[Path]) -> list[Report]:
    """Validate submissions, and evidence files (``*.evidence.json``) among them.

    Beyond what `check_document` finds: names of files, two files of one model, provenance that
    only maintainers give, missing regimes and tasks, scores that cannot be.
    """
    # A file named twice, by two globs or in two ways, is one file.
    distinct = {path.absolute(): path for path in reversed(list(paths))}
    reports = [_validate_file(path) for path in reversed(distinct.values())]
    _find_twins(reports)
    return reports


def check_document(data: bytes) -> Findings:
    """Check a submission's form and completeness.

    Whoever shows scores needs no more than this: any file name and any claim will do.
    """
    document, faults = parse_document(data)
    if document is None and faults:
        return Findings(None, faults)
    if isinstance(document, dict) and set(document) == _KEYS_OF_A_PROBE:
        return Findings(document, [*faults, _SUMMARY_OF_A_PROBE])
    found = Findings(document, faults)
    try:
        Submission.model_validate(document)
    except ValidationError as error:
        for one in error.errors(include_url=False)[:MAX_FAULTS]:
            problem = _INCOMPLETE.get(len(one["loc"])) if _is_missing_result(one) else None
            fault = _describe(one)
            if problem:
                found.missing.append(replace(fault, problem=problem, fix=_FIX_INCOMPLETE))
            else:
                found.faults.append(fault)
    return found


def _is_missing_result(error: Any) -> bool:
    return error["type"] == "missing" and error["loc"][0] == "results"


def _describe(error: Any) -> Fault:
    """Return one of pydantic's errors as a fault."""
    path = json_path(error["loc"])
    kind = error["type"]
    cause = error.get("ctx", {}).get("error")
    if isinstance(cause, GenebError):
        return Fault(path, cause.problem, cause.expected, cause.found, "choose another name")
    if kind == "value_error":
        return Fault(path, str(cause), found=show(error["input"]), fix="write it otherwise")
    problem, fix = _KINDS.get(kind, ("this is not what it must be", _FIXES.get(kind)))
    expected = error.get("ctx", {}).get("expected") or error["msg"]
    return Fault(
        path,
        problem,
        None if kind in ("missing", "extra_forbidden") else plain(_shorten(expected)),
        None if kind == "missing" else show(error["input"]),
        fix or "correct it",
    )


def _shorten(message: str) -> str:
    return message.removeprefix("Input should be ")


def _validate_file(path: Path) -> Report:
    report = Report(path)
    try:
        data = _read(path)
    except (GenebError, OSError) as error:
        report.read = False
        report.faults.append(_unreadable(error))
        return report
    report.sha256 = hashlib.sha256(data).hexdigest()
    if path.name.endswith(EVIDENCE_ENDING):
        _validate_evidence(data, report)
    else:
        _validate_submission(data, report)
    if len(report.faults) > MAX_FAULTS:
        more = len(report.faults) - MAX_FAULTS
        report.faults[MAX_FAULTS:] = [Fault("$", f"there are {more:,} more faults than are listed")]
    return report


def _read(path: Path) -> bytes:
    if path.is_dir() and not path.is_symlink():
        raise InputError(
            "this is a folder",
            fix=f"name the submissions in it, such as {path / f'*{ENDING}'}; results of "
            "`geneb probe` are packed first: geneb submission pack",
        )
    return read_bytes(path, MAX_BYTES)


def _unreadable(error: GenebError | OSError) -> Fault:
    if isinstance(error, OSError) and not isinstance(error, GenebError):
        return Fault("$", "this cannot be read", found=error.strerror or str(error))
    return Fault(
        "$", error.problem, error.expected, error.found, error.fix or "name a submission's file"
    )


def _validate_submission(data: bytes, report: Report) -> None:
    report.found = found = check_document(data)
    report.faults += found.faults + found.missing
    if not isinstance(found.document, dict) or _SUMMARY_OF_A_PROBE in found.faults:
        return
    report.model_id = _text(found.document, "model_id")
    report.faults += [
        *_check_file_name(report.path, report.model_id, ENDING),
        *check_claims(found.document, report.model_id),
    ]


def _validate_evidence(data: bytes, report: Report) -> None:
    document, report.faults = parse_document(data)
    if document is None and report.faults:
        return
    try:
        evidence = TypeAdapter(Evidence).validate_python(document)
    except ValidationError as error:
        for one in error.errors(include_url=False)[:MAX_FAULTS]:
            # The first part names the kind of evidence, which is no part of the document.
            place = one["loc"][1:] if one["loc"][:1] in _KINDS_OF_EVIDENCE else one["loc"]
            report.faults.append(_describe({**one, "loc": place}))
    else:
        report.backend = getattr(evidence, "backend", None)  # evidence of older files has none
        report.faults += contradictions(evidence)
        report.warnings += gaps(evidence)
    if isinstance(document, dict):
        name = _text(document, "model_id")
        report.faults += [
            *_check_file_name(report.path, name, EVIDENCE_ENDING),
            *_check_submission_beside(report.path, document.get("submission_sha256")),
        ]


def _check_submission_beside(path: Path, stated: Any) -> Iterator[Fault]:
    """Compare the submission beside its evidence, where there is one."""
    submission = path.with_name(path.name.removesuffix(EVIDENCE_ENDING) + ENDING)
    try:
        found = hashlib.sha256(read_bytes(submission, MAX_BYTES)).hexdigest()
    except (GenebError, OSError):
        return
    if found != stated:
        yield Fault(
            "$.submission_sha256",
            "this is the evidence of another submission",
            expected=found,
            found=show(stated),
            fix="pack both files together",
        )


def _text(document: dict[str, Any], key: str) -> str | None:
    value = document.get(key)
    return value if isinstance(value, str) else None


def _check_file_name(path: Path, model_id: str | None, ending: str) -> Iterator[Fault]:
    if model_id is not None and path.name != f"{model_id}{ending}":
        partial = path.name == f"{model_id}{PARTIAL}{ending}"
        yield Fault(
            "$.model_id",
            "the file is not named after the model",
            expected=plain(f"{model_id}{ending}"),
            found=plain(path.name),
            fix=_FIX_INCOMPLETE if partial else "rename the file, or correct the id",
        )


def check_claims(document: dict[str, Any], model_id: str | None) -> Iterator[Fault]:
    """Yield what a submitter cannot say of a model, or must: maintainers say the rest."""
    meta = document.get("meta")
    if not isinstance(meta, dict):
        return
    yield from _check_names(model_id, meta.get("display"))
    known = load_model_meta()
    facts = known.find(model_id) if model_id is not None else None
    given = facts.provenance if facts else SELF_REPORTED
    claim, submitter = meta.get("provenance", SELF_REPORTED), meta.get("submitted_by")
    official = submitter in known.official_submitters
    if claim in _MAINTAINERS_WORDS and (claim != given or (claim == OFFICIAL and not official)):
        yield Fault(
            "$.meta.provenance",
            f"only maintainers call a submission {claim}",
            expected=f'"{SELF_REPORTED}"',
            found=f"{show(claim)}, submitted by {show(submitter)}",
            fix=f"write {SELF_REPORTED}; maintainers list others in benchmark/model_meta.json",
        )
    elif given == OFFICIAL and not official:
        yield Fault(
            "$.meta.submitted_by",
            "this model's scores are official",
            expected=" or ".join(map(show, known.official_submitters)),
            found=show(submitter),
            fix="give your own scores of this model another model id",
        )
    elif given != OFFICIAL and _fold(submitter) in map(_fold, known.official_submitters):
        yield Fault(
            "$.meta.submitted_by",
            "this name stands for official scores, which this model has none of",
            found=show(submitter),
            fix="write who made the scores; maintainers list others in benchmark/model_meta.json",
        )
    if meta.get("params") is None and facts is None:
        yield Fault(
            "$.meta.params",
            "the leaderboard needs the number of parameters",
            found="null",
            fix="write it as an integer",
        )


def _check_names(model_id: str | None, display: Any) -> Iterator[Fault]:
    """Yield where a model that is not listed would be taken for one that is."""
    for listed in load_model_meta().models:
        if listed.id == model_id:
            continue
        if _fold(model_id) == _fold(listed.id):
            yield Fault(
                "$.model_id",
                "another model has this id, but for upper and lower case",
                found=f"{show(model_id)}, where {show(listed.id)} is listed",
                fix="choose another id",
            )
        if _fold(display) == _fold(listed.display):
            yield Fault(
                "$.meta.display",
                "another model has this name",
                found=f"{show(display)} is {listed.id}",
                fix="choose another name, such as one that says what you did otherwise",
            )


def _fold(name: Any) -> str | None:
    """Return what two names have in common if readers would take them for one."""
    return unicodedata.normalize("NFKC", name).casefold() if isinstance(name, str) else None


def _find_twins(reports: Sequence[Report]) -> None:
    """Refuse two files of one model; upper and lower case are one on some file systems."""
    first: dict[str, Report] = {}
    for report in reports:
        if report.model_id is None:
            continue
        other = first.setdefault(report.model_id.casefold(), report)
        if other is not report:
            for one, twin in ((other, report), (report, other)):
                one.faults.append(
                    Fault(
                        "$.model_id",
                        "two files are of one model",
                        found=f"the other is {plain(str(twin.path))}",
                        fix="remove one, or give it another id; upper and lower case do not count",
                    )
                )

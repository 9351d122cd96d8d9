"""Packing submissions: from what a probe left behind to a file in the published schema."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from geneb import __version__
from geneb.base.canonical import pretty_json
from geneb.base.files import MAX_JSON_BYTES, PARTIAL, atomic_write, read_bytes
from geneb.base.text import name_some, plain
from geneb.benchmark.spec import load_model_meta, load_spec
from geneb.errors import InputError, NotFoundError
from geneb.extractors.registry import models
from geneb.probing.calibration import Calibration, calibration_faults
from geneb.reporting.evidence import ProbeEvidence
from geneb.reporting.faults import listed, one_line
from geneb.reporting.fit_evidence import probe_evidence
from geneb.reporting.legacy import is_legacy, read_legacy
from geneb.reporting.plausible import implausible
from geneb.reporting.sources import results_folders
from geneb.reporting.submission import (
    ENDING,
    EVIDENCE_ENDING,
    SCHEMA_VERSION,
    format_submission,
)
from geneb.reporting.validate import SELF_REPORTED, check_claims, check_document
from geneb.results import (
    RUN_FILE,
    ResultsFolder,
    RunInfo,
    Summary,
    TaskResults,
    summarise,
)
from geneb.stores import Store

HARNESS_VERSION = f"geneb-{__version__}"
_SKLEARN = "sklearn"
_PROBE_AGAIN = "probe the store again, into another --out"


@dataclass(frozen=True)
class Statement:
    """What the submitter says about the model; what is None is looked up, or left unsaid.

    Attributes
    ----------
    display, params, url
        Default is what is published about the model, or what the registry calls it.
    """

    display: str | None = None
    params: int | None = None
    url: str | None = None
    zero_shot: bool | None = None
    training_data: str | None = None
    submitted_by: str | None = None


@dataclass(frozen=True)
class Packed:
    """A submission, ready to be written.

    Attributes
    ----------
    submission, evidence
        The texts of the two files.
    notes
        Sentences that the submitter should read.
    complete
        Whether all tasks are there in all regimes.
    """

    model_id: str
    submission: str
    evidence: str
    notes: tuple[str, ...]
    complete: bool

    def paths(self, out: Path, *, trial: bool = False) -> tuple[Path, Path]:
        """Return where submission and evidence go.

        Neither what is incomplete nor a trial, whatever is in it, gets the final name.
        """
        final = self.complete and not trial
        stem = self.model_id if final else f"{self.model_id}{PARTIAL}"
        return out / f"{stem}{ENDING}", out / f"{stem}{EVIDENCE_ENDING}"


def pack(
    paths: Sequence[Path],
    statement: Statement,
    *,
    model_id: str | None = None,
    store: Store | None = None,
    calibration: Calibration | None = None,
    partial: bool = False,
) -> list[Packed]:
    """Make submissions of results folders, and of folders with the published runner's files.

    Parameters
    ----------
    paths
        One model's folder each, or folders with several models'.
    statement
        What to say about the model; about several at once only what holds for all of them.
    model_id
        What to submit the published runner's results as; they do not say.
    store
        The store that was probed, to put its whole fingerprint into the evidence.
    calibration
        Of the backend, where that needs one.
    partial
        Whether results that lack tasks are packed too, under another file name.

    Raises
    ------
    NotFoundError, InputError
        For results that cannot be submitted, with all that is missing or wrong.
    """
    old = [path for path in paths if not (path / RUN_FILE).exists() and is_legacy(path)]
    folders = [folder for path in paths if path not in old for folder in results_folders(path)]
    if len(old) + len(folders) > 1:
        _refuse_for_several(statement, model_id, store, calibration)
    packed = [
        _pack_results(folder, statement, model_id, store, calibration, partial=partial)
        for folder in folders
    ]
    return packed + [_pack_legacy(path, statement, model_id, partial=partial) for path in old]


def _refuse_for_several(
    statement: Statement,
    model_id: str | None,
    store: Store | None,
    calibration: Calibration | None,
) -> None:
    single = {
        "--display": statement.display,
        "--params": statement.params,
        "--url": statement.url,
        "--model-id": model_id,
        "--store": store,
        "--calibration": calibration,
    }
    if given := [name for name, value in single.items() if value is not None]:
        raise InputError(
            "there are results of several models, and an option for one of them",
            found=", ".join(given),
            fix="pack them one by one",
        )


def _pack_results(
    path: Path,
    statement: Statement,
    model_id: str | None,
    store: Store | None,
    calibration: Calibration | None,
    *,
    partial: bool,
) -> Packed:
    folder = ResultsFolder.open(path)
    _check_run(folder.info, path, model_id, store)
    results = folder.current()
    _check_origins(folder, results)
    known = set(load_spec().task_ids)
    own = [task.origin.task for task in results if task.origin.task not in known]
    results = [task for task in results if task.origin.task in known]
    summary = summarise(results, folder.info)
    text, complete = _submission_text(
        folder.info.model_id, statement, summary, path, partial=partial
    )
    try:
        evidence = probe_evidence(
            folder.info, results, store, calibration, submission_sha256=_sha256(text)
        )
    except ValidationError as error:
        raise _impossible_evidence(error, path) from error
    return Packed(
        folder.info.model_id,
        text,
        pretty_json(evidence.model_dump(mode="json")),
        (*_notes(folder.info, evidence, own), *_doubts(folder.info.model_id, text)),
        complete,
    )


def _check_origins(folder: ResultsFolder, results: Sequence[TaskResults]) -> None:
    """Refuse tables that are of this run by its key only, and a folder with none of this run."""
    info = folder.info
    if not results and (others := folder.task_ids()):
        raise InputError(
            f"{RUN_FILE} is of another run than the tables beside it",
            where=str(folder.path),
            found=f"{len(others):,} tables, none of run {info.key}",
            fix=_PROBE_AGAIN,
        )
    for one in results:
        found = (one.origin.store_fingerprint, one.origin.backend, one.origin.protocol)
        expected = (info.store_fingerprint, info.backend, info.protocol)
        if found != expected:
            raise InputError(
                f"this table and {RUN_FILE} do not agree on store, backend and protocol",
                where=str(folder.task_path(one.origin.task)),
                expected=", ".join(expected),
                found=plain(", ".join(found)),
                fix=_PROBE_AGAIN,
            )


def _impossible_evidence(error: ValidationError, path: Path) -> InputError:
    faults = [
        f"{one['loc'][-1]}: {plain(one['msg'])}" for one in error.errors(include_url=False)[:8]
    ]
    return InputError(
        "these results were not written by geneb probe, or were edited by hand",
        where=str(path),
        found="; ".join(faults),
        fix=_PROBE_AGAIN,
    )


def _check_run(info: RunInfo, path: Path, model_id: str | None, store: Store | None) -> None:
    spec = load_spec()
    if info.protocol != spec.protocol.id or tuple(info.seeds) != spec.seeds:
        raise InputError(
            "only results of the published protocol are submitted",
            where=str(path),
            expected=f"{spec.protocol.id}, seeds {', '.join(map(str, spec.seeds))}",
            found=f"{info.protocol}, seeds {', '.join(map(str, info.seeds))}",
            fix="probe the store again, without --protocol and --seeds",
        )
    if model_id not in (None, info.model_id):
        raise InputError(
            "these results are of another model",
            where=str(path),
            expected=model_id,
            found=info.model_id,
            fix="a model's id is given when its store is made",
        )
    if store is not None and store.fingerprint_id != info.store_fingerprint:
        raise InputError(
            "these results were not made of this store",
            where=str(path),
            expected=f"fingerprint {info.store_fingerprint}",
            found=f"{store.path}: {store.fingerprint_id}",
        )


def _notes(info: RunInfo, evidence: ProbeEvidence, own: Sequence[str]) -> list[str]:
    notes = []
    if own:
        notes.append(f"{len(own)} tasks outside the benchmark are left out: {', '.join(own)}")
    if info.backend != _SKLEARN:
        notes.append(
            f"these scores are of the backend {info.backend}, not {_SKLEARN}; the evidence says so"
        )
    notes += [
        f"this cannot be submitted: {one_line(fault)}; {fault.fix}"
        for fault in calibration_faults(
            evidence.calibration,
            backend=info.backend,
            store_fingerprint=info.store_fingerprint,
            versions=info.versions,
            spec=load_spec(),
        )
    ]
    fits = [one for task in evidence.tasks.values() for one in task.regimes.values()]
    total, converged = sum(one.fits for one in fits), sum(one.converged for one in fits)
    if converged < total:
        notes.append(f"{total - converged:,} of {total:,} fits stopped before they converged")
    return notes


def _pack_legacy(
    path: Path, statement: Statement, model_id: str | None, *, partial: bool
) -> Packed:
    if model_id is None:
        raise InputError(
            "the published runner's files do not say which model they are of",
            where=str(path),
            fix="give --model-id",
        )
    legacy = read_legacy(path)
    text, complete = _submission_text(model_id, statement, legacy.summary, path, partial=partial)
    evidence = legacy.evidence(model_id, _sha256(text))
    note = "of such results neither store nor versions are known; the evidence says: legacy"
    return Packed(
        model_id,
        text,
        pretty_json(evidence.model_dump(mode="json")),
        (note, *_doubts(model_id, text)),
        complete,
    )


def _doubts(model_id: str, text: str) -> list[str]:
    """Return what `geneb submission validate` will say of a packed submission."""
    found = check_document(text.encode("utf-8"))
    notes = [f"{one.problem}; {one.fix}" for one in check_claims(found.document, model_id)]
    if count := sum(1 for _ in implausible(found.summary)):
        notes.append(f"{count} scores are doubtful: `geneb submission validate` says why")
    return notes


def check_statement(model_id: str, statement: Statement) -> None:
    """Refuse what could not stand in a submission of this model, before there are results.

    Raises
    ------
    InputError
    """
    _checked_text(model_id, statement, {}, model_id)


def _submission_text(
    model_id: str, statement: Statement, summary: Summary, path: Path, *, partial: bool
) -> tuple[str, bool]:
    """Return a submission's text, and whether it is complete.

    Raises
    ------
    InputError
        If it would not be valid, or is incomplete and was not asked for as such.
    """
    text = _checked_text(model_id, statement, summary, str(path))
    if not any(summary.values()):
        raise InputError("there is no score of any task of the benchmark", where=str(path))
    missing = _missing(summary)
    if missing and not partial:
        raise InputError(
            "a submission has all tasks in all regimes",
            where=str(path),
            found="".join(f"\n    {line}" for line in missing),
            fix="probe what is missing, or give --partial for a file that is not for submission",
        )
    return text, not missing


def _checked_text(model_id: str, statement: Statement, summary: Summary, where: str) -> str:
    text = format_submission(
        {
            "schema_version": SCHEMA_VERSION,
            "model_id": model_id,
            "harness_version": HARNESS_VERSION,
            "meta": _meta(model_id, statement, where),
            "results": summary,
        }
    )
    # Halves of surrogates, which stand for odd bytes of the command line, are refused as such.
    if faults := check_document(text.encode("utf-8", "surrogatepass")).faults:
        raise InputError(
            "a submission of this would not be valid", where=where, found=listed(faults)
        )
    return text


def _missing(summary: Summary) -> list[str]:
    spec = load_spec()
    lines = []
    for regime in spec.regimes:
        tasks = [task for task in spec.task_ids if task not in summary.get(regime, {})]
        if len(tasks) == len(spec.tasks):
            lines.append(f"{regime}: all {len(tasks)} tasks are missing")
        elif tasks:
            lack = "1 task is" if len(tasks) == 1 else f"{len(tasks)} tasks are"
            lines.append(f"{regime}: {lack} missing: {name_some(tasks, 3)}")
    return lines


def _meta(model_id: str, statement: Statement, where: str) -> Mapping[str, Any]:
    facts = load_model_meta().find(model_id)
    named = facts or models().get(model_id)
    display = statement.display or (named.display if named else None)
    params = statement.params or (facts.params if facts else None)
    asked = [
        (what, option)
        for what, option, value in (
            ("name in tables", "--display TEXT", display),
            ("number of parameters", "--params N", params),
        )
        if not value
    ]
    if asked:
        raise InputError(
            f"the model's {' and '.join(what for what, _ in asked)} must be said",
            where=where,
            found=f"{model_id} is not among the published models",
            fix=f"give {' and '.join(option for _, option in asked)}",
        )
    return {
        "display": display,
        "params": params,
        "url": statement.url or (facts.url if facts else None),
        "zero_shot": statement.zero_shot,
        "training_data": statement.training_data,
        "provenance": SELF_REPORTED,
        "submitted_by": statement.submitted_by,
    }


def write_packed(
    packed: Sequence[Packed], out: Path, *, force: bool = False, trial: bool = False
) -> list[Path]:
    """Write submissions with their evidence; return the submissions' paths.

    Parameters
    ----------
    trial
        Whether they are not meant to be submitted; see `Packed.paths`.

    Raises
    ------
    InputError
        If a file with other content is there, and ``force`` is not given: nothing is written.
    """
    files: dict[Path, str] = {}
    for one in packed:
        submission, evidence = one.paths(out, trial=trial)
        files |= {evidence: one.evidence, submission: one.submission}
    if not force:
        for path, text in files.items():
            refuse_to_replace(path, text)
    out.mkdir(parents=True, exist_ok=True)
    for path, text in files.items():
        atomic_write(path, text)
    return [one.paths(out, trial=trial)[0] for one in packed]


def refuse_to_replace(path: Path, text: str) -> None:
    """Refuse to write over a file of other content.

    Raises
    ------
    InputError
    """
    try:
        before = read_bytes(path, MAX_JSON_BYTES)
    except NotFoundError:
        return
    if before != text.encode("utf-8"):
        raise InputError(
            "there is a file with other content",
            where=str(path),
            fix="give another --out, or --force to replace it",
        )


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()

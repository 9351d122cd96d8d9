"""Result files of the published runner: one JSON for each task and regime."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from geneb.base.files import parse_json, read_bytes
from geneb.base.text import plain
from geneb.benchmark.spec import load_spec
from geneb.errors import Fault, GenebError, InputError, NotFoundError
from geneb.reporting.evidence import LegacyEvidence, LegacyScores
from geneb.reporting.faults import listed
from geneb.reporting.submission import SCHEMA_VERSION
from geneb.results import Summary

PATTERN = "results_*.json"
MAX_BYTES = 1 << 16
MAX_FILES = 10_000

# How the runner's names for the regimes and metrics correspond to the benchmark's.
_REGIMES = {"": "full", "_k-10": "10shot", "_k-1": "1shot"}
_METRICS = {"MCC": "mcc", "Acc": "accuracy", "F1": "f1_score"}
_NAME = re.compile(r"results_(.*?)(_k-10|_k-1|)[.]json")


class _Reported(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)

    mean: Annotated[float, Field(allow_inf_nan=False)]
    std: Annotated[float, Field(allow_inf_nan=False)] | None = None


class _File(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)

    mcc: _Reported
    accuracy: _Reported
    f1_score: _Reported


@dataclass(frozen=True)
class FileName:
    """What a file's name says.

    Attributes
    ----------
    stem, extractor
        What stands before and after the task's id: the model and the code that ran it.
    """

    stem: str
    task: str
    extractor: str
    regime: str


@dataclass(frozen=True)
class Legacy:
    """All results of one folder.

    Attributes
    ----------
    summary
        Regime -> task -> metric -> mean over the seeds.
    files
        Task -> regime -> what the evidence says about the file.
    """

    summary: Summary
    files: dict[str, dict[str, LegacyScores]]

    def evidence(self, model_id: str, submission_sha256: str) -> LegacyEvidence:
        """Return the evidence that goes beside a submission of these results."""
        return LegacyEvidence(
            schema_version=SCHEMA_VERSION,
            model_id=model_id,
            submission_sha256=submission_sha256,
            source="legacy",
            tasks=self.files,
        )


def is_legacy(folder: Path) -> bool:
    """Return whether a folder has a file that is named like the published runner's."""
    return any(folder.glob(PATTERN))


def parse_name(name: str, task_ids: Sequence[str]) -> FileName:
    """Take ``results_<stem>_<task>_<extractor>[_k-1|_k-10].json`` apart.

    All three parts may hold underscores: the longest task id that fits is the one meant.

    Raises
    ------
    ValueError
        If no task fits, or two of the same length or one in two places.

    Examples
    --------
    >>> parse_name("results_my_model_task_a_MyExtractor_k-10.json", ["task", "task_a"])
    FileName(stem='my_model', task='task_a', extractor='MyExtractor', regime='10shot')
    """
    found = _NAME.fullmatch(name)
    if not found:
        raise ValueError("the name is not results_<model>_<task>_<extractor>[_k-1|_k-10].json")
    middle, suffix = found.groups()
    fits = [(task, place) for task in task_ids for place in _places(f"_{task}_", middle)]
    longest = max((len(task) for task, _ in fits), default=0)
    best = [(task, place) for task, place in fits if len(task) == longest]
    if not best:
        raise ValueError("no task of the benchmark is named in it")
    if len(best) > 1:
        raise ValueError(f"it names several tasks: {', '.join(task for task, _ in best)}")
    task, place = best[0]
    stem, extractor = middle[:place], middle[place + len(task) + 2 :]
    if not stem or not extractor:
        raise ValueError("no model or no extractor is named beside the task")
    return FileName(stem, task, extractor, _REGIMES[suffix])


def _places(part: str, text: str) -> Iterator[int]:
    place = text.find(part)
    while place >= 0:
        yield place
        place = text.find(part, place + 1)


def read_legacy(folder: Path) -> Legacy:
    """Read the result files of a folder, which are all of its JSON files.

    Raises
    ------
    NotFoundError
        If there are none.
    InputError
        Listing every file that cannot be used, is of a task and regime that another file is of,
        or of another model than the rest.
    """
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise NotFoundError(
            "there are no result files of the published runner", where=str(folder), expected=PATTERN
        )
    if len(paths) > MAX_FILES:
        raise InputError(f"there are more than {MAX_FILES:,} result files", where=str(folder))
    names, faults = _parse_names(paths)
    results: dict[tuple[str, str], LegacyScores] = {}
    summary: Summary = {}
    for path, name in names.items():
        try:
            means, results[name.task, name.regime] = _read(path)
            summary.setdefault(name.regime, {})[name.task] = means
        except GenebError as error:
            faults.append(Fault(plain(path.name), error.problem, found=error.found))
    if faults:
        raise InputError(
            "these result files cannot be packed",
            where=str(folder),
            found=listed(faults),
            fix="mend them, or move them out of the folder",
        )
    files: dict[str, dict[str, LegacyScores]] = {}
    for (task, regime), scores in sorted(results.items()):
        files.setdefault(task, {})[regime] = scores
    return Legacy(summary, files)


def _parse_names(paths: Sequence[Path]) -> tuple[dict[Path, FileName], list[Fault]]:
    names: dict[Path, FileName] = {}
    faults: list[Fault] = []
    task_ids = load_spec().task_ids
    for path in paths:
        try:
            names[path] = parse_name(path.name, task_ids)
        except ValueError as error:
            faults.append(Fault(plain(path.name), str(error)))
    first: dict[tuple[str, str], Path] = {}
    for path, name in names.items():
        other = first.setdefault((name.task, name.regime), path)
        if other is not path:
            problem = f"{name.task}, {name.regime} stands twice"
            faults.append(Fault(plain(path.name), problem, found=f"also in {plain(other.name)}"))
    makers = sorted({(name.stem, name.extractor) for name in names.values()})
    if len(makers) > 1:
        listed = ", ".join(plain(f"{stem} by {extractor}") for stem, extractor in makers[:8])
        faults.append(Fault("all files", "they are of several models or extractors", found=listed))
    return names, faults


def _read(path: Path) -> tuple[dict[str, float], LegacyScores]:
    data = read_bytes(path, MAX_BYTES)
    try:
        file = _File.model_validate(parse_json(data, str(path)))
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"
            for fault in error.errors(include_url=False)[:8]
        )
        raise InputError(
            "this is not a result file of the published runner",
            where=str(path),
            found=plain(faults, limit=500),
        ) from error
    reported = {metric: getattr(file, key) for metric, key in _METRICS.items()}
    return (
        {metric: one.mean for metric, one in reported.items()},
        LegacyScores(
            file=plain(path.name, limit=300),
            sha256=hashlib.sha256(data).hexdigest(),
            std={metric: one.std for metric, one in reported.items()},
        ),
    )

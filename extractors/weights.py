"""Where weights are, and what they are told apart by: their content, never name or place."""

from __future__ import annotations

from pathlib import Path

from geneb.base.canonical import digest, file_sha256
from geneb.errors import NotFoundError


def locate(weights: str | None, hub_id: str | None, revision: str | None, model_id: str) -> Path:
    """Return where a model's weights lie on this machine. Nothing is downloaded.

    Parameters
    ----------
    weights
        A file, a folder or a hub id that a user named; None for the model's own.
    hub_id, revision
        Where the model's own weights are published, and the commit.
    model_id
        For messages.

    Raises
    ------
    NotFoundError
        If they are not here.
    """
    if weights is not None and Path(weights).exists():
        return Path(weights)
    raise NotFoundError(
        f"the weights of {model_id} are not on this machine",
        where=weights,
        expected="a file or folder that exists",
        fix=f"geneb model fetch {model_id}, or name the folder they are in with --weights",
    )


def content_sha256(path: Path) -> str:
    """Return the SHA-256 of a weights file, or of the names and contents of a folder's files.

    Hidden files and folders (a download's cache, a repository's history) are left out.
    """
    if path.is_file():
        return file_sha256(path)
    names = (file.relative_to(path) for file in path.rglob("*") if file.is_file())
    return digest(
        {
            name.as_posix(): file_sha256(path / name)
            for name in names
            if not any(part.startswith(".") for part in name.parts)
        }
    )

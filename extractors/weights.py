"""What weights are told apart by: their content, never their name or place."""

from __future__ import annotations

from pathlib import Path

from geneb.base.canonical import digest, file_sha256


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

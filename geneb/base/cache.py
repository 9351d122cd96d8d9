"""The folder for what can be made again, and the digests of large files remembered in it."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import sys
import time
from pathlib import Path
from typing import Any

from geneb.base.canonical import file_sha256
from geneb.base.files import atomic_write, read_json
from geneb.errors import InputError

DIGESTS_FILE = "digests.json"
# Smaller files are read faster than they are looked up.
SMALLEST_REMEMBERED = 1 << 20
_MOST_REMEMBERED = 10_000
_MAX_CACHE_BYTES = 8 << 20
# A file may change twice within one tick of its clock: one that changed just now is not trusted.
_SETTLED_NS = 2_000_000_000


def cache_folder() -> Path:
    """Return the folder for what can be made again: ``GENEB_CACHE``, or the user's cache folder.

    It need not exist.
    """
    chosen = os.environ.get("GENEB_CACHE")
    if chosen:
        return Path(chosen)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "geneb"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "geneb"


def remembered_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's content, in hexadecimal, reading large files only once.

    What was read is remembered by the file's path, size, times of change and number in the file
    system. A file of digests that is damaged, somebody else's or not to be written makes it
    slower, never wrong.

    Raises
    ------
    OSError
        If the file cannot be read.
    """
    before = path.stat()
    if before.st_size < SMALLEST_REMEMBERED:
        return file_sha256(path)
    key, state = str(path.resolve()), _state(before)
    known = _read_digests().get(key)
    if _is_entry(known) and known[:-1] == state:
        return known[-1]
    found = file_sha256(path)
    if _state(path.stat()) == state and _is_settled(before):
        _remember(key, [*state, found])
    return found


def _state(status: os.stat_result) -> list[int]:
    # The time of the last change of any kind is among them: programs can set the other back.
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev]


def _is_settled(status: os.stat_result) -> bool:
    latest = max(status.st_mtime_ns, status.st_ctime_ns)
    return time.time_ns() - latest > _SETTLED_NS


def _is_entry(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 6
        and isinstance(value[-1], str)
        and len(value[-1]) == 64
        and set(value[-1]) <= set("0123456789abcdef")
    )


def _read_digests() -> dict[str, Any]:
    """Return what is remembered; nothing where the file is not one that this user wrote."""
    path = cache_folder() / DIGESTS_FILE
    try:
        content = read_json(path, _MAX_CACHE_BYTES) if _is_own(path) else {}
    except (OSError, InputError):
        return {}
    return content if isinstance(content, dict) else {}


def _is_own(path: Path) -> bool:
    status = path.lstat()
    writable_by_others = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return status.st_uid == os.geteuid() and not writable_by_others


def _remember(key: str, entry: list[Any]) -> None:
    path = cache_folder() / DIGESTS_FILE
    digests = _read_digests()
    digests.pop(key, None)
    digests[key] = entry
    kept = dict(list(digests.items())[-_MOST_REMEMBERED:])
    # A name that is no UTF-8, or a folder that must not be written to: then it is not remembered.
    with contextlib.suppress(OSError, UnicodeEncodeError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Two processes may overwrite each other's entries: they are made again.
        atomic_write(path, json.dumps(kept, ensure_ascii=False), durable=False)
        path.chmod(stat.S_IRUSR | stat.S_IWUSR)

"""Reading and writing files that others also read, write, or made to do harm."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from geneb.base.text import plain
from geneb.errors import BusyError, InputError, NotFoundError

try:
    import fcntl
except ImportError as error:  # pragma: no cover - only off POSIX
    message = "geneb needs POSIX file locks; on Windows run it in WSL"
    raise ImportError(message) from error

MAX_JSON_BYTES = 16 << 20
MAX_JSON_DEPTH = 32
# Quotes, brackets and commas: what a value costs in memory, whatever the file's size.
MAX_JSON_TOKENS = 8_000_000
MAX_NAME = 150
# The ending of files and folders that are still being written; swept where they are left over.
PARTIAL = ".partial"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
_STRING = re.compile(rb'"[^"]*"?')
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_NOT_TOKENS = bytes(set(range(256)) - set(b'[]{},"'))
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def check_name(name: str, what: str) -> str:
    """Return a name if it may become part of a path, on any file system.

    Letters, digits and ``. _ + -``, beginning with a letter or digit, not ending in a dot or
    ``.partial``, at most 150 characters.

    Raises
    ------
    InputError
        If it may not.
    """
    if len(name) > MAX_NAME or not _NAME.fullmatch(name) or name.endswith((".", PARTIAL)):
        raise InputError(
            f"this cannot be the name of a {what}",
            expected=f"letters, digits and . _ + -, at most {MAX_NAME}, "
            f"beginning with a letter or a digit, not ending in a dot or {PARTIAL}",
            found=repr(name[:200]),
        )
    return name


def fsync_directory(path: Path) -> None:
    """Make renames and new entries in a directory survive a power cut."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def fsync_file(path: Path) -> None:
    """Make a file's content survive a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def atomic_write(path: Path, data: bytes | str, *, durable: bool = True) -> None:
    """Write a file so that a reader, and a crash at any moment, sees the old or the new one.

    Parameters
    ----------
    durable
        Whether that goes for a power cut as well, which takes some milliseconds: not needed for
        what can be built again.
    """
    content = data.encode("utf-8") if isinstance(data, str) else data
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}{PARTIAL}")
    try:
        with temporary.open("xb") as stream:
            stream.write(content)
            stream.flush()
            if durable:
                os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        fsync_directory(path.parent)


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key[:80]!r} stands twice")
        found[key] = value
    return found


def _refuse_contradictions(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if found.setdefault(key, value) != value:
            raise ValueError(f"the key {key[:80]!r} stands twice, with two values")
    return found


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number in JSON")


def _refuse_infinite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:80]} is too large for a number")
    return number


def check_json_size(data: bytes) -> None:
    """Refuse deep nesting and very many values before the parser meets them, in linear time.

    Raises
    ------
    ValueError
    """
    # Backslashes stand in strings only; without escapes a string ends at the next quote.
    bare = data.replace(rb"\\", b"").replace(rb"\"", b"")
    if len(bare.translate(None, delete=_NOT_TOKENS)) > MAX_JSON_TOKENS:
        raise ValueError(f"more than {MAX_JSON_TOKENS:,} quotes, brackets and commas")
    depth = 0
    for bracket in _STRING.sub(b"", bare).translate(None, delete=_NOT_BRACKETS):
        depth += 1 if bracket in b"[{" else -1
        if depth > MAX_JSON_DEPTH:
            raise ValueError(f"nested deeper than {MAX_JSON_DEPTH} levels")


def _check_text(data: bytes, value: Any) -> None:
    """Refuse halves of surrogate pairs, which only escapes can bring in and UTF-8 cannot hold."""
    if _SURROGATE_ESCAPE.search(data):
        json.dumps(value, ensure_ascii=False).encode("utf-8")


def parse_json(data: bytes, where: str, *, repeats: bool = False) -> Any:
    """Parse a stranger's JSON: no duplicate keys, no NaN or infinity, no great depth, UTF-8 only.

    Parameters
    ----------
    repeats
        Whether a key may stand there again with the same value: a published configuration does
        so.

    Raises
    ------
    InputError
        Saying what is wrong and in which file.
    """
    try:
        check_json_size(data)
        value = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_refuse_contradictions if repeats else _refuse_duplicates,
            parse_constant=_refuse_constant,
            parse_float=_refuse_infinite,
        )
        _check_text(data, value)
    except (ValueError, RecursionError) as error:
        raise InputError(
            "this is not JSON that can be used", where=where, found=plain(str(error), limit=300)
        ) from error
    return value


def read_bytes(path: Path, limit: int) -> bytes:
    """Read a regular file of at most ``limit`` bytes; links and devices are refused.

    Raises
    ------
    NotFoundError, InputError
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError as error:
        raise NotFoundError("no such file", where=str(path)) from error
    except OSError as error:
        found = "a symbolic link" if error.errno == errno.ELOOP else error.strerror or str(error)
        raise InputError("this cannot be read", where=str(path), found=found) from error
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise InputError("this is not a regular file", where=str(path))
        # One byte more: a file may grow after its size was looked at.
        data = b"" if status.st_size > limit else _read_up_to(handle, limit + 1)
    finally:
        os.close(handle)
    if max(status.st_size, len(data)) > limit:
        raise InputError(
            "this file is too large to be what it should be",
            where=str(path),
            expected=f"at most {limit:,} bytes",
            found=f"{max(status.st_size, len(data)):,} bytes",
        )
    return data


def _read_up_to(handle: int, size: int) -> bytes:
    with os.fdopen(handle, "rb", closefd=False) as stream:
        return stream.read(size)


def read_json(path: Path, limit: int = MAX_JSON_BYTES, *, repeats: bool = False) -> Any:
    """Read and parse a stranger's JSON file; see `parse_json`."""
    return parse_json(read_bytes(path, limit), str(path), repeats=repeats)


class FileLock:
    """An advisory lock on a file, given back by the kernel when its holder dies.

    The file is removed by whoever unlocks it last with `release(remove=True)`; a waiter whose
    file was removed under it notices and starts again.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle: int | None = None

    def acquire(self, *, shared: bool = False, wait: bool = True) -> None:
        """Take the lock.

        Raises
        ------
        BusyError
            If ``wait`` is false and another process holds it.
        """
        mode = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        while self._handle is None:
            with contextlib.suppress(FileExistsError):  # exist_ok looks again, and may miss it
                self.path.parent.mkdir(parents=True)
            try:
                handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
            except FileNotFoundError:  # the folder was removed in between
                continue
            try:
                fcntl.flock(handle, mode if wait else mode | fcntl.LOCK_NB)
            except BlockingIOError as error:
                os.close(handle)
                raise BusyError("another process is at work here", where=str(self.path)) from error
            except OSError as error:
                os.close(handle)
                raise InputError(
                    "files cannot be locked here, so two processes could spoil each other's work",
                    where=str(self.path),
                    found=error.strerror or str(error),
                    fix="choose a folder on another file system, or have this one mounted with "
                    "locks (on Lustre: the option flock)",
                ) from error
            except BaseException:
                os.close(handle)
                raise
            if self._still_there(handle):
                self._handle = handle
            else:
                os.close(handle)

    @property
    def taken(self) -> bool:
        """Whether this object holds the lock now."""
        return self._handle is not None

    def _still_there(self, handle: int) -> bool:
        try:
            return os.path.samestat(os.fstat(handle), self.path.lstat())
        except FileNotFoundError:
            return False

    def release(self, *, remove: bool = False) -> None:
        """Give the lock back, and remove its file if asked (only by an exclusive holder)."""
        if self._handle is None:
            return
        if remove:
            self.path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # not empty: somebody else's lock is there
                self.path.parent.rmdir()
        os.close(self._handle)
        self._handle = None

    @contextlib.contextmanager
    def held(self, *, shared: bool = False, wait: bool = True) -> Iterator[None]:
        """Hold the lock for the length of a with-block."""
        self.acquire(shared=shared, wait=wait)
        try:
            yield
        finally:
            self.release()

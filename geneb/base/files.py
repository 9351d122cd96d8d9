"""Reading and writing files that others also read, write, or made to do harm."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from geneb.errors import BusyError, InputError, NotFoundError

try:
    import fcntl
except ImportError as error:  # pragma: no cover - only off POSIX
    message = "geneb needs POSIX file locks; on Windows run it in WSL"
    raise ImportError(message) from error

MAX_JSON_BYTES = 16 << 20
MAX_JSON_DEPTH = 32
MAX_NAME = 150
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")


def check_name(name: str, what: str) -> str:
    """Return a name if it may become part of a path, on any file system.

    Letters, digits and ``. _ + -``, beginning with a letter or digit, at most 150 characters.

    Raises
    ------
    InputError
        If it may not.
    """
    if len(name) > MAX_NAME or not _NAME.fullmatch(name) or name.endswith("."):
        raise InputError(
            f"this cannot be the name of a {what}",
            expected=f"letters, digits and . _ + -, at most {MAX_NAME}, "
            "beginning with a letter or a digit",
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


def atomic_write(path: Path, data: bytes | str) -> None:
    """Write a file so that a reader, and a crash at any moment, sees the old or the new one."""
    content = data.encode("utf-8") if isinstance(data, str) else data
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.partial")
    try:
        with temporary.open("xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    fsync_directory(path.parent)


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key[:80]!r} stands twice")
        found[key] = value
    return found


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number in JSON")


def _check_depth(data: bytes) -> None:
    """Refuse deep nesting before the recursive parser meets it; strings are passed over."""
    depth = 0
    for token in re.finditer(rb'"(?:[^"\\]|\\.)*"|[\[{\]}]', data):
        if token.group() in b"[{":
            depth += 1
            if depth > MAX_JSON_DEPTH:
                raise ValueError(f"nested deeper than {MAX_JSON_DEPTH} levels")
        elif token.group() in b"]}":
            depth -= 1


def parse_json(data: bytes, where: str) -> Any:
    """Parse a stranger's JSON: no duplicate keys, no NaN, no great depth, UTF-8 only.

    Raises
    ------
    InputError
        Saying what is wrong and in which file.
    """
    try:
        _check_depth(data)
        return json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_refuse_duplicates,
            parse_constant=_refuse_constant,
        )
    except (ValueError, RecursionError) as error:
        raise InputError(
            "this is not JSON that can be used", where=where, found=str(error)[:300]
        ) from error


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
        raise InputError(
            "this cannot be read", where=str(path), found=error.strerror or str(error)
        ) from error
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)
        raise InputError("this is not a regular file", where=str(path))
    with os.fdopen(handle, "rb") as stream:
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise InputError(
            "this file is too large to be what it should be",
            where=str(path),
            expected=f"at most {limit:,} bytes",
            found=f"{status.st_size:,} bytes",
        )
    return data


def read_json(path: Path, limit: int = MAX_JSON_BYTES) -> Any:
    """Read and parse a stranger's JSON file; see `parse_json`."""
    return parse_json(read_bytes(path, limit), str(path))


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
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
            except FileNotFoundError:  # the folder was removed in between
                continue
            try:
                fcntl.flock(handle, mode if wait else mode | fcntl.LOCK_NB)
            except BlockingIOError as error:
                os.close(handle)
                raise BusyError("another process is at work here", where=str(self.path)) from error
            except BaseException:
                os.close(handle)
                raise
            if self._still_there(handle):
                self._handle = handle
            else:
                os.close(handle)

    def _still_there(self, handle: int) -> bool:
        try:
            return os.path.samestat(os.fstat(handle), self.path.lstat())
        except FileNotFoundError:
            return False

    def upgrade(self) -> bool:
        """Turn a shared lock into an exclusive one if nobody else holds it; say whether it did.

        A lock that could not be upgraded may be lost: call this last.
        """
        assert self._handle is not None
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

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

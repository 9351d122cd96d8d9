"""Who is writing to a store, and what those who were killed left behind."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from geneb.base.files import PARTIAL, FileLock
from geneb.errors import BusyError

_TOKEN = re.compile("[0-9a-f]{8}")


def alive_lock(store: Path) -> FileLock:
    """Return the lock that every writer shares for as long as it lives."""
    return FileLock(_lock_folder(store) / "writers")


def claim_lock(store: Path, task: str) -> FileLock:
    """Return the lock of a task's claim: only its holder writes to the task."""
    return FileLock(_lock_folder(store) / f"task-{task}")


@contextlib.contextmanager
def ending(store: Path, alive: FileLock) -> Iterator[bool]:
    """Give a writer's hold on a store back, and say whether it was the last one.

    If it was, nobody else begins to write within the with-block. Writers end one after the other:
    so one that finds others alive knows that the last of them will find itself alone.

    Parameters
    ----------
    alive
        The writer's hold; one that was never taken, for somebody who does not write.
    """
    turn = FileLock(_lock_folder(store) / "ending")
    turn.acquire()
    try:
        alive.release()
        with contextlib.suppress(BusyError):
            alive.acquire(wait=False)
        yield alive.taken
    finally:
        alive.release(remove=True)
        turn.release(remove=True)


def _lock_folder(store: Path) -> Path:
    # Beside the store: inside it, plain Zarr would warn about a folder that is no node. The real
    # place, so that whoever comes through a link meets the same lock.
    place = store.resolve()
    return place.parent / f".{place.name}.locks"


def strays(path: Path) -> list[Path]:
    """Return what interrupted writers left in and beside a store."""
    place = path.resolve()
    found = [entry for entry in place.parent.iterdir() if _is_unborn(entry.name, place.name)]
    for folder, folders, files in os.walk(path):
        left = [name for name in folders if name.startswith(".") and name.endswith(PARTIAL)]
        found += [Path(folder, name) for name in left]
        folders[:] = [name for name in folders if name not in left]
        found += [Path(folder, name) for name in files if name.endswith(PARTIAL)]
    return sorted(found)


def _is_unborn(name: str, store: str) -> bool:
    """Return whether an entry beside a store is that very store, never finished."""
    middle = name.removeprefix(f".{store}.").removesuffix(PARTIAL)
    return name == f".{store}.{middle}{PARTIAL}" and _TOKEN.fullmatch(middle) is not None


def sweep(path: Path) -> list[Path]:
    """Remove what interrupted writers left; only while no writer is alive."""
    found = strays(path)
    for entry in found:
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink(missing_ok=True)
    for claim in _lock_folder(path).glob("task-*"):  # a killed holder's; nobody alive has one
        claim.unlink(missing_ok=True)
    return found


def clean(path: Path) -> list[Path]:
    """Sweep a store, having made sure that nobody writes to it.

    Raises
    ------
    BusyError
        If somebody does.
    """
    with ending(path, alive_lock(path)) as alone:
        if not alone:
            raise BusyError(
                "a process is writing to this store",
                where=str(path),
                fix="wait until it has finished, then clean",
            )
        return sweep(path)

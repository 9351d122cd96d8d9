"""The lock on a file: who gets it, who waits, and what is left of a holder that was killed."""

from __future__ import annotations

import errno
import fcntl
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from geneb.base.files import FileLock
from geneb.errors import BusyError, InputError


@pytest.fixture
def path(tmp_path):
    return tmp_path / ".locks" / "one"


def is_free(path, *, shared=False) -> bool:
    """Whether somebody who comes now gets the lock."""
    lock = FileLock(path)
    try:
        lock.acquire(shared=shared, wait=False)
    except BusyError:
        return False
    lock.release()
    return True


def test_an_exclusive_lock_keeps_all_others_out(path):
    """Until it is given back."""
    lock = FileLock(path)
    lock.acquire()
    assert lock.taken
    assert not is_free(path)
    assert not is_free(path, shared=True)

    lock.release()

    assert not lock.taken
    assert is_free(path)


def test_shared_locks_keep_only_the_exclusive_out(path):
    """All sharers must have gone first."""
    first, second = FileLock(path), FileLock(path)
    first.acquire(shared=True)
    second.acquire(shared=True, wait=False)

    first.release()
    assert not is_free(path)
    assert is_free(path, shared=True)
    second.release()

    assert is_free(path)


def test_held_gives_back_after_an_error(path):
    """A with-block that fails holds nothing afterwards."""
    with pytest.raises(KeyError), FileLock(path).held():
        assert not is_free(path)
        raise KeyError

    assert is_free(path)


def test_giving_back_twice_is_giving_back(path):
    """Also what was never taken."""
    lock = FileLock(path)
    lock.release()
    lock.acquire()
    lock.release(remove=True)
    lock.release(remove=True)

    assert not path.parent.exists()


def test_the_folder_stays_while_others_use_it(path):
    """Only an empty one is removed."""
    first, other = FileLock(path), FileLock(path.with_name("other"))
    first.acquire()
    other.acquire()

    first.release(remove=True)
    assert not path.exists()
    assert path.parent.is_dir()
    other.release(remove=True)

    assert not path.parent.exists()


def test_whoever_waits_for_a_removed_file_gets_the_new_one(path):
    """Counted without a lock of their own, all come out: no two are inside at once."""
    counter = {"inside": 0, "most": 0, "entered": 0}
    threads, rounds = 6, 40
    barrier = threading.Barrier(threads)

    def work(_):
        barrier.wait()
        for _ in range(rounds):
            lock = FileLock(path)
            lock.acquire()
            counter["inside"] += 1
            counter["most"] = max(counter["most"], counter["inside"])
            counter["entered"] += 1
            time.sleep(0)  # lets another thread in, if the lock does
            counter["inside"] -= 1
            lock.release(remove=True)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))

    assert counter == {"inside": 0, "most": 1, "entered": threads * rounds}
    assert not path.parent.exists()


def test_a_killed_holder_holds_nothing(path):
    """The kernel gives the lock back; the file that is left is taken over."""
    script = (
        "import sys, time; from pathlib import Path; from geneb.base.files import FileLock; "
        "FileLock(Path(sys.argv[1])).acquire(); print('held', flush=True); time.sleep(600)"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True
    )
    # FileLock(...) above is dropped, but only closing its file gives a lock back.
    assert holder.stdout.readline() == "held\n"
    assert not is_free(path)

    holder.kill()
    assert holder.wait(60) == -signal.SIGKILL
    holder.stdout.close()

    FileLock(path).acquire()


def test_a_link_in_the_lock_s_place_is_refused(path, tmp_path):
    """Nobody's file elsewhere is opened for writing."""
    path.parent.mkdir()
    (tmp_path / "precious").write_text("precious")
    path.symlink_to(tmp_path / "precious")

    with pytest.raises(OSError, match="symbolic links"):
        FileLock(path).acquire()


def test_a_file_system_without_locks_is_one_clear_error(path, monkeypatch):
    """Some clusters mount theirs so."""

    def refuse(handle, mode):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)

    with pytest.raises(InputError, match="cannot be locked here") as caught:
        FileLock(path).acquire()

    assert "on Lustre" in str(caught.value)

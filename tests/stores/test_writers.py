"""Several writers of one store: nothing is lost, and the last one seals."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from support import store_writer

from geneb.base.files import FileLock
from geneb.errors import BusyError
from geneb.stores import layout, open_store
from geneb.stores.verify import verify_store
from geneb.stores.writers import alive_lock, ending
from geneb.stores.zarr_store import Writer
from geneb.testing.made_stores import create_empty, write_store, write_task

PROCESSES = 3
THREADS = 6


def test_processes_that_start_together_make_one_store(tmp_path, monkeypatch):
    """One creates it, each task is written once, and one of them seals."""
    path = tmp_path / "s.zarr"
    command = [sys.executable, store_writer.__file__, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(command, **pipes) for _ in range(PROCESSES)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()

    did = [json.loads(process.communicate(timeout=300)[0]) for process in processes]

    assert [one["created"] for one in did].count(True) == 1
    assert sorted(name for one in did for name in one["wrote"]) == sorted(store_writer.TASKS)
    assert [one for one in did if one["unsealed"] is None]
    monkeypatch.setattr(layout, "BLOCK_BYTES", 2 * store_writer.DIM * layout.FLOAT_BYTES)
    check_made(path, store_writer.content())
    assert [path] == list(tmp_path.iterdir())


def check_made(path, content):
    verification = verify_store(path)
    assert verification.faults == []
    assert verification.sealed
    store = open_store(path)
    assert sorted(content.tasks) == store.task_ids()
    for name, task in content.tasks.items():
        for split, entry in task.splits.items():
            np.testing.assert_array_equal(
                entry.embeddings, store.task(name).embeddings(split), strict=True
            )


def together(*actions):
    """Do things at the same moment, each in a thread; return what each returned."""
    barrier = threading.Barrier(len(actions))

    def begin(action):
        barrier.wait()
        return action()

    with ThreadPoolExecutor(len(actions)) as pool:
        return list(pool.map(begin, actions))


def test_one_of_many_creates_the_store(tmp_path, content):
    """The others use it; no half-made one is left."""
    path = tmp_path / "s.zarr"

    made = together(*[lambda: create_empty(path, content)] * THREADS)

    assert made.count(True) == 1
    assert verify_store(path).faults == []
    assert [path] == list(tmp_path.iterdir())


def test_one_of_many_creates_a_task(tmp_path, content):
    """What the first one wrote stays; the losers' copies are gone."""
    path = write_store(tmp_path / "s.zarr", replace(content, tasks={}), seal=False)
    splits = {
        name: (entry.row_ids, entry.labels)
        for name, entry in content.tasks["labelled"].splits.items()
    }

    def create():
        with Writer(path) as writer:
            writer.open(content.fingerprint)
            writer.create_task("t", splits)

    together(*[create] * THREADS)

    assert sorted(entry.name for entry in (path / "tasks").iterdir()) == ["t", "zarr.json"]
    assert open_store(path).incomplete() == ["t"]


def test_a_claim_is_one_writer_s(tmp_path, content):
    """Others are told that they wait; they come in one after the other."""
    path = write_store(tmp_path / "s.zarr", replace(content, tasks={}), seal=False)
    inside: list[int] = []
    most: list[int] = []
    told = threading.Event()

    def work():
        with Writer(path) as writer:
            writer.open(content.fingerprint)
            with writer.claim("t", told.set):
                inside.append(1)
                most.append(len(inside))
                if len(most) == 1:
                    assert told.wait(60), "nobody was told that a task is claimed"
                if writer.store.manifest("t") is None:
                    write_task(writer, "t", content.tasks["labelled"])
                inside.pop()

    together(*[work] * 3)

    assert most == [1, 1, 1]


def test_waiting_for_a_claim_can_be_given_up(tmp_path, content):
    """What the callback raises ends the wait."""
    path = write_store(tmp_path / "s.zarr", content)

    def stop():
        raise InterruptedError

    with (
        Writer(path) as first,
        Writer(path) as second,
        first.claim("t", lambda: None),
        pytest.raises(InterruptedError),
        second.claim("t", stop),
    ):
        pass


def test_only_the_last_writer_seals(tmp_path, content):
    """While another one lives, sealing is refused and sweeping left alone."""
    path = write_store(tmp_path / "s.zarr", content, seal=False)
    stray = path / "tasks/labelled/zarr.json.0123abcd.partial"
    stray.write_text("")

    with Writer(path) as last:
        with Writer(path) as first:
            assert first.seal() == "another process is still writing; the last one seals"
        assert not open_store(path).sealed
        assert stray.exists()
        assert last.seal() is None

    assert verify_store(path).sealed
    assert not stray.exists()


def test_of_many_that_end_together_one_seals(tmp_path, content):
    """However their ends fall, the store is sealed when all are gone."""
    for attempt in range(10):
        path = write_store(tmp_path / "s.zarr", replace(content, tasks={}), seal=False)
        inside = threading.Barrier(THREADS)

        def work(path=path, inside=inside):
            with Writer(path) as writer:
                inside.wait()
                return writer.seal()

        reasons = together(*[work] * THREADS)

        assert None in reasons
        assert open_store(path).sealed
        assert [path] == [file for file in tmp_path.iterdir() if "done" not in file.name]
        path.rename(tmp_path / f"done-{attempt}.zarr")


def test_a_reader_needs_no_lock(store, content):
    """Whoever reads a store neither waits for its writers nor writes beside it."""
    with Writer(store) as writer:
        writer.open(content.fingerprint)
        with writer.claim("labelled", lambda: None):
            assert open_store(store).task("labelled").embeddings("train").shape == (7, 4)


def test_writers_end_one_after_the_other(store):
    """While one looks whether it is the last, no other does: else each might see the other."""
    alive = alive_lock(store)
    alive.acquire(shared=True)
    turn = FileLock(store.with_name(f".{store.name}.locks") / "ending")

    with Writer(store), ending(store, alive) as alone:
        assert not alone
        with pytest.raises(BusyError):
            turn.acquire(wait=False)

    turn.acquire(wait=False)
    turn.release(remove=True)
    assert [store] == list(store.parent.iterdir())

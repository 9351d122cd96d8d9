"""Tasks are loaded in turn, the next while one is fitted."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest
from support.small_stores import random_task, write_store

from geneb.errors import GenebError
from geneb.probing import execute
from geneb.probing.execute import load_in_turn
from geneb.probing.protocol import choose_protocol
from geneb.probing.schedule import Work
from geneb.stores import open_store

NAMES = "abcd"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("stores") / "s.zarr"
    return open_store(write_store(path, {name: random_task(rows=20) for name in NAMES}))


@pytest.fixture
def works():
    return [Work(0, name, choose_protocol(), 20, 20, 6, 2) for name in NAMES]


@pytest.mark.parametrize(("ahead", "most"), [(True, 2), (False, 1)])
def test_at_most_two_tasks_are_in_memory(store, works, monkeypatch, ahead, most):
    """The one that is fitted and the next; only the one where none is loaded ahead."""
    alive = weakref.WeakSet()
    loads, seen = [], []
    honest = execute.load_task

    class Arrays:
        """Can be referred to weakly in a set, as a dataclass that holds arrays cannot."""

    def load(store, task_id):
        honest(store, task_id)
        arrays = Arrays()
        alive.add(arrays)
        loads.append(len(alive))
        return arrays

    monkeypatch.setattr(execute, "load_task", load)
    gc.disable()
    try:
        for work, arrays in load_in_turn(iter(works), [store], ahead=ahead):
            seen.append(work.task_id)
            del arrays
    finally:
        gc.enable()
    assert seen == list(NAMES)
    assert len(loads) == len(NAMES)
    assert max(loads) <= most


def test_the_next_is_loaded_before_it_is_asked_for(store, works, monkeypatch):
    """While the caller still has the one before."""
    begun = threading.Event()
    honest = execute.load_task

    def load(store, task_id):
        if task_id == "b":
            begun.set()
        return honest(store, task_id)

    monkeypatch.setattr(execute, "load_task", load)
    loaded = load_in_turn(iter(works), [store])
    assert next(loaded)[0].task_id == "a"
    assert begun.wait(timeout=60)
    loaded.close()


def test_an_error_belongs_to_its_task(store, works):
    """It comes in the place of the arrays; the others are loaded."""
    lost = Work(0, "nowhere", choose_protocol(), 20, 20, 6, 2)
    given = iter([works[0], lost, works[1]])
    found = {work.task_id: arrays for work, arrays in load_in_turn(given, [store])}
    assert list(found) == ["a", "nowhere", "b"]
    assert isinstance(found["nowhere"], GenebError)
    assert found["b"].train.shape == (20, 6)

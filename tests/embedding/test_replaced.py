"""Tasks that are replaced, by this process or by another one while this one is at work."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.small_tasks import blocks_of, demo_rows, write_small_tasks, write_task

import geneb
from geneb.errors import WorkError
from geneb.stores.layout import task_path
from geneb.stores.verify import verify_store
from geneb.stores.zarr_store import Writer
from geneb.tasks.read import scan_task


@pytest.fixture
def data(demo_data, tmp_path) -> Path:
    """Tasks ``first`` and ``second`` with the same train rows, in another order."""
    folder = tmp_path / "data"
    folder.mkdir()
    rows = demo_rows(demo_data, "demo_splice_junctions")[:40]
    train = [(text, label, "train") for text, label, _ in rows[:30]]
    test = [(text, label, "test") for text, label, _ in rows[30:]]
    write_task(folder / "first.csv", train + test)
    write_task(folder / "second.csv", train[::-1] + test)
    return folder


@pytest.fixture
def store(data, tmp_path) -> Path:
    """A store that holds ``first``."""
    geneb.embed("kmer3", data=data, store=tmp_path / "k.zarr", tasks=["first"])
    return tmp_path / "k.zarr"


def when_asked(number: int, act: Callable[[], object]) -> Callable[[], bool]:
    """Act at the question of this number, counted from 0; never say yes."""
    asked = itertools.count()

    def stop() -> bool:
        if next(asked) == number:
            act()
        return False

    return stop


def in_another_order(data: Path, store: Path) -> None:
    other = data.parent / "other"
    other.mkdir()
    header, *lines = (data / "first.csv").read_text(encoding="utf-8").splitlines()
    (other / "first.csv").write_text("\n".join([header, *lines[::-1]]), encoding="utf-8")
    geneb.embed("kmer3", data=other, store=store, tasks=["first"], replace_tasks=["first"])


def with_fewer_rows(data: Path, store: Path) -> None:
    other = data.parent / "other"
    other.mkdir()
    lines = (data / "first.csv").read_text(encoding="utf-8").splitlines()
    (other / "first.csv").write_text("\n".join([*lines[:3], *lines[-3:]]), encoding="utf-8")
    geneb.embed("kmer3", data=other, store=store, tasks=["first"], replace_tasks=["first"])


def dropped(data: Path, store: Path) -> None:
    del data
    with Writer(store) as writer:
        writer.open(writer.store.fingerprint)
        writer.drop_task("first")


def begun_anew(data: Path, store: Path) -> None:
    rows = scan_task(data / "first.csv")
    with Writer(store) as writer:
        writer.open(writer.store.fingerprint)
        writer.drop_task("first")
        splits = {name: (entry.row_ids, entry.labels) for name, entry in rows.splits.items()}
        writer.create_task("first", splits)


@pytest.mark.parametrize("change", [in_another_order, with_fewer_rows, dropped, begun_anew])
@pytest.mark.parametrize("small", [True, False])
def test_rows_are_not_copied_from_a_task_that_was_replaced(data, store, change, small):
    """By position would be another sequence's vector: the run fails, and can be repeated."""
    with blocks_of(2 << 10 if small else 16 << 20):
        if small:
            geneb.embed("kmer3", data=data, store=store, tasks=["first"], replace_tasks=["first"])
        change_it = when_asked(0, lambda: change(data, store))
        with pytest.raises(WorkError, match="changed while the run was under way") as caught:
            geneb.embed("kmer3", data=data, store=store, tasks=["second"], stop=change_it)
        assert "task first" in caught.value.where
        assert "same command again" in caught.value.fix

        geneb.embed("kmer3", data=data, store=store, tasks=["second"])

        geneb.embed("kmer3", data=data, store=data.parent / "alone.zarr", tasks=["second"])
        for split in ("train", "test"):
            np.testing.assert_array_equal(
                geneb.open_store(data.parent / "alone.zarr").task("second").embeddings(split),
                geneb.open_store(store).task("second").embeddings(split),
            )


def test_rows_are_copied_from_a_task_that_was_replaced_by_the_same(data, store):
    """What counts is which rows lie there."""

    def again() -> None:
        geneb.embed("kmer3", data=data, store=store, tasks=["first"], replace_tasks=["first"])

    summary = geneb.embed(
        "kmer3", data=data, store=store, tasks=["second"], stop=when_asked(0, again)
    )

    assert summary.rows_copied == 40
    assert verify_store(store).holds


def test_what_another_process_has_just_replaced_is_kept(data, store):
    """Of several that are given the same ``--replace-task``, one does it."""
    options = {"data": data, "store": store, "tasks": ["first"], "replace_tasks": ["first"]}
    place = store / task_path("first")
    seen = []

    def other() -> None:
        assert geneb.embed("kmer3", **options).embedded == ["first"]
        seen.append(place.stat().st_ino)

    summary = geneb.embed("kmer3", stop=when_asked(0, other), **options)

    assert (summary.complete, summary.embedded) == (["first"], [])
    assert seen == [place.stat().st_ino]
    assert geneb.embed("kmer3", **options).embedded == ["first"]


def test_a_replacement_that_was_stopped_is_resumed(demo_data, tmp_path):
    """The same command again goes on with what was begun; no block is computed twice."""
    data = write_small_tasks(demo_data, tmp_path / "data")
    options = {"data": data, "store": tmp_path / "k.zarr", "tasks": ["mixed"]}
    with blocks_of(2 << 10):
        whole = geneb.embed("kmer3", **options).blocks
        # Asked before the task, and before each block.
        asked = itertools.count()
        stopped = geneb.embed(
            "kmer3", replace_tasks=["mixed"], stop=lambda: next(asked) == 3, **options
        )
        resumed = geneb.embed("kmer3", replace_tasks=["mixed"], **options)
        assert verify_store(tmp_path / "k.zarr").holds

    assert stopped.stopped
    assert (stopped.blocks, resumed.blocks) == (2, whole - 2)


def test_a_beginning_of_something_else_is_dropped(data, store):
    """Other labels of the same rows are another task."""
    options = {"data": data, "store": store, "tasks": ["first"], "replace_tasks": ["first"]}
    asked = itertools.count()
    geneb.embed("kmer3", stop=lambda: next(asked) == 2, **options)
    assert geneb.open_store(store).incomplete() == ["first"]
    text = (data / "first.csv").read_text(encoding="utf-8")
    header, first, *rest = text.splitlines()
    sequence, label, split = first.split(",")
    other = "1" if label == "0" else "0"
    changed = f"{sequence},{other},{split}"
    (data / "first.csv").write_text("\n".join([header, changed, *rest]), encoding="utf-8")

    assert geneb.embed("kmer3", **options).embedded == ["first"]

    labels = geneb.open_store(store).task("first").labels("train")
    np.testing.assert_array_equal(scan_task(data / "first.csv").splits["train"].labels, labels)

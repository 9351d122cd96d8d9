"""Eight processes at once on one new store: nothing is lost, nothing is written twice."""

from __future__ import annotations

import numpy as np
import pytest
from support.fork_server import Trouble
from support.small_tasks import beside, content, differing

from geneb.stores import open_store
from geneb.stores.verify import verify_store

PROCESSES = 8
SMALL_BLOCKS = Trouble(block_bytes=8 << 10)


@pytest.fixture
def embed(server, small_data):
    """Arguments of the command that embeds tasks into a store."""

    def command(store, *tasks):
        chosen = [word for task in tasks for word in ("--tasks", task)] or ["--available"]
        return ["embed", "--model", "kmer4", "--data", small_data, "--store", store, *chosen]

    return command


def test_all_do_the_same(server, embed, tmp_path):
    """All end well, the store is sealed, and it is that of a single process."""
    server.run(*embed(tmp_path / "single.zarr"), trouble=SMALL_BLOCKS).check()
    store = tmp_path / "together.zarr"

    runs = server.run_all([embed(store)] * PROCESSES, SMALL_BLOCKS)

    assert [run.err for run in runs if run.code != 0] == []
    verified = server.run("store", "verify", store, trouble=SMALL_BLOCKS).check()
    assert "stray" not in verified.err
    assert open_store(store).sealed
    assert differing(content(tmp_path / "single.zarr"), content(store)) == []
    assert beside(store) == []


def test_no_block_is_written_twice(server, embed, tmp_path):
    """Each block file is put in its place once, by one of the eight."""
    runs = server.run_all([embed(tmp_path / "together.zarr")] * PROCESSES, SMALL_BLOCKS)

    placed = [
        change.partition(" ")[2]
        for run in runs
        for change in run.changes
        if change.startswith("os.rename") and "/tasks/" in change and "/embeddings/c." in change
    ]
    written = [name for name in content(tmp_path / "together.zarr") if "/embeddings/c." in name]
    assert len(placed) == len(set(placed)) == len([n for n in written if n.startswith("tasks/")])


def test_each_does_some_of_the_tasks(server, embed, tmp_path):
    """Subsets that overlap, in every order of arrival: the union is there, and it verifies."""
    subsets = [
        ("mixed",), ("shared",), ("three",), ("mixed", "shared"), ("shared", "three"),
        ("mixed", "three"), ("mixed", "shared", "three"), ("three",),
    ]  # fmt: skip
    single, store = tmp_path / "single.zarr", tmp_path / "together.zarr"
    server.run(*embed(single)).check()

    runs = server.run_all([embed(store, *subset) for subset in subsets])

    assert [run.err for run in runs if run.code != 0] == []
    assert verify_store(store).holds
    expected, found = open_store(single), open_store(store)
    assert found.sealed
    assert expected.task_ids() == found.task_ids()
    for task in found.task_ids():
        for split in found.task(task).splits:
            np.testing.assert_array_equal(
                expected.task(task).embeddings(split), found.task(task).embeddings(split)
            )

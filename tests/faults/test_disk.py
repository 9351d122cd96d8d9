"""A full disk and a read-only folder: one clear message, nothing half-written, resumable."""

from __future__ import annotations

import pytest
from support.command import Outcome, check_mistake
from support.fork_server import Trouble
from support.small_tasks import content, differing

from geneb.stores import open_store

# With vectors of 64 numbers the canary takes 4 KiB and a block up to 12; run records and manifests
# take less than 8, the consolidated metadata of three tasks more than 14.
CREATING, BLOCKS, SEALING = 1 << 10, 8 << 10, 14 << 10


@pytest.fixture
def run(server, small_data):
    """Embed three-letter words, and meet some trouble."""

    def embed(store, **trouble) -> Outcome:
        args = ["embed", "--model", "kmer3", "--data", small_data, "--available", "--store", store]
        run = server.run(*args, trouble=Trouble(**trouble))
        return Outcome(run.code, run.out, run.err)

    return embed


@pytest.mark.parametrize("limit", [CREATING, BLOCKS, SEALING])
def test_a_full_disk_is_told_and_resumed(run, tmp_path, limit):
    """Whatever could not be written, the message names it, and the next run completes it."""
    store = tmp_path / "full.zarr"

    full = run(store, file_size_limit=limit)

    if limit == CREATING:  # nothing was started
        check_mistake(full, "File too large", "full.zarr", "cannot be made", code=2)
    else:
        check_mistake(full, "File too large", "full.zarr", "it resumes", code=1)
    assert full.err.count("geneb: ") == 1
    assert full.out == ""
    if limit == CREATING:
        assert not store.exists()
    else:
        before = content(store)
        assert not open_store(store).sealed
    run(tmp_path / "whole.zarr")
    whole = content(tmp_path / "whole.zarr")
    if limit != CREATING:
        # What is in its place is whole; a `.partial` was never put there.
        kept = {name for name in before if not name.endswith((".partial", "zarr.json"))}
        assert all(before[name] == whole[name] for name in kept)

    resumed = run(store)

    assert resumed.code == 0, resumed.err
    assert open_store(store).sealed
    assert differing(whole, content(store)) == []


def test_a_read_only_folder_is_told(run, tmp_path):
    """Nothing is written into it, and the run can be repeated once it is writable."""
    folder = tmp_path / "locked"
    folder.mkdir()
    folder.chmod(0o555)

    refused = run(folder / "kmer.zarr", heed_permissions=True)

    check_mistake(refused, "Permission denied", "locked", "another --store", code=2)
    assert list(folder.iterdir()) == []
    folder.chmod(0o755)
    assert run(folder / "kmer.zarr").code == 0


def test_a_read_only_task_is_told(run, tmp_path):
    """A store that somebody else made, and that is begun: it stays as it is."""
    store = tmp_path / "theirs.zarr"
    assert run(store, file_size_limit=BLOCKS).code == 1
    split = store / "tasks" / "mixed" / "train" / "embeddings"
    split.chmod(0o555)
    before = content(store)

    refused = run(store, heed_permissions=True)

    check_mistake(refused, "Permission denied", "mixed", code=1)
    assert differing(before, content(store)) == []
    split.chmod(0o755)
    assert run(store).code == 0
    assert open_store(store).sealed

"""A run over all layers is killed between any two changes to the disk, and resumed."""

from __future__ import annotations

import shutil

import pytest
from support.fork_server import KILLED, Trouble
from support.layered_extractors import LAYERS
from support.small_tasks import blocks_of, content, differing, write_small_tasks

from geneb.stores import open_store
from geneb.stores.verify import verify_store

BLOCK_BYTES = 300
KILLS = 6
NAMES = [f"layer_{number:02}.zarr" for number in range(LAYERS)]


@pytest.fixture(scope="module")
def embed(root, server, demo_data, tmp_path_factory):
    """Embed every layer of one task, in a process that may be killed."""
    data = write_small_tasks(demo_data, tmp_path_factory.mktemp("data"), rows=16)
    file = root / "tests" / "support" / "layered_extractors.py"

    def run(folder, **moment):
        return server.run(
            "embed", "--extractor", f"{file}:Layered", "--data", data, "--tasks", "mixed",
            "--layer", "all", "--store", folder,
            trouble=Trouble(block_bytes=BLOCK_BYTES, **moment),
        )  # fmt: skip

    return run


def test_killed_and_resumed_every_layer_is_the_same(embed, tmp_path):
    """Whichever layers were ahead of the others: no file tells of it in the end."""
    whole = embed(tmp_path / "whole").check()
    changes = len(whole.changes)

    for kill in range(KILLS):
        place = tmp_path / "killed"
        shutil.rmtree(place, ignore_errors=True)
        killed = embed(place, kill_at=1 + (2 * kill + 1) * changes // (2 * KILLS))
        assert killed.code == KILLED, killed.err
        embed(place).check()
        for name in NAMES:
            assert open_store(place / name).sealed
            assert differing(content(tmp_path / "whole" / name), content(place / name)) == []
            with blocks_of(BLOCK_BYTES):
                assert verify_store(place / name).holds

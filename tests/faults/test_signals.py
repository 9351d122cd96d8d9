"""SIGINT and SIGTERM end a run in good order, and a second one ends it at once.

The extractor sends the signal itself, in a batch whose number is given: no moment is guessed.
"""

from __future__ import annotations

import signal

import pytest
from support.command import geneb
from support.small_tasks import content, differing

from geneb.stores import open_store


@pytest.fixture
def embed(root, small_data):
    """Embed with an extractor that sends signals to its own process."""
    extractor = f"{root / 'tests' / 'support' / 'odd_extractors.py'}:Signalling"

    def run(store, *args, signals="", at=-100):
        return geneb(
            "embed", "--extractor", extractor, "--data", small_data, "--available",
            "--store", store, *args,
            env={"SIGNAL_AT": str(at), "SIGNALS": signals},
            fresh=bool(signals),
        )  # fmt: skip

    return run


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_block_at_hand_is_finished(embed, tmp_path, number):
    """The block is written, no other is begun, and the same command goes on from there."""
    store = tmp_path / "stopped.zarr"

    stopped = embed(store, "--json", signals=str(int(number)), at=1)

    assert stopped.code == 128 + number
    assert "stopping once the block at hand is written; once more stops at once" in stopped.err
    assert "stopped; run the same command again to resume" in stopped.err
    assert "Traceback" not in stopped.err
    assert stopped.json["stopped"] is True
    assert stopped.json["blocks"] == 1
    assert open_store(store).incomplete() == ["mixed"]
    assert not open_store(store).sealed
    assert [record.outcome for record in open_store(store).runs()] == ["stopped"]
    blocks = [name for name in content(store) if "tasks/" in name and "/embeddings/c." in name]
    assert blocks == ["tasks/mixed/train/embeddings/c.0.0"]

    resumed = embed(store, "--json")
    whole = embed(tmp_path / "whole.zarr")

    assert (resumed.code, whole.code) == (0, 0)
    assert resumed.json["blocks"] == 5
    assert open_store(store).sealed
    assert differing(content(tmp_path / "whole.zarr"), content(store)) == []


def test_a_second_signal_ends_the_run_at_once(embed, tmp_path):
    """Nobody has to wait for a long block; what was complete stays, and the rest is resumed."""
    store = tmp_path / "ended.zarr"

    ended = embed(store, signals="15 15", at=1)

    assert ended.code == -signal.SIGTERM
    blocks = [name for name in content(store) if "tasks/" in name and "/embeddings/c." in name]
    assert blocks == []
    assert embed(store).code == 0
    assert open_store(store).sealed

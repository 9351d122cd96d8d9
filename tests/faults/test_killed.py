"""``geneb embed`` is killed, and resumed: the store must be as if nothing had happened.

What is compared is every file below ``tasks/`` and ``canary/``, byte for byte: all blocks with
their padding, labels, row ids, metadata and manifests. Root and runs hold random run ids.
"""

from __future__ import annotations

import random
import re
import shutil
from pathlib import Path

import pytest
from support.fork_server import KILLED, ForkServer, Trouble
from support.small_tasks import beside, blocks_of, content, differing, write_small_tasks

from geneb.base.files import PARTIAL
from geneb.stores import open_store
from geneb.stores.verify import verify_store

KILLS = 20
KILLS_A_STORE = 5
SEED = 20260604


class Harness:
    """Embeds the small tasks again and again with one extractor.

    Parameters
    ----------
    block_bytes
        Gives several blocks a split.
    """

    def __init__(
        self, server: ForkServer, model: list[object], data: Path, folder: Path, block_bytes: int
    ) -> None:
        self.server = server
        self.store = folder / "killed.zarr"
        self._args = ["embed", *model, "--data", data, "--available", "--store"]
        self._block_bytes = block_bytes
        whole = folder / "whole.zarr"
        self.reference = server.run(*self._args, whole, trouble=self._trouble()).check()
        self._expected = content(whole)
        assert sum("/embeddings/c." in name for name in self._expected) >= 6

    def _trouble(self, **kill: float) -> Trouble:
        return Trouble(block_bytes=self._block_bytes, **kill)

    def clear(self) -> None:
        """Start with no store, and with nothing that killed runs left beside it."""
        for name in [self.store.name, *beside(self.store)]:
            shutil.rmtree(self.store.parent / name, ignore_errors=True)

    def kill(self, **moment: float) -> bool:
        """Run until the moment; say whether there was somebody to kill."""
        run = self.server.run(*self._args, self.store, trouble=self._trouble(**moment))
        assert run.code in (0, KILLED), f"killed at {moment}: {run.err}"
        return run.code == KILLED

    def check_resumed(self, history: object) -> None:
        """Resume to the end; nothing must tell that it was interrupted."""
        run = self.server.run(*self._args, self.store, trouble=self._trouble())
        assert run.code == 0, f"resumed after {history}: {run.err}"
        with blocks_of(self._block_bytes):
            verified = verify_store(self.store)
        assert verified.faults == [], f"after {history}"
        assert verified.strays == [], f"after {history}"
        assert open_store(self.store).sealed, f"after {history}"
        unlike = differing(self._expected, content(self.store))
        assert not unlike, f"after {history}: {unlike}"
        assert beside(self.store) == [], f"after {history}"


@pytest.fixture
def data(demo_data: Path, tmp_path: Path) -> Path:
    """Three tasks that share rows, small enough to be embedded often."""
    return write_small_tasks(demo_data, tmp_path / "data", rows=40)


def kill_at_random_moments(harness: Harness, seed: str, wanted: int = KILLS) -> None:
    """Kill at moments over the whole run; each store several times before it is completed."""
    moments = random.Random(f"{SEED} {seed}")
    kills = 0
    while kills < wanted:
        harness.clear()
        history: list[float] = []
        killed = True
        while killed and len(history) < KILLS_A_STORE:
            history.append(moments.uniform(0.01, 1.0) * harness.reference.seconds)
            killed = harness.kill(kill_after=history[-1])
            kills += killed
        harness.check_resumed(f"kills after {history} seconds")


def test_kmers_killed_at_random(server, data, tmp_path):
    """Counting k-mers, where writing is most of the time."""
    harness = Harness(server, ["--model", "kmer4"], data, tmp_path, 12 << 10)

    kill_at_random_moments(harness, "k-mers")


def test_random_convolutions_killed_at_random(server, data, tmp_path, root):
    """A published-style extractor file, where computing is."""
    file = f"{root / 'tools' / 'measure' / 'random_convolution.py'}:RandomConvolution"
    # A device that is given is not looked for, which would import torch in each run.
    model = ["--extractor", file, "--device", "cpu"]
    harness = Harness(server, model, data, tmp_path, 36 << 10)

    kill_at_random_moments(harness, "random convolutions")


def test_a_torch_encoder_killed_at_random(demo_data, tmp_path, root):
    """Masked attention over mixed lengths: the bits depend on how rows are batched and padded."""
    pytest.importorskip("torch")
    file = f"{root / 'tests' / 'support' / 'tiny_torch_encoder.py'}:TinyTorchEncoder"
    data = write_small_tasks(demo_data, tmp_path / "data", rows=24)
    with ForkServer(tmp_path, "torch") as server:
        harness = Harness(server, ["--extractor", file], data, tmp_path, 2 << 10)

        kill_at_random_moments(harness, "torch")


def kind_of_change(change: str) -> str:
    """What a change to the file system is about, without ids, names and numbers."""
    event, _, path = change.partition(" ")
    place = Path(path)
    if PARTIAL in str(place.parent):
        return f"{event} within what is being built"
    parts = [re.sub("[0-9a-f]{8,}(-[0-9a-f]+)*", "*", part) for part in place.parts[-2:]]
    text = f"{event} {'/'.join(parts)}"
    return re.sub("mixed|shared|three", "TASK", re.sub(r"c\.[0-9]+", "c.N", text))


def test_killed_before_every_kind_of_change(server, demo_data, tmp_path):
    """Before the last of each: a file begun, put in its place or removed, a folder removed."""
    data = write_small_tasks(demo_data, tmp_path / "data", rows=30)
    (data / "three.csv").unlink()  # two tasks make every kind of change
    harness = Harness(server, ["--model", "kmer4"], data, tmp_path, 16 << 10)
    changes = harness.reference.changes
    last = {
        kind_of_change(change): number
        for number, change in enumerate(changes, start=1)
        if not change.startswith("os.mkdir")  # many find the folder made; none commits anything
    }
    assert len(last) > 10

    for kind, number in last.items():
        harness.clear()
        assert harness.kill(kill_at=number)
        harness.check_resumed(f"a kill before change {number}, {kind}")

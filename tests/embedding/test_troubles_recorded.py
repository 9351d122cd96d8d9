"""What a run met is recorded whatever became of it, and what fails in a thread ends it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.small_tasks import blocks_of, content, differing, write_small_tasks

import geneb
from geneb.embedding.blocks import TaskWorker
from geneb.embedding.checkup import check_model
from geneb.errors import WorkError
from geneb.stores.zarr_store import Writer

TASKS = ["mixed", "three"]


@pytest.fixture(scope="module")
def data(demo_data, tmp_path_factory) -> Path:
    return write_small_tasks(demo_data, tmp_path_factory.mktemp("data"), rows=30)


@pytest.fixture(autouse=True)
def many_blocks():
    with blocks_of(200):
        yield


@pytest.fixture
def mine(root, tmp_path):
    """Write an extractor with layers that has something more to it."""

    def write(body: str) -> str:
        file = tmp_path / "mine.py"
        file.write_text(
            f"import sys\nsys.path.append({str(root / 'tests')!r})\n"
            "from support.layered_extractors import *\n"
            f"class Mine(Overflowing):\n{body}",
            encoding="utf-8",
        )
        return f"{file}:Mine"

    return write


LITTLE_MEMORY = """
    def forward(self, batch, layers):
        if 3 <= len(batch.items) <= 15:
            raise MemoryError
        return super().forward(batch, layers)
"""
ALWAYS_OVERFLOWING = """
    def forward(self, batch, layers):
        found = super().forward(batch, layers)
        for vectors in found.values():
            vectors[:, 0] = np.inf
        return found
"""


class Killed(BaseException):
    """Stands for a process that is gone between two changes to the disk."""


@pytest.mark.parametrize(
    ("body", "field"),
    [(LITTLE_MEMORY, "out_of_memory_splits"), (ALWAYS_OVERFLOWING, "float32_retries")],
)
def test_a_killed_run_has_told_what_the_blocks_that_stay_met(
    mine, data, tmp_path, monkeypatch, body, field
):
    """Halved batches and rows in float32 are recorded before their block is written."""
    spec = mine(body)
    store = tmp_path / "s.zarr"
    options = {"data": data, "tasks": TASKS, "layer": "2"}
    whole = geneb.embed(spec, store=tmp_path / "whole.zarr", **options)
    written = Writer.write_block

    def killed(self, *args):
        written(self, *args)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Writer, "write_block", killed)
        with pytest.raises(Killed):
            geneb.embed(spec, store=store, **options)

    (record,) = geneb.open_store(store).runs()
    assert record.outcome is None
    assert getattr(record, field) > 0
    geneb.embed(spec, store=store, **options)
    told = sum(getattr(run, field) for run in geneb.open_store(store).runs())
    assert told >= getattr(whole, field) > 0
    assert differing(content(tmp_path / "whole.zarr"), content(store)) == []


def test_what_the_canary_met_is_no_rows(mine, data, tmp_path):
    """A run that finds its store complete has run no row again."""
    spec = mine(ALWAYS_OVERFLOWING)
    options = {"data": data, "tasks": ["three"], "store": tmp_path / "s.zarr"}
    first = geneb.embed(spec, **options)

    assert first.float32_retries == first.rows_computed
    assert geneb.embed(spec, **options).float32_retries == 0
    finite = check_model(spec).findings[0]
    assert finite.holds
    assert "16 sequences run again in float32" in finite.found


@pytest.mark.parametrize("method", ["prepare", "write"])
def test_a_thread_that_fails_ends_the_run(root, data, tmp_path, monkeypatch, method):
    """With its own error, whichever thread it is; what was complete stays, the rest is made."""
    spec = f"{root / 'tests' / 'support' / 'layered_extractors.py'}:Layered"
    store = tmp_path / "s.zarr"
    geneb.embed(spec, data=data, tasks=TASKS, store=tmp_path / "whole.zarr")
    plain = getattr(TaskWorker, method)

    def failing(self, job, *args):
        job_ = getattr(job, "job", job)
        if (job_.task, job_.block) == ("three", 1):
            raise WorkError("the thread has failed", found=method)
        return plain(self, job, *args)

    with monkeypatch.context() as patch:
        patch.setattr(TaskWorker, method, failing)
        with pytest.raises(WorkError, match="the thread has failed"):
            geneb.embed(spec, data=data, tasks=TASKS, store=store)

    opened = geneb.open_store(store)
    assert (opened.task_ids(), opened.incomplete()) == (["mixed"], ["three"])
    assert geneb.embed(spec, data=data, tasks=TASKS, store=store).embedded == ["three"]
    assert differing(content(tmp_path / "whole.zarr"), content(store)) == []


def test_a_run_that_broke_off_says_that_it_failed(mine, data, tmp_path, monkeypatch):
    """A record without an outcome is that of a run that goes on or was killed."""
    written = Writer.write_block

    def full_disk(self, *args):
        written(self, *args)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Writer, "write_block", full_disk)
        with pytest.raises((OSError, WorkError)):
            geneb.embed("kmer3", data=data, tasks=TASKS, store=tmp_path / "s.zarr")

    (record,) = geneb.open_store(tmp_path / "s.zarr").runs()
    assert record.outcome == "failed"
    geneb.embed("kmer3", data=data, tasks=TASKS, store=tmp_path / "s.zarr")
    assert {run.outcome for run in geneb.open_store(tmp_path / "s.zarr").runs()} == {
        "failed",
        "finished",
    }

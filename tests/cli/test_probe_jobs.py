"""``geneb probe --jobs``."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from support.command import check_mistake, geneb
from support.small_stores import damage_block, random_task, write_store


@pytest.fixture
def stores(tmp_path) -> list[Path]:
    """Two models' stores, with tasks of different cost in no order."""
    rows = {"a": 20, "b": 60, "c": 40}
    tasks = {name: random_task(k, rows=rows[name], classes=2 + k) for k, name in enumerate(rows)}
    return [
        write_store(tmp_path / "one.zarr", tasks, model="one"),
        write_store(tmp_path / "two.zarr", {"b": tasks["b"]}, model="two"),
    ]


def results(out: Path) -> dict[str, list[dict[str, str]] | bytes]:
    """All that was written, without the seconds that fits took."""
    found = {}
    for path in sorted(out.rglob("*.*")):
        content = path.read_bytes()
        if path.suffix == ".csv":
            rows = list(csv.DictReader(io.StringIO(content.decode())))
            content = [{**row, "seconds": None} for row in rows]
        found[str(path.relative_to(out))] = content
    return found


def test_the_same_whatever_the_number_of_processes(stores, tmp_path):
    """Files to the bit, table, order, what fails; with one thread each in this environment."""
    damage_block(stores[0], "c")
    runs = {
        jobs: geneb("probe", *stores, "--out", tmp_path / str(jobs), "--jobs", jobs)
        for jobs in (1, 2)
    }

    for run in runs.values():
        check_mistake(run, "task c", "checksum", code=1)
    assert "44 fits of 4 tasks: up to" in runs[1].err
    assert "44 fits of 4 tasks in 2 of 2 processes: up to" in runs[2].err
    assert runs[1].out == runs[2].out
    written = results(tmp_path / "1")
    assert [name for name in written if name.endswith(".csv")] == [
        "one/tasks/a.csv", "one/tasks/b.csv", "two/tasks/b.csv",
    ]  # fmt: skip
    assert results(tmp_path / "2") == written


def test_a_number_of_jobs_that_means_nothing(stores, tmp_path):
    """A usage error."""
    for jobs in ("0", "-1", "many"):
        check_mistake(geneb("probe", stores[0], "--out", tmp_path / "o", "--jobs", jobs), "--jobs")


def test_each_example_has_a_line_of_its_own():
    """And no mark of how it was written, such as that which stops lines from being joined."""
    shown = geneb("probe", "--help").out
    assert "\n  geneb probe kmer.zarr --out results\n" in shown
    assert "\\b" not in shown

"""``geneb submission reproduce`` as a command: what is printed, written down, and its exit code."""

from __future__ import annotations

import json

import pytest
from support.command import check_mistake, geneb
from support.contributions import MODEL, TASKS, contribute, write_spec_tasks

from geneb.benchmark.spec import load_spec
from geneb.reporting.verification import read_record


@pytest.fixture(scope="module")
def data(tmp_path_factory, demo_data):
    """Three tasks under the benchmark's names."""
    return write_spec_tasks(demo_data, tmp_path_factory.mktemp("data"), TASKS, 30)


@pytest.fixture(scope="module")
def honest(tmp_path_factory, data):
    """A contribution that nobody touched."""
    return contribute(tmp_path_factory.mktemp("honest"), data, TASKS)


def reproduce(contribution, data, out, *more):
    return geneb(
        *("submission", "reproduce", contribution.submission, "--store", contribution.store),
        *("--data", data, "--tasks", TASKS[0], "--out", out, *more),
    )


def test_what_holds_is_written_down(honest, data, tmp_path):
    """Exit code 0, the level, and where the record is."""
    done = reproduce(honest, data, tmp_path)
    assert done.code == 0, done.err
    assert "scores-sampled" in done.out
    assert f"record: {tmp_path / MODEL}.json" in done.err
    assert list(read_record(tmp_path / f"{MODEL}.json").tasks) == [TASKS[0]]


def test_what_does_not_hold_is_listed(honest, data, tmp_path):
    """Exit code 1, the value, and no record."""
    spoilt = honest.copy(tmp_path / "spoilt")
    document = spoilt.document
    document["results"]["full"][TASKS[0]]["MCC"] += 0.1
    spoilt.rewrite(document)
    found = reproduce(spoilt, data, tmp_path / "out")
    check_mistake(found, f"full, {TASKS[0]}, MCC", "not what the probe gives", code=1)
    assert "none: see below" in found.out
    assert not (tmp_path / "out").exists()


def test_what_was_found_is_told_where_its_record_is_refused(honest, data, tmp_path):
    """A higher record of the same file stays; hours of probing are not lost without a word."""
    assert reproduce(honest, data, tmp_path).code == 0
    path = tmp_path / f"{MODEL}.json"
    value = json.loads(path.read_text(encoding="utf-8"))
    (task,) = value["tasks"].values()
    value |= {"level": "scores-verified", "tasks": dict.fromkeys(load_spec().task_ids, task)}
    path.write_text(json.dumps(value), encoding="utf-8")
    before = path.read_bytes()

    found = reproduce(honest, data, tmp_path, "--json")
    check_mistake(found, "a record of a higher level is there", code=1)
    assert (found.json["level"], found.json["record"]) == ("scores-sampled", None)
    assert path.read_bytes() == before

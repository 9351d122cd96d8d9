"""``geneb run``, and ``geneb submission reproduce`` of what it packs."""

from __future__ import annotations

import json

import pytest
from support.command import check_mistake, geneb
from support.contributions import MODEL, contribute, write_spec_tasks

from geneb.benchmark.spec import load_spec

TASKS = load_spec().task_ids[1:4]
ROWS = 40


@pytest.fixture(scope="module")
def data(tmp_path_factory, demo_data):
    """The second to fourth task of the benchmark."""
    return write_spec_tasks(demo_data, tmp_path_factory.mktemp("data"), TASKS, ROWS)


def run(data, out, *more, fresh=False):
    told = ("--model", MODEL, "--params", 16, "--data", data, "--out", out)
    return geneb("run", *told, *more, fresh=fresh)


def test_a_few_tasks(data, tmp_path):
    """The first of the benchmark whose CSVs are there; the file is partial, by name as well."""
    out = tmp_path / "out"
    done = run(data, out, "--limit", 2, fresh=True)
    assert done.code == 0, done.err
    assert done.out == f"{out / f'{MODEL}.partial.json'}\n"
    assert sorted(path.name for path in out.iterdir() if not path.name.startswith(".")) == [
        *(f"{MODEL}.partial.evidence.json", f"{MODEL}.partial.json", f"{MODEL}.zarr", "results"),
    ]
    document = json.loads((out / f"{MODEL}.partial.json").read_text(encoding="utf-8"))
    packed = {regime: list(tasks) for regime, tasks in document["results"].items()}
    assert packed == {regime: list(TASKS[:2]) for regime in load_spec().regimes}

    again = run(data, out, "--limit", 2)
    assert again.code == 0, again.err
    more = run(data, out, "--limit", 3, "--force")
    assert more.code == 0, more.err
    validated = geneb("submission", "validate", out / f"{MODEL}.partial.json")
    assert validated.code == 1


def test_mistakes_come_before_the_work(data, tmp_path):
    """Nothing is written for a submission that could not be packed in the end."""
    out = tmp_path / "out"
    check_mistake(
        geneb("run", "--model", MODEL, "--data", data, "--out", out, "--limit", 1), "--params"
    )
    everything = run(data, out)  # all hundred are asked for
    check_mistake(everything, "97", "--limit")
    assert "--tasks" not in everything.err
    check_mistake(run(tmp_path, out, "--limit", 1), "no such task CSVs")
    check_mistake(run(data, out, "--extractor", "x.py:Y"), "either --model")
    assert not (out / f"{MODEL}.zarr").exists()
    assert not (out / "results").exists()


def reproduce(contribution, data, out, *more):
    return geneb(
        *("submission", "reproduce", contribution.submission, "--store", contribution.store),
        *("--data", data, "--out", out, "--tasks", TASKS[0], *more),
    )


def test_reproduce(data, tmp_path):
    """A record where all holds; exit 1, the fault, and no record where it does not."""
    contribution = contribute(tmp_path / "made", data, TASKS)
    done = reproduce(contribution, data, tmp_path / "records")
    assert done.code == 0, done.err
    assert "scores-sampled" in done.out
    record = tmp_path / "records" / f"{MODEL}.json"
    assert json.loads(record.read_text(encoding="utf-8"))["level"] == "scores-sampled"

    document = contribution.document
    document["results"]["full"][TASKS[0]]["MCC"] += 1e-9
    contribution.rewrite(document)
    failed = reproduce(contribution, data, tmp_path / "none", "--json")
    check_mistake(failed, f"full, {TASKS[0]}, MCC", code=1)
    assert (failed.json["level"], failed.json["record"]) == (None, None)
    assert len(failed.json["differences"]) == 1
    assert not (tmp_path / "none").exists()

"""The scripts under tools/ that maintainers and workflows run."""

from __future__ import annotations

import json

import pytest
from support.command import geneb, run_script
from support.contributions import write_spec_tasks
from support.submissions import submission, write_submission

from geneb.benchmark.spec import load_spec

TASKS = load_spec().task_ids[:2]


def script(root, name, *args):
    return run_script(root / "tools" / name, *args)


def test_build_leaderboard_takes_the_command_s_options(root):
    """The committed tables hold."""
    done = script(root, "build_leaderboard.py", "--check")
    assert done.code == 0, done.err


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    """A submission, and the published runner's files with the same means."""
    folder = tmp_path_factory.mktemp("raw")
    document = submission("some-model", start=0.25)
    path = write_submission(folder, document)
    files = folder / "files"
    files.mkdir()
    for ending, regime in (("", "full"), ("_k-10", "10shot"), ("_k-1", "1shot")):
        for task in TASKS:
            scores = document["results"][regime][task]
            content = {
                name: {"mean": scores[metric], "std": 0.0}
                for name, metric in (("mcc", "MCC"), ("accuracy", "Acc"), ("f1_score", "F1"))
            }
            name = f"results_some-model_{task}_SomeExtractor{ending}.json"
            (files / name).write_text(json.dumps(content), encoding="utf-8")
    return path, files


def test_a_submission_against_the_published_runner_s_files(root, raw, tmp_path):
    """Within the tolerance, and not beyond it."""
    path, files = raw
    same = script(root, "smoke_test_geneb.py", "--submission", path, "--raw_dir", files)
    assert same.code == 0, same.out + same.err

    document = json.loads(path.read_text(encoding="utf-8"))
    document["results"]["1shot"][TASKS[1]]["F1"] += 0.001
    changed = write_submission(tmp_path, document)
    options = ("--submission", changed, "--raw_dir", files)
    other = script(root, "smoke_test_geneb.py", *options)
    assert other.code == 1
    assert f"1shot, {TASKS[1]}, F1" in other.out
    assert script(root, "smoke_test_geneb.py", *options, "--tolerance", "0.01").code == 0

    del document["results"]["1shot"][TASKS[1]]
    write_submission(tmp_path, document)
    missing = script(root, "smoke_test_geneb.py", *options)
    assert missing.code == 1
    assert "no score to compare with" in missing.out


def test_an_end_to_end_run_against_an_earlier_one(root, demo_data, tmp_path):
    """The results folder of `geneb run` is what it is compared with."""
    data = write_spec_tasks(demo_data, tmp_path / "data", TASKS, 30)
    done = geneb(
        *("run", "-q", "--model", "kmer4", "--params", "256", "--limit", "1"),
        *("--data", data, "--out", tmp_path / "out"),
    )
    assert done.code == 0, done.err
    reference = tmp_path / "out" / "results" / "kmer4"
    options = ("--data_dir", data, "--reference", reference)
    same = script(root, "smoke_test_geneb.py", *options, "--limit", 1)
    assert same.code == 0, same.out + same.err
    more = script(root, "smoke_test_geneb.py", *options, "--limit", 2)
    assert more.code == 1
    assert TASKS[1] in more.out


@pytest.mark.parametrize("options", [(), ("--submission", "x.json")])
def test_arguments_that_do_not_belong_together(root, options):
    """Two ways to use it, one at a time."""
    done = script(root, "smoke_test_geneb.py", *options)
    assert done.code == 2
    assert "Traceback" not in done.err

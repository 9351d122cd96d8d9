"""``geneb probe`` as a command."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from support.command import check_mistake, geneb
from support.plain_loop import plain_loop
from support.small_stores import kmer_frequencies, random_task, write_store

from geneb.base.env import cores
from geneb.cli.probe import _values


@pytest.fixture(scope="module")
def task(demo_data):
    return kmer_frequencies(demo_data / "demo_splice_junctions.csv", 2, rows=200)


@pytest.fixture
def store(tmp_path, task):
    return write_store(tmp_path / "small.zarr", {"demo_splice_junctions": task})


def test_json_holds_what_the_plain_loop_finds(store, task, tmp_path):
    """On stdout nothing but JSON; status on stderr; results where they were asked for."""
    done = geneb("probe", store, "--out", tmp_path / "out", "--json", fresh=True)
    assert done.code == 0, done.err
    [model] = done.json["models"]
    expected = plain_loop(*task.all())
    assert model["results"] == {
        regime: {"demo_splice_junctions": values} for regime, values in expected.items()
    }
    assert (model["model_id"], model["protocol"], model["fits"]) == (
        "small-model",
        "geneb-lr-1",
        11,
    )
    assert "fits: 11, all converged" in done.err
    assert f"results: {tmp_path / 'out/small-model'}" in done.err
    written = json.loads((tmp_path / "out/small-model/results.json").read_text())
    assert written["results"] == model["results"]


def test_the_table_tells_one_fit_from_a_spread(store, tmp_path):
    """No made-up spread where there was one fit; the second run fits nothing and shows the same."""
    args = ("probe", store, "--out", tmp_path / "out")
    first = geneb(*args)
    assert first.code == 0, first.err
    lines = first.out.splitlines()
    assert lines[0].split() == ["task", "regime", "MCC", "Acc", "F1", "MCC", "over", "seeds"]
    assert [line.split()[1] for line in lines[1:]] == ["full", "10shot", "1shot"]
    assert lines[1].rstrip().endswith("one fit")
    assert all("sd 0." in line for line in lines[2:])
    again = geneb(*args, "--quiet")
    assert (again.code, again.out, again.err) == (0, first.out, "")


def test_regimes_seeds_and_several_stores(store, tmp_path):
    """Only what was asked for; other seeds show in the protocol's name."""
    other = write_store(tmp_path / "other.zarr", {"own": random_task()}, model="other-model")
    args = ("--out", tmp_path / "out", "--regimes", "1shot,full", "--seeds", "3,4")
    done = geneb("probe", store, other, *args, "--json")
    assert done.code == 0, done.err
    assert [one["model_id"] for one in done.json["models"]] == ["small-model", "other-model"]
    assert {one["protocol"] for one in done.json["models"]} == {"geneb-lr-1+seeds-3-4"}
    assert all(list(one["results"]) == ["full", "1shot"] for one in done.json["models"])
    shown = geneb("probe", store, other, *args)
    assert shown.out.split()[:2] == ["model", "task"]


def test_a_task_that_fails_is_listed_and_the_others_go_on(tmp_path):
    """Exit code 1, one message, the other task's results."""
    broken = random_task()
    broken.train_labels[:] = 0
    store = write_store(tmp_path / "s.zarr", {"good": random_task(), "bad": broken})
    done = geneb("probe", store, "--out", tmp_path / "out", "--json")
    check_mistake(done, "task bad", "one class only", code=1)
    [model] = done.json["models"]
    assert list(model["results"]["full"]) == ["good"]
    assert [fault["where"] for fault in model["failed"]] == [f"{store}, task bad"]
    assert (tmp_path / "out/small-model/tasks/good.csv").exists()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--regimes", "5shots"], ["full,10shot,5%", "5shots"]),
        (["--regimes", ""], ["not a regime"]),
        (["--seeds", "one"], ["not a list of integers"]),
        (["--seeds", "1,-1"], ["not a list of integers"]),
        (["--seeds", "1,1"], ["seeds cannot be used"]),
        (["--protocol", "other"], ["no such protocol", "geneb-lr-1"]),
        (["--backend", "jax"], ["no such backend", "sklearn"]),
        (["--tasks", "nothing"], ["no task is meant"]),
    ],
)
def test_wrong_options_start_nothing(store, tmp_path, args, words):
    """Exit code 2, one message, nothing written."""
    check_mistake(geneb("probe", store, "--out", tmp_path / "out", *args), *words)
    assert not (tmp_path / "out").exists()


def test_no_store(tmp_path):
    """Neither nothing nor an empty folder is one."""
    out = ("--out", tmp_path / "out")
    check_mistake(geneb("probe", tmp_path / "nothing", *out), "there is no embedding store")
    check_mistake(geneb("probe", tmp_path, *out), "not an embedding store")
    check_mistake(geneb("probe", *out), "STORE")


def test_other_results_in_the_folder_are_not_touched(store, tmp_path):
    """Exit code 2, with what differs."""
    out = ("--out", tmp_path / "out", "--regimes", "1shot")
    assert geneb("probe", store, *out).code == 0
    check_mistake(geneb("probe", store, *out, "--seeds", "1,2"), "another run", "13", "[1, 2]")


def test_tasks_without_labels_are_no_failure(tmp_path):
    """Left out with a word on stderr; asked for, they are a mistake."""
    bare = random_task()
    bare.train_labels = bare.test_labels = None
    store = write_store(tmp_path / "s.zarr", {"good": random_task(), "bare": bare})
    args = ("probe", store, "--out", tmp_path / "out", "--regimes", "full")
    done = geneb(*args)
    assert done.code == 0, done.err
    assert "left out, because they have no labels: bare" in done.err
    check_mistake(geneb(*args, "--tasks", "bare"), "without labels", "bare", "--tasks")


def test_an_out_that_cannot_be_written_to(store, tmp_path):
    """Nothing was started: exit code 2."""
    (tmp_path / "file").write_text("mine")
    for out in (tmp_path / "file", tmp_path / "file/below"):
        check_mistake(geneb("probe", store, "--out", out), "cannot be written", "--out")


@pytest.mark.skipif(cores() < 2, reason="one core has one thread")
def test_another_number_of_threads_and_some_tasks(tmp_path):
    """Refused, with the difference and the tasks that would drop out of results.json."""
    store = write_store(tmp_path / "s.zarr", {"one": random_task(), "two": random_task(1)})
    args = ("probe", store, "--out", tmp_path / "out", "--regimes", "full")
    first = geneb(*args)  # with one thread, as everything that is forked
    assert first.code == 0, first.err
    # Each BLAS has a variable of its own.
    variables = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    written = (tmp_path / "out/small-model/results.json").read_text()
    again = geneb(*args, "--tasks", "one", env=dict.fromkeys(variables, "2"))
    check_mistake(again, "two", "num_threads", "probe all tasks", "--out")
    assert (tmp_path / "out/small-model/results.json").read_text() == written


def test_two_probes_at_once_into_one_folder(server, tmp_path):
    """Both end well, and together they leave what one leaves."""
    store = write_store(
        tmp_path / "s.zarr", {name: random_task(k) for k, name in enumerate("abcd")}
    )
    first, second = server.run_all([["probe", store, "--out", tmp_path / "out", "--quiet"]] * 2)
    assert (first.code, second.code) == (0, 0)
    assert first.out == second.out
    alone = geneb("probe", store, "--out", tmp_path / "alone", "--quiet")
    assert alone.code == 0, alone.err
    results = "small-model/results.json"
    assert (tmp_path / "out" / results).read_bytes() == (tmp_path / "alone" / results).read_bytes()
    again = geneb("probe", store, "--out", tmp_path / "out", "--json")
    assert (again.code, again.json["models"][0]["fits"]) == (0, 44)
    assert not list((tmp_path / "out").rglob("*.partial"))


def test_scores_that_round_to_zero_have_no_sign(root):
    """The table shows 0.000 on either side of zero; every command formats scores the same way."""
    outcome = SimpleNamespace(info=SimpleNamespace(seeds=[1, 2]))
    fits = [SimpleNamespace(MCC=value, Acc=0.5, F1=-0.0) for value in (-0.0002, -0.0004)]
    assert _values(outcome, fits) == ["0.000", "0.500", "0.000", "sd 0.000"]
    for path in (root / "geneb/cli").glob("*.py"):
        assert ".3f" not in path.read_text(encoding="utf-8"), path.name

"""``geneb leaderboard show`` as a command."""

from __future__ import annotations

import pytest
from support.command import check_mistake, geneb
from support.results_folders import run_info, write_results
from support.small_stores import random_task, write_store
from support.submissions import submission, write_submission

import geneb as program
from geneb.benchmark.spec import load_spec

SPEC = load_spec()


@pytest.fixture
def submissions(tmp_path):
    """Four models: two tie, one is best, one lacks a task."""
    short = submission("short", start=0.8)
    del short["results"]["full"][SPEC.task_ids[0]]
    documents = [
        submission("tie-b", start=0.3002),
        short,
        submission("best", start=0.4),
        submission("tie-a", start=0.3002),
        submission("worst", start=0.3002 - 1e-9),
    ]
    return [write_submission(tmp_path, document) for document in documents]


def show(*args):
    return geneb("leaderboard", "show", *args)


def test_ranks_in_full_precision(submissions):
    """Ties share a rank and the next is left out; what is incomplete stands last, unranked."""
    done = show(*submissions)
    assert done.code == 0, done.err
    rows = [line.split() for line in done.out.splitlines()]
    assert rows[0] == ["rank", "model", "macro", "micro", "tasks"]
    assert [row[:2] for row in rows[1:]] == [
        ["1", "Best"],
        ["2", "Tie-A"],
        ["2", "Tie-B"],
        ["4", "Worst"],  # shown alike, a billionth below
        ["-", "Short"],
    ]
    assert rows[3][2:] == [rows[4][2], rows[4][3], "100/100"]
    assert rows[5][2:] == ["-", "-", "99/100"]


def test_another_backend_is_said_beside_the_scores(tmp_path):
    """As a note, and as a field of the JSON."""
    results = write_results(tmp_path / "results", run_info(backend="torch:cuda"))
    done = show(results)
    assert "some-model: its fits were solved by the backend torch:cuda" in done.err
    assert show(results, "--json").json["models"][0]["backend"] == "torch:cuda"
    ours = write_results(tmp_path / "others", run_info())
    assert "backend" not in show(ours).err


def test_the_output_depends_on_nothing_but_the_scores(submissions):
    """The order of the arguments is none of it."""
    assert show(*submissions).out == show(*reversed(submissions)).out


def test_names_are_for_people_and_ids_for_programs(submissions):
    """Tables have the names, CSV the ids, JSON both."""
    for form, name in (("table", "Tie-A"), ("md", "Tie\\-A"), ("csv", "tie-a")):
        done = show(*submissions, "--format", form)
        assert name in done.out
        assert ("tie-a" in done.out) == (form == "csv")
    models = show(*submissions, "--json").json["models"]
    assert {one["model_id"]: one["display"] for one in models}["tie-a"] == "Tie-A"


@pytest.mark.parametrize("how", [(), ("--by", "task"), ("--category", "lncRNA")])
def test_models_of_one_name_are_told_apart(submissions, tmp_path, how):
    """By their ids, whatever the case of the name: nobody passes for another model."""
    document = submission("double")
    document["meta"]["display"] = "BEST"
    out = show(*submissions, write_submission(tmp_path, document), *how).out
    assert "Best (best)" in out
    assert "BEST (double)" in out
    assert "Tie-A (" not in out


def test_what_is_shown_is_said(submissions):
    """Metric, regime, and what the ranks go by; not among the data."""
    done = show(*submissions, "--metric", "F1", "--regime", "1shot")
    assert "F1, regime 1shot; ranked by macro" in done.err
    assert "ranked by" not in done.out
    one = show(*submissions, "--category", "lncRNA").err
    assert "ranked by lncRNA\n" in one
    both = show(*submissions, "--category", "lncRNA", "--category", "promoters").err
    assert "ranked by the mean of lncRNA, Promoters\n" in both


def test_no_model_has_no_parameters(submissions):
    """Zero is a limit like any other."""
    assert show(*submissions, "--max-params", "0", "--json").json["models"] == []
    assert len(show(*submissions, "--min-params", "0", "--json").json["models"]) == 5


def test_categories_regime_and_metric(submissions):
    """Every category is a column; the metric and the regime are those asked for."""
    done = show(*submissions, "--by", "category", "--metric", "Acc", "--regime", "1shot", "--json")
    assert done.code == 0, done.err
    assert (done.json["regime"], done.json["metric"]) == ("1shot", "Acc")
    for model in done.json["models"]:
        assert list(model["categories"]) == list(SPEC.categories)
        assert set(model["categories"].values()) == {0.75}
        assert (model["macro"], model["micro"], model["rank"]) == (0.75, 0.75, 1)
    table = show(*submissions, "--by", "category")
    assert all(category in table.out.splitlines()[0] for category in SPEC.categories)


def test_by_task(submissions):
    """One row a task, one column a model, a dash where there is no score."""
    done = show(*submissions, "--by", "task")
    head, first, *others = [line.split() for line in done.out.splitlines()]
    assert head == ["task", "Best", "Tie-A", "Tie-B", "Worst", "Short"]
    assert first == [SPEC.task_ids[0], "0.400", "0.300", "0.300", "0.300", "-"]
    assert len(others) == 99


def test_own_tasks_never_count(tmp_path):
    """They are shown task by task, with a word about it."""
    store = write_store(tmp_path / "s.zarr", {"own": random_task()})
    program.probe(store, out=tmp_path / "out", regimes=["full"])
    done = show(tmp_path / "out")
    assert done.code == 0, done.err
    assert done.out.splitlines()[0].split() == ["task", "small-model"]
    assert done.out.splitlines()[1].split()[0] == "own"
    assert "never enter macro" in done.err
    found = show(tmp_path / "out", "--json").json["models"][0]
    assert (found["rank"], found["macro"], found["micro"]) == (None, None, None)
    assert list(found["own_tasks"]) == ["own"]
    assert "no scores in the regime 10shot" in show(tmp_path / "out", "--regime", "10shot").err


def test_mistakes(submissions, tmp_path):
    """Exit code 2 and one message."""
    check_mistake(show(submissions[0], submissions[0]), "two sources are of one model, tie-b")
    check_mistake(show(tmp_path / "nothing.json"), "no such file")
    check_mistake(show(tmp_path), "no results in this folder")
    check_mistake(show("--category", "splice"), "did you mean 'Splice Sites'?")
    check_mistake(show("--category", "lncRNA", "--by", "task"), "leave out --by")
    document = submission("evil")
    document["results"]["full"]["\x1b[31mred"] = {}
    outcome = show(write_submission(tmp_path, document))
    check_mistake(outcome, "$.results.full[")
    assert "\x1b" not in outcome.err

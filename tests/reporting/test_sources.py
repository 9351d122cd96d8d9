"""Reading scores from results folders and submissions."""

from __future__ import annotations

import json

import pytest
from support.small_stores import random_task, write_store
from support.submissions import submission, write_submission

import geneb
from geneb.benchmark.spec import load_spec
from geneb.errors import InputError, NotFoundError
from geneb.reporting.sources import read_sources, read_submission

TASK = load_spec().task_ids[0]


def test_a_submission_is_read_in_full_precision(tmp_path):
    """Values, model and the protocol that a submission is of."""
    document = submission("some-model", start=1 / 3)
    source = read_submission(write_submission(tmp_path, document))
    assert (source.model_id, source.protocol) == ("some-model", "geneb-lr-1")
    assert source.summary == document["results"]


def test_a_submission_may_lack_tasks_and_regimes(tmp_path):
    """It can be shown, under any file name and whatever it claims; -0.0 is shown as 0.0."""
    document = submission("some-model")
    document["meta"]["provenance"] = "official"
    document["results"] = {"full": {TASK: {"MCC": -0.0, "Acc": 1, "F1": 0.5}}}
    source = read_submission(write_submission(tmp_path, document, "other-name"))
    assert repr(source.summary) == repr({"full": {TASK: {"MCC": 0.0, "Acc": 1.0, "F1": 0.5}}})


def test_all_faults_are_listed(tmp_path):
    """Not only the first."""
    document = submission("some-model")
    document["results"]["full"][TASK]["MCC"] = 1.5
    document["results"]["full"]["own_task"] = {}
    document["model_id"] = ""
    document["results"]["1shot"][TASK]["Acc"] = False
    with pytest.raises(InputError) as caught:
        read_submission(write_submission(tmp_path, document, "x"))
    for words in (
        "$.model_id",
        f"$.results.full.{TASK}.MCC",
        "$.results.full.own_task",
        f"$.results.1shot.{TASK}.Acc",
    ):
        assert words in str(caught.value)


@pytest.mark.parametrize("text", ["", "[", "[" * 100 + "]" * 100])
def test_json_that_cannot_be_used(tmp_path, text):
    """One clear error."""
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(InputError, match="not JSON that can be used"):
        read_submission(path)


def test_a_results_folder_is_read_from_its_csvs(tmp_path):
    """By its own name or by its parent's; results.json plays no part."""
    store = write_store(tmp_path / "s.zarr", {"own": random_task()})
    geneb.probe(store, out=tmp_path / "out")
    folder = tmp_path / "out/small-model"
    expected = json.loads((folder / "results.json").read_text())["results"]
    (folder / "results.json").unlink()
    for path in (folder, tmp_path / "out"):
        [source] = read_sources([path])
        assert (source.model_id, source.path) == ("small-model", folder)
        assert source.summary == expected


def test_a_damaged_csv_is_not_passed_over(tmp_path):
    """A score that is missing without a word would be worse."""
    store = write_store(tmp_path / "s.zarr", {"own": random_task()})
    geneb.probe(store, out=tmp_path / "out", regimes=["full"])
    file = tmp_path / "out/small-model/tasks/own.csv"
    file.write_text(file.read_text().replace("true", "maybe"))
    with pytest.raises(InputError, match=r"own\.csv"):
        read_sources([tmp_path / "out"])


def test_two_sources_of_one_model_are_refused(tmp_path):
    """Both are named."""
    document = submission("some-model")
    paths = [write_submission(tmp_path, document, name) for name in ("one", "two")]
    with pytest.raises(InputError, match=r"one\.json and .*two\.json"):
        read_sources(paths)


def test_protocols_are_not_mixed(tmp_path):
    """Results with other seeds do not stand beside the published protocol's."""
    store = write_store(tmp_path / "s.zarr", {"own": random_task()})
    geneb.probe(store, out=tmp_path / "out", regimes=["1shot"], seeds=[1])
    path = write_submission(tmp_path, submission("some-model"))
    with pytest.raises(InputError, match="different protocols"):
        read_sources([tmp_path / "out", path])


def test_paths_without_results(tmp_path):
    """Not there, and there without results."""
    with pytest.raises(NotFoundError, match="no such file"):
        read_sources([tmp_path / "nothing.json"])
    with pytest.raises(NotFoundError, match="no results in this folder"):
        read_sources([tmp_path])

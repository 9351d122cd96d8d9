"""Reading scores from results folders and submissions."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.small_stores import random_task, write_store
from support.submissions import submission, write_submission

import geneb
from geneb.benchmark.spec import load_spec
from geneb.errors import InputError, NotFoundError
from geneb.reporting.sources import check_submission, read_sources, read_submission

TASK = load_spec().task_ids[0]


def spoilt(*path_and_value):
    """A complete submission with one value replaced, or removed where it is `...`."""
    *path, last, value = path_and_value
    document = submission("some-model")
    place = document
    for key in path:
        place = place[key]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return document


def test_a_submission_is_read_in_full_precision(tmp_path):
    """Values, model and the protocol that a submission is of."""
    document = submission("some-model", start=1 / 3)
    source = read_submission(write_submission(tmp_path, document))
    assert (source.model_id, source.protocol) == ("some-model", "geneb-lr-1")
    assert source.summary == document["results"]


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ([], "$:"),
        (spoilt("schema_version", "2.0"), "$.schema_version"),
        (spoilt("schema_version", 1.0), "$.schema_version"),
        (spoilt("harness_version", ...), "$.harness_version"),
        (spoilt("model_id", "../x"), "$.model_id"),
        (spoilt("model_id", 7), "$.model_id"),
        (spoilt("meta", []), "$.meta"),
        (spoilt("meta", "display", " "), "$.meta.display"),
        (spoilt("meta", "params", True), "$.meta.params"),
        (spoilt("meta", "params", -1), "$.meta.params"),
        (spoilt("results", {}), "$.results"),
        (spoilt("results", "5shot", {}), "$.results.5shot"),
        (spoilt("results", "full", []), "$.results.full"),
        (spoilt("results", "full", TASK, 0.5), f"$.results.full.{TASK}"),
        (spoilt("results", "full", "a/b", {"MCC": 0, "Acc": 1, "F1": 0.5}), "$.results.full.a/b"),
        (spoilt("results", "full", TASK, "AUC", 0.5), f"$.results.full.{TASK}.AUC"),
        (spoilt("results", "full", TASK, "MCC", ...), f"$.results.full.{TASK}.MCC"),
        (spoilt("results", "full", TASK, "MCC", True), f"$.results.full.{TASK}.MCC"),
        (spoilt("results", "full", TASK, "MCC", "0.5"), f"$.results.full.{TASK}.MCC"),
        (spoilt("results", "full", TASK, "MCC", None), f"$.results.full.{TASK}.MCC"),
        (spoilt("results", "full", TASK, "MCC", 1.2), f"$.results.full.{TASK}.MCC"),
        (spoilt("results", "full", TASK, "Acc", -0.1), f"$.results.full.{TASK}.Acc"),
        (spoilt("results", "full", TASK, "F1", 10**400), f"$.results.full.{TASK}.F1"),
    ],
)
def test_one_fault_is_named_with_its_path(tmp_path, document, path):
    """Each kind of fault, and no other beside it."""
    faults = list(check_submission(document))
    assert [fault.where for fault in faults] == [path.rstrip(":")]
    with pytest.raises(InputError) as caught:
        read_submission(write_submission(tmp_path, document, "x"))
    assert path in str(caught.value)


def test_all_faults_are_listed(tmp_path):
    """Not only the first."""
    document = spoilt("results", "full", TASK, "MCC", 1.5)
    document["model_id"] = ""
    document["results"]["1shot"][TASK]["Acc"] = False
    with pytest.raises(InputError) as caught:
        read_submission(write_submission(tmp_path, document, "x"))
    for words in ("$.model_id", f"$.results.full.{TASK}.MCC", f"$.results.1shot.{TASK}.Acc"):
        assert words in str(caught.value)


@pytest.mark.parametrize(
    "text", ["", "[", '{"model_id": 1, "model_id": 1}', '{"a": NaN}', "[" * 100 + "]" * 100]
)
def test_json_that_cannot_be_used(tmp_path, text):
    """One clear error."""
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(InputError, match="not JSON that can be used"):
        read_submission(path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, st.sampled_from(["model_id", "meta", "results", "schema_version"]), JSON)
@settings(deadline=None)
def test_no_json_breaks_the_check(value, field, inner):
    """Whatever stands where: faults, never another exception."""
    assert list(check_submission(value))
    document = {**submission("some-model"), field: inner}
    for fault in check_submission(document):
        assert fault.where.startswith("$")
    document = submission("some-model")
    document["results"]["full"] = inner
    document["meta"] = {"display": inner, "params": inner}
    assert list(check_submission(document))


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

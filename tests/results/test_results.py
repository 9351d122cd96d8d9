"""The results' CSVs, the results folder, and the value that is reported."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geneb.errors import InputError, NotFoundError
from geneb.probing.folder import open_for_writing
from geneb.results import (
    COLUMNS,
    Fit,
    Origin,
    ResultsFolder,
    RunInfo,
    TaskResults,
    complete_regimes,
    format_csv,
    parse_csv,
    reported_value,
    summarise,
)

SEEDS = [13, 17, 42, 123, 997]
INFO = RunInfo(
    model_id="some-model",
    store_fingerprint="ab" * 32,
    protocol="geneb-lr-1",
    seeds=SEEDS,
    probe="LogisticRegression(C=1.0)",
    backend="sklearn",
    versions={"scikit-learn": "1.9.1"},
    blas=[{"architecture": "Haswell", "num_threads": 1}],
    regimes=["full"],
    environment={},
)
ORIGIN = Origin("some-model", "ab" * 32, "cd" * 32, "some_task", "sklearn", "geneb-lr-1", INFO.key)
FIT = Fit(
    regime="full",
    seed=None,
    MCC=0.83,
    Acc=0.9,
    F1=0.89,
    n_train=100,
    n_test=50,
    n_classes=2,
    predicted_classes=2,
    short_classes=0,
    unseen_classes=0,
    untested_classes=0,
    seen_rows=1,
    MCC_without_seen=0.82,
    Acc_without_seen=0.91,
    F1_without_seen=None,
    n_iter=17,
    converged=True,
    objective=0.7,
    gradient_norm=3.2e-05,
    seconds=0.1,
)
FITS = (
    FIT,
    *(replace(FIT, regime="1shot", seed=seed, MCC=seed / 1000, converged=False) for seed in SEEDS),
)
RESULTS = TaskResults(ORIGIN, FITS)
SIGNED = st.floats(-1, 1)
SHARE = st.floats(0, 1)
COUNT = st.integers(0, 10**6)
ANY_FIT = st.builds(
    Fit,
    regime=st.sampled_from(["full", "10shot", "1shot"]),
    seed=st.none() | st.integers(0, 2**32 - 1),
    MCC=SIGNED,
    Acc=SHARE,
    F1=SHARE,
    n_train=COUNT,
    n_test=COUNT,
    n_classes=COUNT,
    predicted_classes=COUNT,
    short_classes=COUNT,
    unseen_classes=COUNT,
    untested_classes=COUNT,
    seen_rows=COUNT,
    MCC_without_seen=st.none() | SIGNED,
    Acc_without_seen=st.none() | SHARE,
    F1_without_seen=st.none() | SHARE,
    n_iter=st.none() | COUNT,
    converged=st.none() | st.booleans(),
    objective=st.none() | st.floats(0, 1e30),
    gradient_norm=st.none() | st.floats(0, 1e30),
    seconds=st.floats(0, 1e6),
)


def text(results: TaskResults = RESULTS) -> bytes:
    return format_csv(results).encode()


@given(st.lists(ANY_FIT, min_size=1, max_size=12))
@settings(deadline=None)  # a busy machine is no failure
def test_what_is_written_reads_back_to_the_bit(fits):
    """Every double, integer, flag and absent seed."""
    results = TaskResults(ORIGIN, tuple(fits))
    again = parse_csv(text(results), "here")
    assert again == results
    assert text(again) == text(results)


def test_the_columns():
    """The first line names them; the full regime's seed is empty, not a made-up one."""
    first, full, *_ = text().decode().splitlines()
    assert tuple(first.split(",")) == COLUMNS
    cells = dict(zip(COLUMNS, full.split(","), strict=True))
    assert (cells["seed"], cells["MCC"], cells["converged"]) == ("", "0.83", "true")


def test_a_file_cut_off_anywhere_does_not_count_as_complete():
    """It is refused, or the regime that lost a row is not complete."""
    whole = text()
    for length in range(len(whole)):
        try:
            found = parse_csv(whole[:length], "here")
        except InputError:
            continue
        assert whole[:length].endswith(b"\n")
        assert list(complete_regimes(found, SEEDS)) == ["full"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"0.83", b"0.830"),
        (b"0.83", b" 0.83"),
        (b"0.83", b"1.5"),
        (b"0.83", b"nan"),
        (b"0.83", b"inf"),
        (b"0.83", b""),
        (b"0.83", b"'0.83'"),
        (b"true", b"True"),
        (b"true", b"1"),
        (b",100,", b",1_00,"),
        (b",100,", b",100.0,"),
        (b",100,", b",100,100,"),
        (b"\n", b"\r\n"),
        (b"some_task", b"../some_task"),
        (b"some-model", b"other-model"),  # in one row only
        (b"MCC", b"mcc"),
        (b"model", b"\xef\xbb\xbfmodel"),
        (b"0.83", b"\xff"),
        (b"0.83", b"0.8\x003"),
        (b"0.83", b'"0.83"'),
    ],
)
def test_a_file_that_was_edited_is_refused(old, new):
    """Whatever is not exactly what was written."""
    damaged = text().replace(old, new, 1)
    assert damaged != text()
    with pytest.raises(InputError, match="not a task's results as they were written"):
        parse_csv(damaged, "here")


@given(st.binary(max_size=300))
@settings(deadline=None)  # a busy machine is no failure
def test_no_bytes_do_more_than_raise_one_error(data):
    """Hostile bytes are refused like damaged ones."""
    for content in (data, text()[:200] + data, text() + data):
        if content != text():
            with pytest.raises(InputError):
                parse_csv(content, "here")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_not_a_number_is_never_written(value):
    """A missing value is an error, not an entry."""
    with pytest.raises(ValueError, match="not a finite number"):
        format_csv(TaskResults(ORIGIN, (replace(FIT, MCC=value),)))


def test_the_reported_value_of_one_fit_is_the_mean_of_equal_copies():
    """To the last bit, as the published loop reports it: not the value itself."""
    assert reported_value([0.83], SEEDS) == 0.8299999999999998 != 0.83
    assert reported_value([0.83], [1]) == 0.83


@given(st.lists(SIGNED, min_size=5, max_size=5))
@settings(deadline=None)  # a busy machine is no failure
def test_the_reported_value_is_numpys_mean_in_the_order_of_the_seeds(values):
    """Bit by bit, for one value as for five."""
    assert reported_value(values, SEEDS) == np.mean(values)
    assert reported_value(values[:1], SEEDS) == np.mean([values[0]] * 5)


def test_values_that_do_not_fit_the_seeds_are_never_averaged():
    """Four of five seeds are not the five."""
    with pytest.raises(ValueError, match="4 values for 5 seeds"):
        reported_value([0.1] * 4, SEEDS)


def test_a_summary_holds_complete_regimes_only():
    """Four of five seeds, or seeds in another order, are not a reported value."""
    other = replace(ORIGIN, task="another_task")
    part = TaskResults(other, FITS[:-1])
    turned = TaskResults(replace(ORIGIN, task="turned"), (FITS[0], *FITS[:0:-1]))
    assert summarise([RESULTS, part, turned], INFO) == {
        "full": {
            task: {"MCC": 0.8299999999999998, "Acc": 0.9, "F1": np.mean([0.89] * 5)}
            for task in ("another_task", "some_task", "turned")
        },
        "1shot": {
            "some_task": {
                "MCC": np.mean([seed / 1000 for seed in SEEDS]),
                "Acc": 0.9,
                "F1": np.mean([0.89] * 5),
            }
        },
    }


def test_the_summary_is_rebuilt_from_the_csvs(tmp_path):
    """results.json holds what the CSVs say, and no stale task."""
    folder, _ = open_for_writing(tmp_path, INFO)
    folder.write_task(RESULTS)
    stale = replace(ORIGIN, task="stale", run_key="0" * 16)
    folder.write_task(TaskResults(stale, FITS))
    (folder.path / "results.json").write_text("nonsense")
    document = json.loads(folder.write_summary().read_text())
    assert document == {
        "model_id": "some-model",
        "protocol": "geneb-lr-1",
        "results": summarise([RESULTS], INFO),
    }
    assert list(document["results"]) == ["full", "1shot"]


def test_a_folder_that_another_run_has_taken_over_is_not_written(tmp_path):
    """Nothing of this run gets among the other's results, and none of those is removed."""
    folder, _ = open_for_writing(tmp_path, INFO)
    other, _ = open_for_writing(tmp_path, INFO.model_copy(update={"versions": {"numpy": "3"}}))
    theirs = TaskResults(replace(ORIGIN, run_key=other.info.key), FITS)
    other.write_task(theirs)
    for change in (
        lambda: folder.write_task(RESULTS),
        lambda: folder.remove_task("some_task"),
        folder.write_summary,
    ):
        with pytest.raises(InputError, match="another probe has taken"):
            change()
    assert other.read_task("some_task") == theirs


def test_the_csv_of_another_task_or_model_is_refused(tmp_path):
    """A file that was renamed or copied over is not taken for what its name says."""
    folder, _ = open_for_writing(tmp_path, INFO)
    folder.task_path("renamed").write_bytes(text())
    with pytest.raises(InputError, match="another task"):
        folder.read_task("renamed")
    folder.task_path("some_task").write_bytes(text().replace(b"some-model", b"other-model"))
    with pytest.raises(InputError, match="another model"):
        folder.read_task("some_task")


@pytest.mark.parametrize(
    "change",
    [
        {"model_id": "../up"},
        {"seeds": []},
        {"seeds": ["13"]},
        {"format": "geneb-results-2"},
        {"surplus": 1},
        {"versions": {"numpy": 2}},
    ],
)
def test_a_run_file_that_is_not_one(tmp_path, change):
    """Refused with one message, never with a traceback's error."""
    path = tmp_path / "run.json"
    path.write_text(json.dumps({**INFO.model_dump(mode="json"), **change}))
    with pytest.raises(InputError):
        RunInfo.read(path)


def test_no_results_folder(tmp_path):
    """Says which file is not there."""
    with pytest.raises(NotFoundError, match=r"run\.json"):
        ResultsFolder.open(tmp_path)

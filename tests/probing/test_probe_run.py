"""The probe of real stores: results, resuming, tasks that fail."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.plain_loop import SEEDS, plain_loop
from support.small_stores import damage_block, random_task, replace_task, write_store

import geneb
from geneb.base.progress import Silent
from geneb.errors import GenebError, InputError, NotFoundError
from geneb.probing import execute, job
from geneb.probing.run import ProbeError
from geneb.results import COLUMNS, ResultsFolder

TASKS = {name: random_task(seed, classes=2 + seed % 2) for seed, name in enumerate("abc")}


class Listener(Silent):
    """Remembers what a run told."""

    def __init__(self):
        self.total = 0
        self.fits = 0
        self.said = []

    def start(self, total, unit):
        self.total = total

    def advance(self, steps, what=""):
        self.fits += steps

    def say(self, message):
        self.said.append(message)


@pytest.fixture
def store(tmp_path) -> Path:
    return write_store(tmp_path / "small.zarr", TASKS)


@pytest.fixture
def out(tmp_path) -> Path:
    return tmp_path / "out"


def fits_made(store, out, **options) -> int:
    """The number of fits that a probe makes; it must be what it announced."""
    listener = Listener()
    geneb.probe(store, out=out, progress=listener, **options)
    assert listener.fits == listener.total
    return listener.fits


def csvs(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (out / "small-model/tasks").iterdir()}


def without_seconds(content: bytes) -> pd.DataFrame:
    from io import BytesIO

    return pd.read_csv(BytesIO(content)).drop(columns="seconds")


def test_a_probe_returns_one_row_a_fit(store):
    """All columns; the full regime's one row has no seed."""
    frame = geneb.probe(store)
    opened = geneb.open_store(store)
    assert list(frame.columns) == list(COLUMNS)
    assert len(frame) == 3 * 11
    assert frame["seed"].isna().sum() == 3
    assert set(frame["store_fingerprint"]) == {opened.fingerprint_id}
    assert set(frame["embeddings_digest"]) == {opened.task(task).manifest.digest for task in TASKS}
    assert set(frame["protocol"]) == {"geneb-lr-1"}
    assert not frame.drop(columns="seed").isna().any().any()


def test_what_is_written_is_what_the_plain_loop_finds(store, out):
    """results.json, to the bit, for every task, regime and metric."""
    geneb.probe(geneb.open_store(store), out=out)
    document = json.loads((out / "small-model/results.json").read_text())
    expected = {task: plain_loop(*arrays.all()) for task, arrays in TASKS.items()}
    assert document == {
        "model_id": "small-model",
        "protocol": "geneb-lr-1",
        "results": {
            regime: {task: expected[task][regime] for task in sorted(TASKS)}
            for regime in ("full", "10shot", "1shot")
        },
    }


def test_the_same_probe_again_fits_nothing(store, out):
    """And leaves every byte as it is; what it returns is the same as well."""
    first = geneb.probe(store, out=out)
    before = csvs(out)
    listener = Listener()
    again = geneb.probe(store, out=out, progress=listener)
    assert (listener.fits, csvs(out)) == (0, before)
    pd.testing.assert_frame_equal(again, first)


def test_an_interrupted_probe_redoes_only_what_is_missing(store, out, monkeypatch):
    """Stopped in the second task; then resumed to what an uninterrupted one writes."""
    honest = execute.probe_task
    calls = []

    def stop(*args, **options):
        calls.append(args)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return honest(*args, **options)

    monkeypatch.setattr(execute, "probe_task", stop)
    with pytest.raises(KeyboardInterrupt):
        geneb.probe(store, out=out)
    assert list(csvs(out)) == ["a.csv"]
    assert list(ResultsFolder.open(out / "small-model").summary()["full"]) == ["a"]

    monkeypatch.setattr(execute, "probe_task", honest)
    assert fits_made(store, out) == 22
    geneb.probe(store, out=out.with_name("whole"))
    whole = csvs(out.with_name("whole"))
    assert csvs(out).keys() == whole.keys()
    for name, content in csvs(out).items():
        pd.testing.assert_frame_equal(without_seconds(content), without_seconds(whole[name]))
    names = ("small-model/results.json", "small-model/run.json")
    for name in names:
        assert (out / name).read_bytes() == (out.with_name("whole") / name).read_bytes()


@pytest.mark.parametrize(
    ("damage", "fits"),
    [
        (lambda content: content[:-1], 11),  # in the middle of a row
        (lambda content: b"".join(content.splitlines(keepends=True)[:-1]), 5),  # a seed is lost
        (lambda content: content.replace(b"true", b"maybe"), 11),
        (lambda content: b"", 11),
    ],
)
def test_a_damaged_csv_is_not_done(store, out, damage, fits):
    """What can still be trusted is kept; the rest is fitted again."""
    geneb.probe(store, out=out)
    before = csvs(out)
    (out / "small-model/tasks/b.csv").write_bytes(damage(before["b.csv"]))
    assert fits_made(store, out) == fits
    assert csvs(out)["a.csv"] == before["a.csv"]
    pd.testing.assert_frame_equal(
        without_seconds(csvs(out)["b.csv"]), without_seconds(before["b.csv"])
    )


def test_regimes_are_added_to_those_that_are_done(store, out):
    """Only the new ones are fitted, and none is lost, whatever the order of asking."""
    assert fits_made(store, out, regimes=["1shot"]) == 15
    assert fits_made(store, out, regimes=["full"]) == 3
    frame = geneb.probe(store, out=out, regimes=["full"])
    assert set(frame["regime"]) == {"full"}
    assert fits_made(store, out) == 15
    geneb.probe(store, out=out.with_name("at-once"))
    at_once = csvs(out.with_name("at-once"))
    for name, content in csvs(out).items():
        pd.testing.assert_frame_equal(without_seconds(content), without_seconds(at_once[name]))


def test_tasks_are_added_to_those_that_are_done(store, out):
    """A pattern chooses tasks; the summary holds all that are done."""
    assert fits_made(store, out, tasks=["c"]) == 11
    assert fits_made(store, out, tasks=["[ac]"]) == 11
    assert list(ResultsFolder.open(out / "small-model").summary()["full"]) == ["a", "c"]


def test_a_task_that_was_embedded_again_is_probed_again(store, out):
    """Its manifest has another digest; the others are kept."""
    geneb.probe(store, out=out)
    replace_task(store, "b", random_task(99))
    assert fits_made(store, out) == 11


def test_results_of_embeddings_that_are_gone_do_not_stay(store, out):
    """A task that was embedded again and cannot be probed has no results any more."""
    geneb.probe(store, out=out)
    broken = random_task(99)
    broken.train_labels[:] = 1
    replace_task(store, "b", broken)
    with pytest.raises(ProbeError):
        geneb.probe(store, out=out)
    assert set(csvs(out)) == {"a.csv", "c.csv"}
    assert list(ResultsFolder.open(out / "small-model").summary()["full"]) == ["a", "c"]


def test_other_versions_redo_everything_and_say_so(store, out, monkeypatch):
    """Never a folder with results of two versions in its summary, nor one that lost tasks."""
    geneb.probe(store, out=out)
    before = (out / "small-model/results.json").read_bytes(), csvs(out)
    honest = job.env.version
    monkeypatch.setattr(job.env, "version", lambda name: f"{honest(name)}.post1")
    for some in ({"tasks": ["a"]}, {"regimes": ["full"]}):
        with pytest.raises(InputError, match="not make these again"):
            geneb.probe(store, out=out, **some)
        assert ((out / "small-model/results.json").read_bytes(), csvs(out)) == before
    listener = Listener()
    geneb.probe(store, out=out, progress=listener)
    assert listener.fits == 33
    assert any("probed again" in line and ".post1" in line for line in listener.said)
    assert list(ResultsFolder.open(out / "small-model").summary()["full"]) == ["a", "b", "c"]


def test_a_refusal_of_one_store_changes_no_folder(store, out, tmp_path, monkeypatch):
    """Also not that of a store that stands before it."""
    other = write_store(tmp_path / "other.zarr", {"a": TASKS["a"]}, model="other-model")
    geneb.probe([other, store], out=out)
    before = (out / "other-model/run.json").read_bytes()
    monkeypatch.setattr(job.env, "version", lambda name: "9.9")
    with pytest.raises(InputError, match="small-model"):
        geneb.probe([other, store], out=out, tasks=["a"])
    assert (out / "other-model/run.json").read_bytes() == before


def test_other_seeds_are_refused_beside_the_published_protocol(store, out):
    """And their own folder bears another protocol's name."""
    geneb.probe(store, out=out)
    with pytest.raises(InputError, match="results of another run"):
        geneb.probe(store, out=out, seeds=[1, 2])
    frame = geneb.probe(store, out=out.with_name("other"), seeds=np.array([1, 2]))
    assert set(frame["protocol"]) == {"geneb-lr-1+seeds-1-2"}
    assert set(frame["seed"].dropna()) == {1, 2}


def test_results_of_another_store_of_the_model_are_refused(store, out, tmp_path):
    """One folder holds the results of one fingerprint."""
    geneb.probe(store, out=out)
    wider = write_store(tmp_path / "wider.zarr", {"a": random_task(dim=7)})
    with pytest.raises(InputError, match="store_fingerprint"):
        geneb.probe(wider, out=out)


def test_several_stores(store, out, tmp_path):
    """Each has a folder of its own; the rows come in the order of the stores."""
    other = write_store(tmp_path / "other.zarr", {"a": TASKS["a"]}, model="other-model")
    frame = geneb.probe([other, store], out=out)
    assert list(dict.fromkeys(frame["model"])) == ["other-model", "small-model"]
    assert sorted(path.name for path in out.iterdir()) == ["other-model", "small-model"]
    with pytest.raises(InputError, match="two stores of one model"):
        geneb.probe([store, store], out=out)


def test_a_task_that_fails_does_not_stop_the_others(store, out):
    """Damaged bytes and a train set of one class: both are listed, the third is done."""
    damage_block(store, "a")
    broken = random_task(99)
    broken.train_labels[:] = 1
    replace_task(store, "b", broken)
    with pytest.raises(ProbeError, match="2 tasks could not be probed") as caught:
        geneb.probe(store, out=out)
    assert set(caught.value.results["task"]) == {"c"}
    for words in ("task a", "checksum", "task b", "one class only"):
        assert words in str(caught.value)
    assert caught.value.exit_code == 1
    assert set(csvs(out)) == {"c.csv"}


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError("Unable to allocate 9 GiB"), ["not enough memory", "Unable to allocate"]),
        (MemoryError(), ["not enough memory"]),
        (np.linalg.LinAlgError("SVD did not converge"), ["LinAlgError: SVD did not converge"]),
        (ValueError("bad shape"), ["ValueError: bad shape"]),
        (FloatingPointError("overflow"), ["FloatingPointError: overflow"]),
        (ZeroDivisionError("division by zero"), ["ZeroDivisionError"]),
    ],
)
def test_whatever_a_fit_raises_fails_one_task(store, out, monkeypatch, error, words):
    """The failure names the task and says what to do; the others are done."""
    honest = execute.probe_task
    calls = []

    def fail_second(*args, **options):
        calls.append(args)
        if len(calls) == 2:
            raise error
        return honest(*args, **options)

    monkeypatch.setattr(execute, "probe_task", fail_second)
    with pytest.raises(ProbeError, match="1 tasks could not be probed") as caught:
        geneb.probe(store, out=out)
    assert set(caught.value.results["task"]) == {"a", "c"}
    assert caught.value.exit_code == 1
    for part in (f"{store}, task b", "what to do", "--tasks b", *words):
        assert part in str(caught.value)
    assert set(csvs(out)) == {"a.csv", "c.csv"}
    assert list(ResultsFolder.open(out / "small-model").summary()["full"]) == ["a", "c"]


class TestTasksWithoutLabels:
    @pytest.fixture
    def mixed(self, tmp_path):
        return write_store(
            tmp_path / "mixed.zarr", {"a": TASKS["a"], "bare": self.bare(), "bare2": self.bare()}
        )

    def bare(self):
        task = random_task()
        task.train_labels = task.test_labels = None
        return task

    def test_they_are_left_out_of_all_tasks(self, mixed, out):
        """And it is said which."""
        listener = Listener()
        frame = geneb.probe(mixed, out=out, progress=listener)
        assert set(frame["task"]) == {"a"}
        assert listener.fits == listener.total == 11
        assert any("no labels: bare, bare2" in line for line in listener.said)

    def test_they_are_refused_where_they_are_asked_for(self, mixed, out):
        """Before anything is loaded or written."""
        (mixed / "tasks/bare/train/embeddings/c.0.0").unlink()
        for patterns in (["bare"], ["a", "bare"], ["b*"]):
            with pytest.raises(InputError, match="without labels cannot be probed") as caught:
                geneb.probe(mixed, out=out, tasks=patterns)
            assert (caught.value.exit_code, "bare" in caught.value.found) == (2, True)
        assert not out.exists()

    def test_a_store_of_nothing_else_is_refused(self, tmp_path, out):
        """There is nothing to do."""
        store = write_store(tmp_path / "bare.zarr", {"bare": self.bare()})
        with pytest.raises(InputError, match="without labels cannot be probed"):
            geneb.probe(store, out=out)


def test_a_damaged_csv_of_a_task_that_is_not_asked_for(store, out):
    """The summary cannot be rebuilt; that is said, and the work asked for is done."""
    geneb.probe(store, out=out)
    (out / "small-model/tasks/b.csv").write_text("nonsense")
    with pytest.raises(ProbeError, match=r"b\.csv") as caught:
        geneb.probe(store, out=out, tasks=["a"])
    assert set(caught.value.results["task"]) == {"a"}


def test_nothing_is_started_without_a_store(tmp_path, out):
    """Not there, not a store, none at all, without a task: nothing is written."""
    empty = write_store(tmp_path / "empty.zarr", {"a": TASKS["a"]})
    (empty / "tasks/a/zarr.json").write_text(
        json.dumps({"zarr_format": 3, "node_type": "group", "attributes": {}})
    )
    with pytest.raises(NotFoundError):
        geneb.probe(tmp_path / "nowhere", out=out)
    with pytest.raises(GenebError, match="not an embedding store"):
        geneb.probe(tmp_path, out=out)
    with pytest.raises(InputError, match="no store"):
        geneb.probe([], out=out)
    with pytest.raises(InputError, match="no complete task"):
        geneb.probe(empty, out=out)
    assert not out.exists()


def test_a_pattern_that_means_nothing(store, out):
    """Refused before anything is written."""
    with pytest.raises(InputError, match="no task is meant"):
        geneb.probe(store, out=out, tasks=["nothing"])
    assert not out.exists()


def test_the_seeds_of_the_protocol_may_be_given(store):
    """In any order, they are the protocol."""
    frame = geneb.probe(store, tasks=["a"], seeds=np.array(SEEDS[::-1]))
    assert set(frame["protocol"]) == {"geneb-lr-1"}

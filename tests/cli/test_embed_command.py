"""``geneb embed``: what it prints, and one clear message for each mistake."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest
from support.command import Outcome, check_mistake, geneb
from support.fork_server import Trouble
from support.small_tasks import beside, content, differing, write_small_tasks

from geneb.cli import options
from geneb.extractors.options import Dtype, LongInput, ModelOptions, Pooling, Preset
from geneb.stores import open_store


@pytest.fixture(scope="module")
def data(demo_data, tmp_path_factory) -> Path:
    """Three small tasks that share rows."""
    return write_small_tasks(demo_data, tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="session")
def run(server):
    """Run the command line, and meet some trouble."""

    def command(*args: object, **trouble: object) -> Outcome:
        done = server.run(*args, trouble=Trouble(**trouble))
        return Outcome(done.code, done.out, done.err)

    return command


@pytest.fixture
def embed(run, data):
    """Run ``geneb embed`` on all of the small tasks."""

    def command(store: Path, *args: object) -> Outcome:
        return run("embed", "--data", data, "--available", "--store", store, *args)

    return command


@pytest.fixture(scope="module")
def made(run, data, tmp_path_factory) -> Path:
    """A sealed store of two tasks; tests must leave it as it is."""
    store = tmp_path_factory.mktemp("made") / "kmer4.zarr"
    done = run(
        "embed", "--model", "kmer4", "--data", data, "--store", store,
        "--tasks", "mixed", "--tasks", "shared",
    )  # fmt: skip
    assert done.code == 0, done.err
    return store


@pytest.fixture
def odd(root) -> str:
    """Extractor files of somebody's own."""
    return str(root / "tests" / "support" / "odd_extractors.py")


def test_a_first_run(data, tmp_path):
    """Started as users start it: what was done on stdout, what goes on and what next on stderr."""
    store = tmp_path / "new folder" / "kmer4.zarr"

    done = geneb("embed", "--model", "kmer4", "--data", data, "--store", store, "--available")

    assert done.code == 0, done.err
    shown = dict(line.rsplit(maxsplit=1) for line in done.out.splitlines() if line.strip())
    assert shown["model"] == "kmer4"
    assert shown["tasks embedded now"] == "3"
    assert int(shown["rows copied"]) > 0
    assert "3 tasks, 161 rows (26 of them copies), 6 blocks, 0.2 MB" in done.err
    assert f"next: geneb store verify {store}" in done.err
    assert open_store(store).sealed
    assert geneb("store", "verify", store).code == 0


def test_the_summary_is_json(embed, tmp_path):
    """Nothing but one JSON value on stdout; quiet is without progress."""
    done = embed(tmp_path / "k.zarr", "--model", "kmer4", "--json", "--quiet")

    assert done.json["embedded"] == ["mixed", "shared", "three"]
    assert done.json["stopped"] is False
    assert done.json["unsealed"] is None
    assert done.json["fingerprint"] == open_store(tmp_path / "k.zarr").fingerprint_id
    assert "blocks" not in done.err


def test_what_an_extractor_prints_is_not_data(data, odd, tmp_path):
    """A user's code may print wherever it likes: stdout stays JSON."""
    done = geneb(
        "embed", "--extractor", f"{odd}:Noisy", "--data", data, "--available",
        "--store", tmp_path / "n.zarr", "--json",
    )  # fmt: skip

    assert done.json["embedded"] == ["mixed", "shared", "three"]
    assert {"constructed", "prepared", "embedded"} <= set(done.err.split())


def test_adding_to_a_store_and_finding_it_complete(embed, made, tmp_path):
    """The same command again keeps what is there and adds what is not."""
    again = embed(made, "--model", "kmer4", "--tasks", "mixed", "--json")

    assert again.json["complete"] == ["mixed"]
    assert again.json["embedded"] == []
    assert again.code == 0


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--model", "kmer5"], ["parameters.k", "4 -> 5", "fingerprint", "another --store"]),
        (["--model", "onehot128"], ["extractor", "'kmer' -> 'onehot'"]),
        (["--model", "kmer4", "--store-dtype", "float16"], ["store_dtype", "'float32'"]),
        (["--model", "kmer4", "--batch-tokens", "100"], ["16384", "--batch-tokens 100"]),
        (["--model", "kmer4", "--model-id", "other"], ["keeps its name", "kmer4", "other"]),
        (["--model", "kmer4", "--tasks", "mixed", "--splits", "dev"], ["no rows", "'dev'"]),
        (["--model", "kmer4", "--tasks", "mixed", "--replace-task", "three"], ["three", "--tasks"]),
    ],
)
def test_another_kind_of_embedding_is_refused(embed, made, args, words):
    """With what differs; the store is left as it was, its seal included."""
    before = content(made)

    refused = embed(made, *args)

    check_mistake(refused, *words)
    assert refused.out == ""
    assert differing(before, content(made)) == []
    assert open_store(made).sealed
    assert beside(made) == []


def test_a_changed_csv_is_refused_and_replaced(run, data, tmp_path):
    """The task and what to do are named; ``--replace-task`` takes the new one."""
    own = tmp_path / "own"
    own.mkdir()
    (own / "mixed.csv").write_bytes((data / "mixed.csv").read_bytes())
    command = [
        "embed", "--model", "kmer4", "--data", own, "--store", tmp_path / "k.zarr", "--available",
    ]  # fmt: skip
    assert run(*command).code == 0
    lines = (own / "mixed.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    (own / "mixed.csv").write_text("".join([lines[0], *lines[2:]]), encoding="utf-8")

    check_mistake(run(*command), "task mixed", "46 rows", "45 rows", "--replace-task")
    replaced = run(*command, "--replace-task", "mixed", "--json")

    assert replaced.json["embedded"] == ["mixed"]
    assert run("store", "verify", tmp_path / "k.zarr").code == 0


MODEL = ["--model", "kmer4"]
MISTAKES = {
    "neither model nor extractor": ([], ["--model ID or --extractor"]),
    "both": ([*MODEL, "--extractor", "a.py:B"], ["either"]),
    "unknown model": (["--model", "kmer44"], ["no such model", "did you mean", "kmer4"]),
    "a file as model": (["--model", "mine.py:Mine"], ["--extractor"]),
    "no class named": (["--extractor", "mine.py"], ["FILE.py:CLASS"]),
    "no such file": (["--extractor", "nowhere.py:Mine"], ["nowhere.py", "no such file"]),
    "misspelt task": ([*MODEL, "--tasks", "mixd"], ["'mixd'", "did you mean 'mixed'"]),
    "an empty batch": ([*MODEL, "--batch-tokens", "0"], ["--batch-tokens", "0"]),
    "a bad name": ([*MODEL, "--model-id", "../x"], ["name of a model", "'../x'"]),
    "weights for nobody": ([*MODEL, "--weights", "x"], ["cannot be told its weights"]),
    "dtype for nobody": ([*MODEL, "--dtype", "float16"], ["cannot be told its dtype"]),
    "layer for nobody": ([*MODEL, "--layer", "3"], ["cannot be told its layer"]),
    "layers for nobody": ([*MODEL, "--layer", "all"], ["kmer has one layer", "--layer all"]),
    "tf32 for nobody": ([*MODEL, "--tf32"], ["cannot be told its tf32"]),
    "no such pooling": ([*MODEL, "--pooling", "sum"], ["--pooling", "'sum'", "mean"]),
    "no such preset": ([*MODEL, "--preset", "new"], ["--preset", "'new'", "reference"]),
    "device for nobody": (
        [*MODEL, "--device", "cuda:0"],
        ["cannot be told its device"],
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_arguments(embed, tmp_path, mistake):
    """One message, exit code 2, and nothing is created."""
    args, words = MISTAKES[mistake]
    store = tmp_path / "k.zarr"

    outcome = embed(store, *args)

    check_mistake(outcome, *words)
    assert outcome.out == ""
    assert list(tmp_path.iterdir()) == []


def no_folder(folder: Path) -> Path:
    return folder / "nowhere"


def empty_folder(folder: Path) -> Path:
    (folder / "empty").mkdir()
    return folder / "empty"


def a_file(folder: Path) -> Path:
    (folder / "file.csv").write_text("text,label,split\n", encoding="utf-8")
    return folder / "file.csv"


def a_folder_as_csv(folder: Path) -> Path:
    (folder / "data" / "mixed.csv").mkdir(parents=True)
    return folder / "data"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (no_folder, ["no such folder of task CSVs", "nowhere"]),
        (empty_folder, ["no such task CSVs in this folder", "empty"]),
        (a_file, ["no such folder of task CSVs", "file.csv"]),
        (a_folder_as_csv, ["no such task CSVs in this folder"]),
    ],
)
def test_a_mistake_in_the_data(run, tmp_path, make, words):
    """The folder is named."""
    outcome = run(
        "embed", "--model", "kmer4", "--data", make(tmp_path), "--available",
        "--store", tmp_path / "k.zarr",
    )  # fmt: skip

    check_mistake(outcome, *words)
    assert not (tmp_path / "k.zarr").exists()


def test_data_and_store_must_be_named(run, tmp_path):
    """Either by option or by variable."""
    check_mistake(run("embed", "--model", "kmer4", "--store", tmp_path / "k.zarr"), "--data")
    check_mistake(run("embed", "--model", "kmer4", "--data", tmp_path), "--store")


def test_without_available_all_tasks_must_be_there(run, data, tmp_path):
    """All that are missing are told in one message."""
    outcome = run("embed", "--model", "kmer4", "--data", data, "--store", tmp_path / "k.zarr")

    check_mistake(outcome, "100 of the 100 task CSVs", "--available")
    assert not (tmp_path / "k.zarr").exists()


def test_a_broken_csv_is_named_before_anything_is_made(run, data, tmp_path):
    """File, line and field."""
    own = tmp_path / "own"
    own.mkdir()
    (own / "mixed.csv").write_bytes((data / "mixed.csv").read_bytes())
    with (own / "mixed.csv").open("a", encoding="utf-8") as stream:
        stream.write("ACGT,,train\n")

    outcome = run(
        "embed", "--model", "kmer4", "--data", own, "--available", "--store", tmp_path / "k.zarr"
    )

    check_mistake(outcome, "mixed.csv: row at line 68", "'label'", "the label is empty")
    assert not (tmp_path / "k.zarr").exists()


def test_a_store_is_a_folder(embed, tmp_path):
    """A file in its place is not touched."""
    (tmp_path / "k.zarr").write_text("notes", encoding="utf-8")

    check_mistake(embed(tmp_path / "k.zarr", "--model", "kmer4"), "a store is a folder", "k.zarr")

    assert (tmp_path / "k.zarr").read_text(encoding="utf-8") == "notes"
    assert beside(tmp_path / "k.zarr") == []


def test_a_folder_that_is_no_store_is_left_alone(embed, tmp_path):
    """Somebody's folder with something in it is never taken for an empty place."""
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").touch()

    outcome = embed(tmp_path / "thesis", "--model", "kmer4")

    check_mistake(outcome, "not an embedding store", "thesis")
    assert [entry.name for entry in (tmp_path / "thesis").iterdir()] == ["chapter.tex"]
    assert beside(tmp_path / "thesis") == []


def test_an_empty_folder_becomes_the_store(embed, tmp_path):
    """Made beforehand, as job scripts do."""
    (tmp_path / "k.zarr").mkdir()

    assert embed(tmp_path / "k.zarr", "--model", "kmer4").code == 0
    assert open_store(tmp_path / "k.zarr").sealed


def test_a_model_that_drifted_is_refused(data, odd, tmp_path):
    """The same file under the same fingerprint, and other numbers: what a library may do."""
    command = [
        "embed", "--extractor", f"{odd}:Drifting", "--data", data, "--store", tmp_path / "d.zarr",
    ]  # fmt: skip
    assert geneb(*command, "--tasks", "mixed").code == 0
    before = content(tmp_path / "d.zarr")

    drifted = geneb(*command, "--tasks", "three", env={"FACTOR": "1.01"})
    within = geneb(*command, "--tasks", "three", env={"FACTOR": "1.00001"})

    check_mistake(
        drifted, "no longer those that the store was created with", "within 0.0001", "a difference",
        "geneb doctor",
    )  # fmt: skip
    after = content(tmp_path / "d.zarr")
    assert {name: after[name] for name in before} == before
    assert within.code == 0, within.err


@pytest.mark.parametrize("name", ["Unmasked", "Neighbourly"])
def test_an_extractor_that_minds_its_company_is_refused(embed, odd, tmp_path, name):
    """Found by the canary, before a store is made."""
    outcome = embed(tmp_path / "u.zarr", "--extractor", f"{odd}:{name}")

    check_mistake(outcome, "another vector in company", "equal-length", code=1)
    assert list(tmp_path.iterdir()) == []


def test_a_failing_extractor_ends_in_one_message(embed, odd, tmp_path):
    """No traceback of somebody's code: its error, line and rows; what was complete stays."""
    outcome = embed(tmp_path / "f.zarr", "--extractor", f"{odd}:Failing", "--json")

    check_mistake(
        outcome, "letters failed in forward()", "KeyError: 'N' (line", "task three, train, row",
        code=1,
    )  # fmt: skip
    assert outcome.out == ""
    assert open_store(tmp_path / "f.zarr").task_ids() == ["mixed", "shared"]


def test_what_is_recorded_tells_no_paths(made, data):
    """Options as they were parsed, with paths cut to their base names."""
    (record,) = open_store(made).runs()

    assert record.options["data"] == data.name
    assert record.options["store"] == "kmer4.zarr"
    assert record.options["tasks"] == ["mixed", "shared"]
    assert str(made.parent) not in json.dumps(record.as_read())


def test_every_layer_in_one_pass(run, root, data, tmp_path):
    """``--layer all``: a folder of stores, each sealed, and one named as the next to look at."""
    file = root / "tests" / "support" / "layered_extractors.py"
    place = tmp_path / "layers"

    done = run(
        "embed", "--extractor", f"{file}:Layered", "--data", data, "--tasks", "three",
        "--store", place, "--layer", "all", "--long-input", "windows", "--json",
    )  # fmt: skip

    assert done.code == 0, done.err
    names = sorted(path.name for path in place.glob("*.zarr"))
    assert names == ["layer_00.zarr", "layer_01.zarr", "layer_02.zarr"]
    fingerprints = {name: open_store(place / name).fingerprint_id for name in names}
    assert done.json["layers"] == fingerprints
    assert f"next: geneb store verify {place / 'layer_00.zarr'}" in done.err
    assert "3 layers, 1 tasks" in done.err


def test_rows_run_again_in_float32_are_told(run, root, data, tmp_path):
    """Half precision overflowed for some; how many is in the summary."""
    file = root / "tests" / "support" / "layered_extractors.py"
    command = ["embed", "--data", data, "--tasks", "mixed", "--extractor"]

    mended = run(*command, f"{file}:Overflowing", "--store", tmp_path / "o.zarr")
    broken = run(*command, f"{file}:NotEvenInFloat32", "--store", tmp_path / "n.zarr")

    assert "rows run again in float32" in mended.out
    check_mistake(broken, "NaN or infinity", code=1)


def test_a_model_without_weights_needs_no_torch(data, tmp_path):
    """``--device auto`` does not look for a GPU that nobody would use."""
    watch = (
        "import sys; from geneb.cli import main; sys.argv[0] = 'geneb'\n"
        "try:\n    main()\nfinally:\n    print('torch' in sys.modules)"
    )
    args = ["embed", "--model", "kmer3", "--data", data, "--tasks", "three", "--quiet", "--store"]

    done = subprocess.run(
        [sys.executable, "-c", watch, *map(str, args), str(tmp_path / "k.zarr")],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "False"


def test_the_choices_are_those_of_the_options():
    """The command line states them without importing what uses them."""
    for choices, kind in (
        (options.DTYPES, Dtype), (options.POOLINGS, Pooling), (options.PRESETS, Preset),
        (options.LONG_INPUTS, LongInput),
    ):  # fmt: skip
        assert choices == get_args(kind)
    told = {field.name for field in fields(ModelOptions)}
    assert told | {"model_id", "batch_tokens"} == set(options.MODEL_ARGUMENTS)

"""Writing a store: tasks, blocks, manifests, sealing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from geneb.base.files import atomic_write
from geneb.errors import CorruptionError, FingerprintError, InputError, NotFoundError, StoreError
from geneb.stores import open_store, zarr_store
from geneb.stores.verify import verify_store
from geneb.stores.zarr_store import Writer, check_rows, create_store
from geneb.testing.made_stores import (
    create_empty,
    make_counts,
    make_run,
    make_task,
    write_split,
    write_store,
    write_task,
)


@pytest.fixture
def path(tmp_path, content):
    """An unsealed store without tasks."""
    return write_store(tmp_path / "s.zarr", replace(content, tasks={}), seal=False)


@pytest.fixture
def writer(path, content):
    """A writer of the empty store."""
    with Writer(path) as opened:
        opened.open(content.fingerprint)
        yield opened


@pytest.fixture
def task(content):
    """A labelled task, train and test."""
    return content.tasks["labelled"]


def begin(writer, name, task):
    splits = {split: (entry.row_ids, entry.labels) for split, entry in task.splits.items()}
    writer.create_task(name, splits)


# -- blocks and manifests ------------------------------------------------------------------------


def test_a_task_is_incomplete_until_it_is_committed(writer, task):
    """Blocks that are there do not make it complete; its manifest does."""
    begin(writer, "t", task)
    for split, entry in task.splits.items():
        write_split(writer, "t", split, entry.embeddings)
    assert writer.store.task_ids() == []
    assert writer.store.incomplete() == ["t"]
    with pytest.raises(NotFoundError, match="no complete task t"):
        writer.store.task("t")

    manifest = writer.commit_task("t", make_counts(task), task.classes, {"dev": 3})

    assert writer.store.task("t").manifest == manifest
    assert manifest.left_out == {"dev": 3}


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("lost", ["missing", "damaged", "short"])
def test_commit_refuses_what_is_not_there(writer, path, task, lost):
    """Every block is read back; nothing is declared if one fails."""
    begin(writer, "t", task)
    for split, entry in task.splits.items():
        write_split(writer, "t", split, entry.embeddings)
    chunk = path / "tasks/t/train/embeddings/c.3.0"
    data = chunk.read_bytes()
    chunk.unlink()
    if lost != "missing":
        chunk.write_bytes(data[:-1] + (bytes([data[-1] ^ 1]) if lost == "damaged" else b""))

    with pytest.raises(CorruptionError, match="task t, train/embeddings, block 3"):
        writer.commit_task("t", make_counts(task), task.classes, {})

    assert writer.store.incomplete() == ["t"]


def test_a_manifest_comes_after_what_it_vouches_for(writer, path, task, monkeypatch):
    """Every file of the task is on the disk before the manifest is."""
    begin(writer, "t", task)
    for split, entry in task.splits.items():
        write_split(writer, "t", split, entry.embeddings)
    files = {file for file in (path / "tasks/t").rglob("*") if file.is_file()}
    synced = set()

    def write(place, text):
        assert files == synced
        atomic_write(place, text)

    monkeypatch.setattr(zarr_store, "fsync_file", synced.add)
    monkeypatch.setattr(zarr_store, "atomic_write", write)

    writer.commit_task("t", make_counts(task), task.classes, {})

    assert len(files) == 15
    assert writer.store.task_ids() == ["t"]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_commit_refuses_numbers_that_are_not_finite(writer, task, value):
    """A whole block of NaN, which is the fill value, or a single infinity."""
    begin(writer, "t", task)
    write_split(writer, "t", "train", np.full((7, 4), np.nan, dtype=np.float32))
    bad = task.splits["test"].embeddings.copy()
    bad[1, 3] = value
    write_split(writer, "t", "test", bad)

    with pytest.raises(CorruptionError, match="row 0 is not finite"):
        writer.commit_task("t", make_counts(task), task.classes, {})
    write_split(writer, "t", "train", task.splits["train"].embeddings)
    with pytest.raises(CorruptionError, match="row 1 is not finite"):
        writer.commit_task("t", make_counts(task), task.classes, {})


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("fill", [0.0, np.nan])
def test_every_block_is_a_file_whatever_is_in_it(writer, path, task, fill):
    """Zarr would leave out blocks that equal the fill value; then nobody could tell them apart."""
    begin(writer, "t", task)

    write_split(writer, "t", "train", np.full((7, 4), fill, dtype=np.float32))

    names = sorted(file.name for file in (path / "tasks/t/train/embeddings").glob("c.*"))
    assert names == ["c.0.0", "c.1.0", "c.2.0", "c.3.0"]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("index", [0, 3])
@pytest.mark.parametrize("damage", [b"", b"x" * 36, b"x" * 1000])
def test_a_damaged_block_is_written_over(writer, path, task, index, damage):
    """Also the last one, which is part padding: what is there is never read first."""
    begin(writer, "t", task)
    for split, entry in task.splits.items():
        write_split(writer, "t", split, entry.embeddings)
    (path / f"tasks/t/train/embeddings/c.{index}.0").write_bytes(damage)

    rows = task.splits["train"].embeddings[2 * index : 2 * index + 2]
    with Writer(path) as again:
        again.open(writer.fingerprint)
        again.write_block("t", "train", index, rows)
        again.commit_task("t", make_counts(task), task.classes, {})

    found = open_store(path).task("t").embeddings("train")
    np.testing.assert_array_equal(task.splits["train"].embeddings, found)


@pytest.mark.parametrize("shape", [(6, 4), (7, 3), (8, 4), (7,)])
def test_a_block_of_another_shape_is_refused(writer, task, shape):
    """A caller's mistake never becomes a block."""
    begin(writer, "t", task)

    with pytest.raises(ValueError, match="block 0 has 7 rows"):
        writer.write_block("t", "train", 0, np.zeros(shape, dtype=np.float32))


def test_a_manifest_is_a_function_of_the_arrays(tmp_path, content):
    """Two stores of the same content differ in nothing."""
    left, right = (write_store(tmp_path / name, content) for name in ("a.zarr", "b.zarr"))

    files = sorted(path.relative_to(left) for path in left.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(right) for path in right.rglob("*") if path.is_file())
    assert [
        name for name in files if (left / name).read_bytes() != (right / name).read_bytes()
    ] == []


def test_unlabelled_and_half_precision(tmp_path, content):
    """Stored as asked: half the bytes, digests over what is stored."""
    half = replace(content, store_dtype="float16")

    path = write_store(tmp_path / "s.zarr", half)

    chunk = path / "tasks/labelled/train/embeddings/c.0.0"
    assert chunk.stat().st_size == 7 * 4 * 2 + 4
    assert verify_store(path).faults == []


@pytest.mark.parametrize("rows", [0, 50_000_001])
def test_splits_that_no_reader_takes_are_not_begun(writer, path, rows):
    """Refused before days of work, not after."""
    ids = np.broadcast_to(np.zeros(16, dtype=np.uint8), (rows, 16))

    with pytest.raises(StoreError, match="cannot be used"):
        writer.create_task("t", {"train": (ids, None)})

    assert list((path / "tasks").iterdir()) == [path / "tasks/zarr.json"]


def test_metadata_that_no_reader_takes_are_not_written(writer, path, task):
    """Four megabytes of class names."""
    begin(writer, "t", task)
    for split, entry in task.splits.items():
        write_split(writer, "t", split, entry.embeddings)

    with pytest.raises(StoreError, match="more to be said"):
        writer.commit_task("t", make_counts(task), ["a", "b" * (4 << 20)], {})

    assert writer.store.incomplete() == ["t"]


@pytest.mark.parametrize("name", ["../x", "", "a/b", "a\nb", "\x1b[2J", ".t", "t.partial", "é"])
def test_names_cannot_leave_the_store(writer, path, task, name):
    """Of tasks, splits and runs, for everything that a writer does."""
    before = sorted(path.parent.rglob("*"))
    entry = task.splits["train"]
    split = (entry.row_ids, entry.labels)

    for action in (
        lambda: writer.create_task(name, {"train": split}),
        lambda: writer.create_task("t", {name: split}),
        lambda: writer.drop_task(name),
        lambda: writer.claim(name, lambda: None).__enter__(),
        lambda: writer.store.manifest(name),
    ):
        with pytest.raises(InputError, match="cannot be the name"):
            action()

    assert before == sorted(path.parent.rglob("*"))


# -- dropping and comparing ----------------------------------------------------------------------


def test_a_dropped_task_can_be_written_anew(writer, path, content):
    """With other rows; nothing of the old one is left."""
    write_task(writer, "t", content.tasks["labelled"])
    other = make_task("other", 4, {"train": 5}, ["c"])

    writer.drop_task("t")
    assert writer.store.present() == []
    write_task(writer, "t", other)

    assert writer.store.task("t").splits == ["train"]
    np.testing.assert_array_equal(
        other.splits["train"].embeddings, writer.store.task("t").embeddings("train")
    )
    assert sorted(entry.name for entry in (path / "tasks").iterdir()) == ["t", "zarr.json"]


def test_dropping_what_is_not_there_is_done(writer):
    """There is nothing to do."""
    writer.drop_task("t")


def test_creating_a_task_again_changes_nothing(writer, path, task):
    """Whoever comes second uses what is there, and compares."""
    begin(writer, "t", task)
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}

    begin(writer, "t", make_task("other", 4, {"train": 2}))

    assert before == {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}


def test_rows_are_compared_with_the_csv_s(writer, task):
    """Other rows, another order, other labels, or labels where there were none: refused."""
    begin(writer, "t", task)
    entry = task.splits["train"]
    arrays = writer.split_arrays("t", "train")
    check_rows(arrays, entry.row_ids, entry.labels, "here")

    for ids, labels in (
        (entry.row_ids[:-1], entry.labels[:-1]),
        (entry.row_ids[::-1], entry.labels),
        (entry.row_ids, 1 - entry.labels),
        (entry.row_ids, None),
    ):
        with pytest.raises(StoreError, match="are not those in the store"):
            check_rows(arrays, ids, labels, "here")


# -- the store as a whole --------------------------------------------------------------------------


def test_another_fingerprint_is_refused_field_by_field(path, content):
    """With both values of each field that differs, parameters singly; harmless on a terminal."""
    other = content.fingerprint.model_copy(
        update={"numerics_version": 2, "parameters": {"k": 4, "\x1b[31m": "\u202e"}}
    )

    with Writer(path) as writer, pytest.raises(FingerprintError) as caught:
        writer.open(other)

    message = str(caught.value)
    for line in ("numerics_version: 1 -> 2", "parameters.k: '(absent)' -> 4", "parameters.why: "):
        assert line in message
    assert "store_dtype" not in message
    assert message.replace("\n", "").isprintable()


def test_a_writer_needs_a_folder(tmp_path, content):
    """A file is refused; a folder of something else is not written into."""
    (tmp_path / "file").write_text("precious")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/notes").write_text("precious")

    with pytest.raises(InputError, match="this is a file"):
        Writer(tmp_path / "file")
    with Writer(tmp_path / "folder") as writer:
        made = create_empty(writer.path, content)
        with pytest.raises(NotFoundError, match="not an embedding store"):
            writer.open(content.fingerprint)

    assert not made
    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*"))
    assert left == ["file", "folder", "folder/notes"]


def test_an_empty_folder_becomes_a_store(tmp_path, content):
    """Somebody made the folder first, for its rights or its quota."""
    (tmp_path / "s.zarr").mkdir()

    path = write_store(tmp_path / "s.zarr", content)

    assert verify_store(path).holds


def test_a_store_that_could_not_be_created_leaves_nothing(path, tmp_path):
    """A canary of the wrong shape is a bug; its half-made store goes away."""
    stored = open_store(path)
    other = tmp_path / "other"
    other.mkdir()
    same_numbers = stored.canary().reshape(-1, 2)

    with pytest.raises(ValueError, match="shape"):
        create_store(other / "s.zarr", stored.root, same_numbers, make_run("first"))

    assert list(other.iterdir()) == []


def test_a_store_states_the_digest_of_its_own_canary(path, tmp_path):
    """A root that states that of other vectors is a bug too."""
    stored = open_store(path)

    with pytest.raises(ValueError, match="another canary"):
        create_store(tmp_path / "o.zarr", stored.root, stored.canary() + 1, make_run("first"))

    assert not (tmp_path / "o.zarr").exists()


def in_a_file(folder: Path) -> Path:
    (folder / "file").touch()
    return folder / "file" / "s.zarr"


def in_no_real_folder(folder: Path) -> Path:
    del folder
    return Path("/proc/no-such-folder/s.zarr")


def with_a_name_too_long(folder: Path) -> Path:
    return folder / ("s" * 300)


@pytest.mark.parametrize("place", [in_a_file, in_no_real_folder, with_a_name_too_long])
def test_a_place_where_no_store_can_be_is_a_mistake(path, tmp_path, place):
    """Nothing was started: not by entering a writer, nor by creating a store."""
    stored = open_store(path)
    where = place(tmp_path)

    with pytest.raises(InputError, match="cannot be made or written here"), Writer(where):
        pass
    with pytest.raises(InputError, match="cannot be made or written here") as caught:
        create_store(where, stored.root, stored.canary(), make_run("first"))

    assert caught.value.exit_code == 2


def test_a_task_s_stamp_tells_generations_apart(writer, task):
    """The same rows written again are another task; where there is none, there is no stamp."""
    assert writer.stamp("t") is None
    write_task(writer, "t", task)
    before = writer.stamp("t")
    digest = writer.store.manifest("t").digest
    assert before == writer.stamp("t")

    writer.drop_task("t")
    write_task(writer, "t", task)

    assert digest == writer.store.manifest("t").digest
    assert before != writer.stamp("t")


@pytest.mark.parametrize("name", ["logs", "@eaDir", "#recycle", "lost+found"])
def test_a_foreign_folder_in_the_root_does_not_hinder_sealing(writer, task, name):
    """Whatever lies in it; who verifies is told of it, and of nothing else."""
    write_task(writer, "t", task)
    (writer.path / name / "deep").mkdir(parents=True)
    (writer.path / name / "zarr.json").write_text("no JSON", encoding="utf-8")

    assert writer.seal() is None

    assert open_store(writer.path).task_ids() == ["t"]
    (fault,) = verify_store(writer.path).faults
    assert fault.problem == "nothing in the store vouches for this"
    assert name in fault.where


def test_sealing_lists_the_tasks(store, content):
    """And nothing is written when it is sealed again."""
    seal = open_store(store).root.seal
    before = (store / "zarr.json").stat()
    assert sorted(content.tasks) == sorted(seal.tasks)
    assert seal.tasks["labelled"] == open_store(store).task("labelled").manifest.digest

    with Writer(store) as writer:
        assert writer.seal() is None

    assert before.st_ino == (store / "zarr.json").stat().st_ino


def test_an_incomplete_store_is_not_sealed(writer, task):
    """The reason names the tasks."""
    begin(writer, "t", task)

    assert writer.seal() == "1 of its tasks are incomplete: t"
    assert not writer.store.sealed


def test_a_store_with_an_incomplete_task_does_not_stay_sealed(store, content):
    """Whoever began one without taking the seal off, the next to seal puts it right."""
    with Writer(store) as writer:
        writer.open(content.fingerprint)
        begin(writer, "begun", content.tasks["labelled"])
        assert "incomplete: begun" in writer.seal()

    assert not open_store(store).sealed


def test_a_sealed_store_is_unsealed_before_it_changes(store, content):
    """The seal and the consolidated metadata go together."""
    with Writer(store) as writer:
        writer.open(content.fingerprint)
        writer.unseal()
        assert not writer.store.sealed
        assert "consolidated_metadata" not in json.loads((store / "zarr.json").read_text())
        write_task(writer, "third", make_task("third", 4, {"train": 2}))
        assert writer.seal() is None

    assert open_store(store).task_ids() == ["labelled", "third", "unlabelled"]
    assert verify_store(store).holds


def test_sealing_mends_the_root(store):
    """Consolidated metadata that were damaged, a task that was dropped or copied in by hand."""
    root = json.loads((store / "zarr.json").read_text())
    root["consolidated_metadata"]["metadata"].pop("tasks")
    (store / "zarr.json").write_text(json.dumps(root))
    (store / "tasks/unlabelled").rename(store / "tasks/moved")
    text = (store / "tasks/moved/zarr.json").read_text()
    (store / "tasks/moved/zarr.json").write_text(text.replace('"unlabelled"', '"moved"'))
    assert not verify_store(store).holds

    with Writer(store) as writer:
        assert writer.seal() is None

    assert open_store(store).task_ids() == ["labelled", "moved"]
    assert verify_store(store).holds


def test_what_others_wrote_into_the_root_stays(store, content):
    """Attributes beside ours, and fields of a newer minor version, outlive unsealing."""
    root = json.loads((store / "zarr.json").read_text())
    root["attributes"]["theirs"] = [1]
    (store / "zarr.json").write_text(json.dumps(root))

    with Writer(store) as writer:
        writer.open(content.fingerprint)
        writer.unseal()
        assert writer.seal() is None

    assert json.loads((store / "zarr.json").read_text())["attributes"]["theirs"] == [1]
    assert verify_store(store).holds


def test_sealing_sweeps(store):
    """Nobody else can be writing then."""
    stray = store / "tasks/labelled/zarr.json.0123abcd.partial"
    stray.write_text("")

    with Writer(store) as writer:
        writer.seal()

    assert not stray.exists()


def test_a_task_may_be_called_like_a_stray_s_folder(tmp_path, content):
    """Only what writers leave is swept, whatever users call their tasks."""
    tasks = {"a.partial.b": content.tasks["unlabelled"]}

    path = write_store(tmp_path / "s.zarr", replace(content, tasks=tasks))

    assert open_store(path).task_ids() == ["a.partial.b"]


def test_locks_are_gone_when_writers_are(tmp_path, content):
    """Whether the store was sealed or not, nothing is left beside it."""
    path = write_store(tmp_path / "s.zarr", content, seal=False)
    assert [path] == list(tmp_path.iterdir())
    with Writer(path) as writer, writer.claim("t", lambda: None):
        assert sorted(file.name for file in (tmp_path / ".s.zarr.locks").iterdir()) == [
            "task-t",
            "writers",
        ]

    assert [path] == list(tmp_path.iterdir())


def test_run_records_can_be_written_again(path):
    """Once when a run starts, and once when it has ended."""
    run = make_run("second").model_copy(update={"started": "2026-01-02"})
    with Writer(path) as writer:
        writer.record_run(run)
        writer.record_run(run.model_copy(update={"outcome": "finished"}))

    assert [(record.run, record.outcome) for record in open_store(path).runs()] == [
        ("made-by-hand", None),
        ("second", "finished"),
    ]

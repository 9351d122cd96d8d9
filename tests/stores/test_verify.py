"""What verifying a store reports: incomplete tasks, strays, and what nobody vouches for."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import zarr

from geneb.errors import BusyError, CorruptionError, NotFoundError
from geneb.stores import open_store
from geneb.stores.verify import verify_store
from geneb.stores.zarr_store import Writer
from geneb.testing.made_stores import write_store


def problems(path: Path) -> list[str]:
    return [fault.problem for fault in verify_store(path).faults]


def begin(path: Path, content, task: str) -> None:
    """Create a task's arrays and stop there."""
    with Writer(path) as writer:
        writer.open(content.fingerprint)
        entry = content.tasks["labelled"].splits["train"]
        writer.create_task(task, {"train": (entry.row_ids, entry.labels)})


def stray_files(path: Path) -> list[Path]:
    """What killed writers leave: in chunks' and groups' folders, in tasks/, beside the store."""
    strays = [
        path / "tasks/labelled/train/embeddings" / f"c.0.{'0' * 32}.partial",
        path / "tasks/labelled/zarr.json.0123abcd.partial",
        path / "tasks/.other.0123abcd.partial/train/zarr.json",
        path.with_name(f".{path.name}.0123abcd.partial") / "zarr.json",
    ]
    for stray in strays:
        stray.parent.mkdir(parents=True, exist_ok=True)
        stray.write_bytes(b"{}")
    return strays


def test_a_good_store_holds(store, content):
    """Everything is counted, nothing is written."""
    before = {path: path.stat().st_mtime_ns for path in store.rglob("*")}

    result = verify_store(store)

    assert result.holds
    assert result.sealed
    assert content.fingerprint.id == result.fingerprint_id
    # labelled: two splits of three arrays; unlabelled: one of two. All are of one block.
    assert (result.tasks, result.blocks) == (2, 8)
    chunks = (store / "tasks").rglob("c.*")
    assert sum(path.stat().st_size for path in chunks) == result.bytes
    assert before == {path: path.stat().st_mtime_ns for path in store.rglob("*")}
    assert [store] == list(store.parent.iterdir())
    assert json.loads(json.dumps(result.as_json()))["holds"] is True


def test_a_store_that_is_not_there_is_not_found(tmp_path):
    """That is no fault of a store."""
    with pytest.raises(NotFoundError):
        verify_store(tmp_path / "s.zarr")


def test_an_unsealed_complete_store_holds(tmp_path, content):
    """It only is not sealed."""
    result = verify_store(write_store(tmp_path / "s.zarr", content, seal=False))

    assert result.holds
    assert not result.sealed


def test_an_incomplete_task_is_reported(tmp_path, content):
    """And is no complete task, while the others are."""
    path = write_store(tmp_path / "s.zarr", content, seal=False)
    begin(path, content, "begun")

    result = verify_store(path)

    assert [(f"{path}, task begun", "this task is incomplete")] == [
        (fault.where, fault.problem) for fault in result.faults
    ]
    assert result.tasks == 2
    assert open_store(path).incomplete() == ["begun"]
    assert open_store(path).task_ids() == ["labelled", "unlabelled"]


def test_a_task_missing_from_a_sealed_store_is_found(store):
    """The seal lists it."""
    shutil.rmtree(store / "tasks/unlabelled")

    faults = verify_store(store).faults

    assert [f"{store}, tasks/unlabelled"] == [
        fault.where for fault in faults if "the seal lists" in fault.problem
    ]
    assert open_store(store).task_ids() == ["labelled", "unlabelled"]


def test_a_task_added_to_a_sealed_store_is_found(store):
    """The seal does not list it; readers do not offer it."""
    other = shutil.copytree(store / "tasks/unlabelled", store / "tasks/other")
    text = (other / "zarr.json").read_text().replace('"unlabelled"', '"other"')
    (other / "zarr.json").write_text(text)

    assert "this task was added after sealing" in problems(store)
    assert open_store(store).task_ids() == ["labelled", "unlabelled"]


@pytest.mark.parametrize(
    "place",
    [
        "tasks/notes.txt",
        "tasks/labelled/notes.txt",
        "tasks/labelled/dev/zarr.json",
        "tasks/labelled/train/extra/zarr.json",
        "tasks/labelled/train/embeddings/c.7.0",
        "tasks/labelled/train/labels/c.0.bak",
        "canary/sequences.txt",
        "runs/log.txt",
        "more/zarr.json",
    ],
)
def test_what_nobody_vouches_for_is_a_fault(tmp_path, content, place):
    """Below the root there is nothing but the format's, and no other group in it."""
    path = write_store(tmp_path / "s.zarr", content, seal=False)
    (path / place).parent.mkdir(exist_ok=True)
    (path / place).write_bytes(b"{}")

    assert problems(path) == ["nothing in the store vouches for this"]


def test_files_beside_the_groups_may_say_more(store):
    """A README or a licence in the root, and hidden files anywhere, are nobody's business."""
    (store / "README.md").write_text("Made by us.")
    (store / ".gitattributes").write_text("")
    (store / "tasks/.DS_Store").write_text("")

    assert problems(store) == []


def test_strays_are_listed_and_no_fault(store):
    """Paths are relative to where the store lies."""
    strays = stray_files(store)

    result = verify_store(store)

    assert result.holds
    expected = [*strays[:2], strays[2].parent.parent, strays[3].parent]
    assert sorted(str(path.relative_to(store.parent)) for path in expected) == sorted(result.strays)


def test_strays_of_other_stores_are_not_ours(store):
    """Neither those of a store whose name goes on, nor a folder that only looks alike."""
    other = store.with_name(f".{store.name}.more.zarr.0123abcd.partial")
    alike = store.with_name(f".{store.name}.mine.partial")
    for path in (other, alike):
        path.mkdir()

    result = verify_store(store, clean_strays=True)

    assert result.strays == []
    assert other.is_dir()
    assert alike.is_dir()


def test_clean_removes_strays_and_nothing_else(store):
    """Locks are gone afterwards too."""
    before = sorted(store.rglob("*"))
    stray_files(store)

    result = verify_store(store, clean_strays=True)

    assert result.holds
    assert result.strays == []
    assert before == sorted(store.rglob("*"))
    assert [store] == list(store.parent.iterdir())


def test_clean_waits_for_nobody(store):
    """While somebody writes, strays may be theirs: refused, and nothing is removed."""
    strays = stray_files(store)

    with Writer(store), pytest.raises(BusyError, match="is writing to this store"):
        verify_store(store, clean_strays=True)

    assert all(stray.exists() for stray in strays)


def test_a_link_to_a_store_is_a_store(store, tmp_path):
    """The link is the user's; whoever writes through the target still is in the way of cleaning."""
    link = tmp_path / "link.zarr"
    link.symlink_to(store)

    assert verify_store(link).holds
    with Writer(store), pytest.raises(BusyError):
        verify_store(link, clean_strays=True)


def test_a_store_may_be_named_by_a_dot(store, monkeypatch):
    """From within its folder."""
    monkeypatch.chdir(store)

    assert verify_store(Path(), clean_strays=True).holds
    with Writer(Path()) as writer:
        assert writer.seal() is None
    assert [store] == list(store.parent.iterdir())


def test_damage_to_one_split_does_not_hide_another_s(store):
    """All faults are listed, whatever kind they are of."""
    (store / "tasks/labelled/train/row_id/zarr.json").write_text("{}")
    (store / "tasks/labelled/test/labels/c.0").unlink()
    (store / "tasks/unlabelled/train/embeddings/c.0.0").unlink()

    wheres = [fault.where for fault in verify_store(store).faults]

    for where in ("train/row_id", "test/labels, block 0", "unlabelled, train/embeddings, block 0"):
        assert [found for found in wheres if where in found], wheres


def test_progress_is_told_task_by_task(store):
    """The total first, then each task, then the end."""
    news: list[tuple] = []

    class Recorder:
        def start(self, total, unit):
            news.append((total, unit))

        def advance(self, steps, what=""):
            news.append((steps, what))

        def say(self, message):
            raise AssertionError(message)

        def finish(self):
            news.append(())

    verify_store(store, progress=Recorder())

    assert news == [(2, "tasks"), (1, "labelled"), (1, "unlabelled"), ()]


def test_another_canary_is_found(store):
    """The root vouches for its vectors: one with a checksum in order is not enough."""
    zarr.open_array(store / "canary/embeddings", mode="r+")[3, 1] += 1

    (fault,) = verify_store(store).faults

    assert fault.problem == "the canary's vectors are not those that the store states"
    with pytest.raises(CorruptionError, match="canary's vectors"):
        open_store(store).canary()

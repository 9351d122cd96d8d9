"""``geneb store info`` and ``geneb store verify``, run as a user runs them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from support.command import check_mistake, geneb

from geneb.stores.zarr_store import Writer
from geneb.testing.made_stores import StoreContent, make_task, write_store

WIDE = 1 << 17  # 33 rows of this width are two blocks of 17 rows


@pytest.fixture(scope="module")
def content() -> StoreContent:
    return StoreContent(
        {
            "wide": make_task("wide", WIDE, {"train": 33, "test": 1}, ["a", "b"]),
            "small": make_task("small", WIDE, {"train": 1}),
        },
        WIDE,
    )


@pytest.fixture(scope="module")
def original(tmp_path_factory, content) -> Path:
    return write_store(tmp_path_factory.mktemp("made") / "s.zarr", content)


@pytest.fixture
def store(original, tmp_path) -> Path:
    """A sealed store; one of its splits has two blocks."""
    return Path(shutil.copytree(original, tmp_path / "s.zarr"))


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


def test_info_says_what_is_in_a_store(store):
    """For people on stdout; nothing on stderr; nothing is written."""
    done = geneb("store", "info", store)

    assert (done.code, done.err) == (0, "")
    rows = [line.split() for line in done.out.splitlines()]
    for row in (
        ["model", "made-by-hand"],
        ["sealed", "yes"],
        ["dim", str(WIDE)],
        ["why", "a", "test"],
        ["tasks", "complete", "2"],
        ["tasks", "incomplete", "none"],
        ["wide", "train", "33", "33", "0", "0", "0", "0"],
        ["small", "train", "1", "1", "0", "0", "0", "0"],
    ):
        assert row in rows, done.out


def test_info_for_programs(store, content):
    """One JSON object with everything, digests in full."""
    done = geneb("store", "info", store, "--json")

    assert (done.code, done.err) == (0, "")
    facts = done.json
    assert facts["fingerprint_id"] == content.fingerprint.id
    assert facts["tasks"] == ["small", "wide"]
    assert [(row["task"], row["split"], row["rows"]) for row in facts["splits"]] == [
        ("small", "train", 1),
        ("wide", "train", 33),
        ("wide", "test", 1),
    ]
    files = [path for path in store.rglob("*") if path.is_file()]
    assert facts["files"] == len(files)
    assert facts["bytes"] == sum(path.stat().st_size for path in files)


def test_verify_says_that_all_holds(store):
    """Exit 0; counts on stdout, status on stderr."""
    done = geneb("store", "verify", store, fresh=True)

    assert done.code == 0, done.err
    assert "everything holds" in done.err
    rows = [line.split() for line in done.out.splitlines()]
    assert ["tasks", "verified", "2"] in rows
    # wide: train has 2 + 1 + 1, test 3 blocks; small is unlabelled: 2.
    assert ["blocks", "9"] in rows
    assert ["faults", "0"] in rows


def test_verify_names_task_split_and_block(store):
    """A flipped byte in the second block: exit 1, one message, no traceback."""
    flip(store / "tasks/wide/train/embeddings/c.1.0", 1 << 20)

    done = geneb("store", "verify", store)

    check_mistake(
        done, "task wide, train/embeddings, block 1 (c.1.0)", "checksum", "1 fault(s)", code=1
    )
    assert "block 0" not in done.err


def test_verify_for_programs_lists_every_fault(store):
    """Faults are in the JSON; the exit code is the same."""
    flip(store / "tasks/wide/train/labels/c.0", 3)
    (store / "tasks/wide/test/row_id/c.0.0").unlink()
    shutil.rmtree(store / "tasks/small")

    done = geneb("store", "verify", store, "--json", "--quiet")

    assert done.code == 1
    assert done.json["holds"] is False
    wheres = " | ".join(fault["where"] for fault in done.json["faults"])
    for where in ("wide, train/labels, block 0", "wide, test/row_id, block 0", "tasks/small"):
        assert where in wheres


def test_verify_tells_of_strays_and_clean_removes_them(store):
    """They are no fault; --clean is refused while somebody writes."""
    stray = store / "tasks/wide/train/embeddings" / f"c.0.{'0' * 32}.partial"
    stray.write_bytes(b"")

    told = geneb("store", "verify", store)
    with Writer(store):
        busy = geneb("store", "verify", store, "--clean")
    assert stray.exists()
    cleaned = geneb("store", "verify", store, "--clean")

    assert told.code == 0
    assert "1 stray file(s)" in told.err
    check_mistake(busy, "a process is writing to this store", "wait until it has finished")
    assert cleaned.code == 0
    assert not stray.exists()
    assert [store] == list(store.parent.iterdir())


def test_an_incomplete_task_is_a_fault(tmp_path, content):
    """With what to do about it."""
    path = write_store(tmp_path / "s.zarr", StoreContent({}, WIDE), seal=False)
    entry = content.tasks["small"].splits["train"]
    with Writer(path) as writer:
        writer.open(content.fingerprint)
        writer.create_task("begun", {"train": (entry.row_ids, None)})

    check_mistake(geneb("store", "verify", path), "task begun", "incomplete", "geneb embed", code=1)
    assert "begun" in geneb("store", "info", path).out


@pytest.mark.parametrize("command", ["info", "verify"])
def test_what_is_no_store_is_one_message(tmp_path, command):
    """Nothing there, or a folder of something else: exit 2."""
    (tmp_path / "folder").mkdir()

    check_mistake(geneb("store", command, tmp_path / "nothing"), "there is no embedding store")
    check_mistake(geneb("store", command, tmp_path / "folder"), "not an embedding store")


@pytest.mark.parametrize("command", ["info", "verify"])
@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_a_stranger_s_text_does_nothing_to_a_terminal(tmp_path, command, as_json):
    """Names, parameters and folders with control characters, direction marks and broken bytes."""
    content = StoreContent({}, 4)
    path = write_store(tmp_path / "s.zarr", content, seal=False)
    root = json.loads((path / "zarr.json").read_text())
    root["attributes"]["geneb"]["benchmark_data"] = {"\x1b[2J": "\u202eevil\x9b31m\x7f"}
    root["attributes"]["geneb"]["model"]["source"] = "\x1b]0;title\x07\nall is well"
    (path / "zarr.json").write_text(json.dumps(root))
    (path / "extra\udcff\x1b[2J\n").mkdir()
    (path / "tasks/link\udcfe\x1b[2J").symlink_to(path)

    done = geneb("store", command, path, *as_json)

    assert "Traceback" not in done.err
    for text in (done.out, done.err):
        assert text.replace("\n", "").isprintable()
    if command == "verify":
        assert done.code == 1


def test_help_names_both():
    """With one line each."""
    done = geneb("store", "--help")

    assert done.code == 0
    assert "info " in done.out
    assert "verify " in done.out

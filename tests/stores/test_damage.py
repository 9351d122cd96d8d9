"""One wrong byte anywhere is found, and said where it is."""

from __future__ import annotations

import errno
import json
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from geneb.errors import CorruptionError, StoreError
from geneb.stores import arrays, layout, open_store
from geneb.stores.verify import verify_store
from geneb.testing.made_stores import write_store

EXAMPLES = settings(max_examples=25, deadline=None)


@pytest.fixture(scope="module")
def blocks(tmp_path_factory, content):
    """A sealed store whose splits have several blocks of two rows; each test mends what it did."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "BLOCK_BYTES", 2 * content.dim * layout.FLOAT_BYTES)
        yield write_store(tmp_path_factory.mktemp("damage") / "s.zarr", content)


def files_named(store: Path, pattern: str) -> list[Path]:
    return sorted(store.rglob(pattern))


@contextmanager
def changed(path: Path, data: bytes):
    """A file with other content for the length of a with-block."""
    before = path.read_bytes()
    path.write_bytes(data)
    try:
        yield
    finally:
        path.write_bytes(before)


def test_the_store_has_several_blocks_and_holds(blocks):
    """What the other tests of this file stand on."""
    names = [path.name for path in files_named(blocks / "tasks/labelled/train", "c.*")]

    assert names == ["c.0.0", "c.1.0", "c.2.0", "c.3.0", "c.0", "c.0.0"]
    assert verify_store(blocks).faults == []


@EXAMPLES
@given(data=st.data())
def test_a_changed_byte_in_any_chunk_is_found_and_named(blocks, data):
    """In numbers, padding and checksums; the fault names task, split and block."""
    chunk = data.draw(st.sampled_from(files_named(blocks, "c.*")))
    content = bytearray(chunk.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))

    with changed(chunk, bytes(content)):
        faults = verify_store(blocks).faults

    *_, split, name, key = chunk.parts
    index = key.split(".")[1]
    if chunk.is_relative_to(blocks / "canary"):
        where = f"{blocks}, canary/embeddings, block 0 (c.0.0)"
    else:
        where = f"{blocks}, task {chunk.parts[-4]}, {split}/{name}, block {index} ({key})"
    assert [(where, "this block's checksum does not hold")] == [
        (fault.where, fault.problem) for fault in faults
    ]


@EXAMPLES
@given(data=st.data())
def test_a_changed_byte_in_any_document_is_found_or_says_the_same(blocks, data):
    """Of a sealed store's zarr.json files, only the spaces can change without a fault."""
    path = data.draw(st.sampled_from(files_named(blocks, "zarr.json")))
    before = path.read_bytes()
    content = bytearray(before)
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))

    with changed(path, bytes(content)):
        faults = verify_store(blocks).faults

    assert faults or says_the_same(before, bytes(content)), content


def says_the_same(left: bytes, right: bytes) -> bool:
    return json.dumps(json.loads(left)) == json.dumps(json.loads(right))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("made-by-hand", "made-by-hamd"),
        ('"token_budget": 1024', '"token_budget": 1025'),
        ('"Made by hand"', '"Made by hamd"'),
        ('"version": "1.0"', '"version": "1.1"'),
        ('"kind": "inline"', '"kind": "inlime"'),
        ('"must_understand": false', '"must_understand": true'),
    ],
)
def test_a_sealed_root_says_what_was_sealed(blocks, old, new):
    """Also the fields that no number depends on: names, licences, where data come from."""
    text = (blocks / "zarr.json").read_text()
    assert old in text

    with changed(blocks / "zarr.json", text.replace(old, new, 1).encode()):
        assert not verify_store(blocks).holds


@pytest.mark.parametrize("node", ["", "tasks/labelled", "tasks/labelled/test/labels"])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_document_cut_short_is_found(blocks, node, share):
    """A manifest cut in half, or a root."""
    data = (blocks / node / "zarr.json").read_bytes()

    with changed(blocks / node / "zarr.json", data[: int(share * len(data))]):
        verification = verify_store(blocks)

    assert [fault for fault in verification.faults if node in fault.where]


def test_every_damaged_block_is_named(blocks):
    """All faults are listed, not the first alone; what is whole is read all the same."""
    folder = blocks / "tasks/labelled/train/embeddings"
    first, third = (folder / f"c.{index}.0" for index in (0, 2))

    with changed(first, b"x" * first.stat().st_size), changed(third, b""):
        verification = verify_store(blocks)

    wheres = [fault.where.rpartition("embeddings, ")[2] for fault in verification.faults]
    assert wheres == ["block 0 (c.0.0)", "block 2 (c.2.0)"]
    assert verification.tasks == 2


def test_reading_names_the_block(blocks):
    """And says what to do; other splits can be read."""
    chunk = blocks / "tasks/labelled/train/embeddings/c.1.0"
    task = open_store(blocks).task("labelled")

    with (
        changed(chunk, chunk.read_bytes()[:-1] + b"\x00"),
        pytest.raises(CorruptionError, match=r"task labelled, train/embeddings, block 1") as caught,
    ):
        task.embeddings("train")

    assert "--replace-task" in str(caught.value)
    assert task.embeddings("test").shape == (3, 4)


def test_a_failing_disk_is_a_fault_of_the_block(blocks, monkeypatch):
    """Other blocks are looked at all the same."""
    read_bytes = Path.read_bytes

    def fail(path):
        if path.name == "c.1.0":
            raise OSError(errno.EIO, "Input/output error")
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", fail)

    faults = verify_store(blocks).faults

    assert {fault.problem for fault in faults} == {"this block cannot be read"}
    assert {fault.found for fault in faults} == {"Input/output error"}
    assert [fault.where for fault in faults] == [
        f"{blocks}, task labelled, {split}/embeddings, block 1 (c.1.0)"
        for split in ("train", "test")
    ]


def test_too_little_memory_is_one_message(blocks, monkeypatch):
    """Whether the store is honest or claims too much."""

    def refuse(*args, **kwargs):
        raise MemoryError

    task = open_store(blocks).task("labelled")
    monkeypatch.setattr(arrays.np, "empty", refuse)

    with pytest.raises(StoreError, match="does not fit into memory"):
        task.embeddings("train")


def test_two_chunks_that_changed_places_are_found(blocks, tmp_path):
    """Each has a good checksum: only the digest over all rows tells."""
    copy = Path(shutil.copytree(blocks, tmp_path / "s.zarr"))
    folder = copy / "tasks/labelled/train/embeddings"
    (folder / "c.0.0").rename(folder / "aside")
    (folder / "c.1.0").rename(folder / "c.0.0")
    (folder / "aside").rename(folder / "c.1.0")

    faults = verify_store(copy).faults

    assert [fault.where for fault in faults] == [f"{copy}, task labelled, train"]
    assert "the embeddings are not those" in faults[0].problem


def test_other_labels_are_found(blocks, tmp_path):
    """With a good checksum and in range: only the digest over the pairs tells."""
    copy = Path(shutil.copytree(blocks, tmp_path / "s.zarr"))
    labels = zarr.open_array(copy / "tasks/labelled/train/labels", mode="r+")
    labels[:] = 1 - labels[:]

    faults = verify_store(copy).faults

    assert [fault.where for fault in faults] == [f"{copy}, task labelled, train"]
    assert "row ids and labels are not those" in faults[0].problem

"""What we write is a Zarr v3 store to everybody else; FORMAT.md tells the truth."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from importlib.resources import files

import numpy as np
import pytest
import zarr

from geneb.embedding.canary import canary_sequences
from geneb.stores import open_store
from geneb.stores.verify import verify_store
from geneb.testing.made_stores import StoreContent, make_task, write_store

ARRAYS = {
    "embeddings": ("float32", "NaN", [{"name": "bytes", "configuration": {"endian": "little"}}]),
    "labels": ("int64", -1, [{"name": "bytes", "configuration": {"endian": "little"}}]),
    "row_id": ("uint8", 0, [{"name": "bytes"}]),
}


def read_all(group, content):
    """Every array of a store's content, compared through plain Zarr."""
    for name, task in content.tasks.items():
        for split, entry in task.splits.items():
            node = f"tasks/{name}/{split}"
            np.testing.assert_array_equal(entry.embeddings, group[f"{node}/embeddings"][:])
            np.testing.assert_array_equal(entry.row_ids, group[f"{node}/row_id"][:])
            if entry.labels is None:
                assert f"{node}/labels" not in group
            else:
                np.testing.assert_array_equal(entry.labels, group[f"{node}/labels"][:])


def test_plain_zarr_reads_a_sealed_store(store, content):
    """Without a warning, with and without consolidated metadata."""
    read_all(zarr.open_group(store, mode="r"), content)
    read_all(zarr.open_consolidated(store), content)
    read_all(zarr.open_group(store, mode="r", use_consolidated=False), content)


def test_plain_zarr_reads_an_unsealed_store(tmp_path, content):
    """A store without a seal has no consolidated metadata, and needs none."""
    path = write_store(tmp_path / "s.zarr", content, seal=False)

    group = zarr.open_group(path, mode="r")

    assert group.metadata.consolidated_metadata is None
    read_all(group, content)


def test_plain_zarr_walks_the_store_without_a_warning(store, content):
    """All that lies in the folder is a node: groups, and arrays with their shapes."""
    group = zarr.open_group(store, mode="r", use_consolidated=False)
    found = {
        name: node.shape if isinstance(node, zarr.Array) else None
        for name, node in group.members(max_depth=None)
    }

    expected = {"canary": None, "canary/embeddings": (16, content.dim), "runs": None}
    expected |= {"runs/made-by-hand": None, "tasks": None}
    for name, task in content.tasks.items():
        expected[f"tasks/{name}"] = None
        for split, entry in task.splits.items():
            node, rows = f"tasks/{name}/{split}", len(entry.row_ids)
            expected |= {node: None, f"{node}/embeddings": (rows, content.dim)}
            expected[f"{node}/row_id"] = (rows, 16)
            if entry.labels is not None:
                expected[f"{node}/labels"] = (rows,)
    assert expected == found
    consolidated = zarr.open_consolidated(store).members(max_depth=None)
    assert sorted(expected) == sorted(name for name, _ in consolidated)


@pytest.mark.filterwarnings("ignore:Consolidated metadata is currently not part")
def test_consolidated_metadata_is_what_zarr_would_write(store, tmp_path):
    """Zarr's own consolidation of the same store gives the same document."""
    ours = json.loads((store / "zarr.json").read_bytes())["consolidated_metadata"]
    copy = shutil.copytree(store, tmp_path / "copy.zarr")

    zarr.consolidate_metadata(copy)

    theirs = json.loads((copy / "zarr.json").read_bytes())["consolidated_metadata"]
    assert theirs == ours
    assert verify_store(copy).faults == []


def test_array_documents_are_as_specified(store):
    """Each array's zarr.json, member by member; nothing else stands in it."""
    found = sorted((store / "tasks").rglob("*/*/*/zarr.json"))
    assert len(found) == 8
    for path in found:
        dtype, fill, codecs = ARRAYS[path.parent.name]
        document = json.loads(path.read_bytes())
        chunk = document["shape"]  # small splits are one block
        expected = {
            "zarr_format": 3,
            "node_type": "array",
            "shape": chunk,
            "data_type": dtype,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
            "fill_value": fill,
            "codecs": [*codecs, {"name": "crc32c"}],
            "attributes": {},
            "storage_transformers": [],
        }
        assert expected == document


def test_chunk_files_are_numbers_and_a_checksum(store, content):
    """Little-endian rows as they are, and four bytes of CRC32C."""
    entry = content.tasks["labelled"].splits["train"]
    folder = store / "tasks" / "labelled" / "train"
    expected = {
        "embeddings/c.0.0": entry.embeddings.astype("<f4").tobytes(),
        "labels/c.0": entry.labels.astype("<i8").tobytes(),
        "row_id/c.0.0": entry.row_ids.tobytes(),
    }

    for name, data in expected.items():
        assert data == (folder / name).read_bytes()[:-4]
        assert len(data) + 4 == (folder / name).stat().st_size


def test_chunks_equal_to_the_fill_value_are_files(tmp_path):
    """Labels of -1 cannot be; row ids of zeros and vectors of zeros are written all the same."""
    task = make_task("t", 4, {"train": 3}, ["a"])
    task.splits["train"].embeddings[:] = 0
    zeros = replace(task.splits["train"], row_ids=np.zeros((3, 16), dtype=np.uint8))
    content = StoreContent({"t": replace(task, splits={"train": zeros})}, 4)

    path = write_store(tmp_path / "s.zarr", content)

    assert (path / "tasks/t/train/row_id/c.0.0").is_file()
    assert (path / "tasks/t/train/embeddings/c.0.0").is_file()
    assert verify_store(path).faults == []


@pytest.fixture(scope="session")
def examples() -> list[str]:
    """The Python examples of FORMAT.md: reading, then writing."""
    text = (files("geneb.stores") / "FORMAT.md").read_text(encoding="utf-8")
    found = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert len(found) == 2
    return found


def run(example: str) -> dict:
    """Run an example; return its names."""
    names: dict = {}
    exec(compile(example, "FORMAT.md", "exec"), names)
    return names


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_the_format_s_reading_example_holds(examples, tmp_path, monkeypatch, dtype):
    """It computes every digest that a store of ours states."""
    tasks = {"a": make_task("a", 4, {"train": 3, "dev": 2}, ["x", "y"])}
    tasks["b"] = make_task("b", 4, {"test": 2})
    write_store(tmp_path / "store.zarr", StoreContent(tasks, 4, dtype))
    monkeypatch.chdir(tmp_path)

    names = run(examples[0])

    assert names["task"] == "b"


@pytest.mark.parametrize(
    "change",
    [
        ("tasks/labelled/zarr.json", '"truncated": 0', '"truncated": 1'),
        ("zarr.json", '"token_budget": 1024', '"token_budget": 1025'),
        ("zarr.json", '"numerics_version": 1', '"numerics_version": 2'),
    ],
)
@pytest.mark.filterwarnings("ignore:Consolidated metadata is currently not part")
def test_the_format_s_reading_example_finds_changes(examples, store, monkeypatch, change):
    """A store that states something else fails one of its assertions."""
    name, old, new = change
    text = (store / name).read_text()
    assert old in text
    (store / name).write_text(text.replace(old, new, 1))
    zarr.consolidate_metadata(store)
    store.rename(store.with_name("store.zarr"))
    monkeypatch.chdir(store.parent)

    with pytest.raises(AssertionError):
        run(examples[0])


def test_the_format_s_reading_example_finds_another_canary(examples, store, monkeypatch):
    """Written by Zarr, its checksum in order."""
    zarr.open_array(store / "canary/embeddings", mode="r+")[3, 1] += 1
    store.rename(store.with_name("store.zarr"))
    monkeypatch.chdir(store.parent)

    with pytest.raises(AssertionError):
        run(examples[0])


@pytest.mark.filterwarnings("ignore:Consolidated metadata is currently not part")
def test_the_format_s_writing_example_makes_a_store(examples, tmp_path, monkeypatch):
    """A store made without our code is read and verified by it; its canary is ours."""
    monkeypatch.chdir(tmp_path)

    names = run(examples[1])

    verification = verify_store(tmp_path / "mine.zarr")
    assert verification.faults == []
    assert verification.sealed
    stored = open_store(tmp_path / "mine.zarr").task("my-task")
    assert stored.classes == ["AT", "GC"]
    assert stored.labels("train").tolist() == [0, 0, 1]
    assert stored.embeddings("test").tolist() == [[0, 0, 0, 1], [0, 0.5, 0.5, 0]]
    assert names["canary"] == list(canary_sequences())

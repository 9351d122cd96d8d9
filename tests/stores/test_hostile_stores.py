"""Stores made to do harm: each is one clear error, and one that verifying lists."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import zarr

from geneb.base.canonical import digest
from geneb.errors import GenebError, NotFoundError, StoreError
from geneb.stores import open_store
from geneb.stores.verify import verify_store
from geneb.testing.made_stores import write_store

TRAIN = "tasks/labelled/train"


def document(store: Path, node: str) -> dict:
    return json.loads((store / node / "zarr.json").read_bytes())


def rewrite(store: Path, node: str, value: object) -> None:
    text = value if isinstance(value, str | bytes) else json.dumps(value)
    data = text if isinstance(text, bytes) else text.encode("utf-8")
    (store / node / "zarr.json").write_bytes(data)


def change_root(store: Path, /, **fields: object) -> None:
    """Change the root's fields; the seal is made to fit, as somebody who means harm would."""
    root = document(store, "")
    geneb = root["attributes"]["geneb"] | fields
    if geneb["seal"]:
        geneb["seal"]["root_sha256"] = digest({**geneb, "seal": None})
    root["attributes"]["geneb"] = geneb
    rewrite(store, "", root)


def change_manifest(store: Path, task: str, /, **fields: object) -> None:
    """Change a manifest's fields and list the new one in the seal."""
    group = document(store, f"tasks/{task}")
    group["attributes"]["geneb"] |= fields
    rewrite(store, f"tasks/{task}", group)
    seal = document(store, "")["attributes"]["geneb"]["seal"]
    seal["tasks"][task] = digest(group["attributes"]["geneb"])
    change_root(store, seal=seal)


def read_everything(path: Path) -> None:
    store = open_store(path)
    store.canary()
    store.runs()
    for name in store.task_ids():
        task = store.task(name)
        for split in task.splits:
            task.embeddings(split)
            task.labels(split)
            task.row_ids(split)


def check_refused(path: Path, *words: str) -> None:
    """Reading is refused with these words, verifying finds it, and no message does harm."""
    with pytest.raises(GenebError) as caught:
        read_everything(path)
    message = str(caught.value)
    assert not [word for word in words if word not in message], message
    assert message.replace("\n", "").isprintable()
    try:
        verification = verify_store(path)
    except NotFoundError:
        return
    assert verification.faults
    for fault in verification.faults:
        assert str(fault).replace("\n", "").isprintable()


# -- what is no file or no folder --------------------------------------------------------------


@pytest.mark.parametrize(
    "place",
    [
        "zarr.json", "tasks", "runs", "canary", "tasks/labelled", TRAIN, f"{TRAIN}/embeddings",
        f"{TRAIN}/labels", "tasks/labelled/zarr.json", f"{TRAIN}/embeddings/zarr.json",
        f"{TRAIN}/embeddings/c.0.0", f"{TRAIN}/labels/c.0", f"{TRAIN}/row_id/c.0.0",
        "canary/embeddings/c.0.0", "runs/made-by-hand",
    ],
)  # fmt: skip
def test_a_link_is_refused_wherever_it_stands(store, tmp_path, place):
    """Even where it points to the very bytes that should be there."""
    (store / place).rename(tmp_path / "elsewhere")
    (store / place).symlink_to(tmp_path / "elsewhere")

    check_refused(store)


@pytest.mark.parametrize(
    "place",
    [
        "zarr.json",
        "tasks/labelled/zarr.json",
        f"{TRAIN}/embeddings/zarr.json",
        f"{TRAIN}/embeddings/c.0.0",
        f"{TRAIN}/labels/c.0",
    ],
)
def test_a_pipe_does_not_make_anybody_wait(store, place):
    """What nobody writes to would block whoever opens it."""
    (store / place).unlink()
    os.mkfifo(store / place)

    check_refused(store, place.rpartition("/")[2])


@pytest.mark.parametrize("place", ["zarr.json", f"{TRAIN}/labels/zarr.json", f"{TRAIN}/labels/c.0"])
def test_a_folder_in_a_file_s_place_is_refused(store, place):
    """A folder called zarr.json is no document, and one called c.0 no block."""
    (store / place).unlink()
    (store / place).mkdir()

    check_refused(store)


@pytest.mark.parametrize("place", ["tasks", "runs", "canary", "tasks/labelled", TRAIN])
def test_a_file_in_a_folder_s_place_is_refused(store, place):
    """Nothing can be listed in it."""
    shutil.rmtree(store / place)
    (store / place).write_bytes(b"{}")

    check_refused(store)


def test_a_file_is_no_store(tmp_path):
    """Neither is a folder without zarr.json, nor one of Zarr v2."""
    (tmp_path / "file").write_bytes(b"")
    zarr.create_group(tmp_path / "v2.zarr", zarr_format=2)
    zarr.create_group(tmp_path / "other.zarr", zarr_format=3, attributes={"geneb": {"a": 1}})

    check_refused(tmp_path / "file")
    check_refused(tmp_path / "v2.zarr", "no zarr.json")
    check_refused(tmp_path / "other.zarr", "not an embedding store")
    check_refused(tmp_path / "nothing", "there is no embedding store")


# -- documents ---------------------------------------------------------------------------------


@pytest.mark.parametrize("node", ["", "tasks/labelled", f"{TRAIN}/labels"])
@pytest.mark.parametrize(
    "text",
    [
        b"", b"{", b"null", b"[]", b"7", b'"text"', b"\xff\xfe{}", b"\xef\xbb\xbf{}",
        b'{"a": NaN}', b'{"a": 1e999}', b'{"a": 1, "a": 2}', b'{"a": "\\ud800"}',
        b"[" * 100_000, b'{"a":' * 5000, b'{"a": ' + b"9" * 5000 + b"}", b'"' + b'\\"' * 1_000_000,
    ],
    ids=lambda text: repr(text[:12]) if isinstance(text, bytes) else None,
)  # fmt: skip
def test_a_document_that_is_no_document_is_refused(store, node, text):
    """Not JSON, not an object, NaN, keys twice, deep nesting, half characters, huge numbers."""
    rewrite(store, node, text)

    check_refused(store)


@pytest.mark.parametrize(
    ("node", "size"), [("", 100 << 20), (f"{TRAIN}/labels", 5 << 20), ("tasks/labelled", 1 << 40)]
)
def test_a_huge_document_is_refused_before_it_is_read(store, node, size):
    """Its size is enough, were it 1 TB."""
    with (store / node / "zarr.json").open("r+b") as stream:
        stream.truncate(size)

    check_refused(store, "too large", f"{size:,} bytes")


def test_a_document_of_very_many_values_is_refused(store):
    """Ten million empty lists fit into the root's cap and would take a gigabyte."""
    rewrite(store, "", b"[" + b"[]," * 10_000_000 + b"[]]")

    check_refused(store, "quotes, brackets and commas")


CODECS = {
    "zstd": [
        {"name": "bytes", "configuration": {"endian": "little"}},
        {"name": "zstd", "configuration": {"level": 0, "checksum": False}},
    ],
    "blosc": [
        {"name": "bytes", "configuration": {"endian": "little"}},
        {"name": "blosc", "configuration": {"cname": "zstd", "clevel": 5, "shuffle": "noshuffle"}},
    ],
    "no checksum": [{"name": "bytes", "configuration": {"endian": "little"}}],
    "pickle": [{"name": "numcodecs.pickle"}],
}


@pytest.mark.parametrize("name", ["embeddings", "row_id"])
@pytest.mark.parametrize(
    "fields",
    [
        *({"codecs": codecs} for codecs in CODECS.values()),
        {"data_type": "float64"},
        {"fill_value": 7},
        {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1]}}},
        {"storage_transformers": [{"name": "x"}]},
        {"shape": [2**60, 4]},
        {"shape": [-7, 4]},
        {"shape": [True, 4]},
        {"shape": [7.0, 4]},
        {"shape": []},
        {"attributes": {"\x1b[31m": 1}},
        {"dimension_names": 7},
        {"\x1b[31m": 1},
    ],
    ids=lambda fields: repr(fields)[:50] if isinstance(fields, dict) else None,
)
def test_an_array_in_another_form_is_refused(store, name, fields):
    """Before zarr looks at it: codecs, data type, fill value, chunks, shape, anything else."""
    node = f"{TRAIN}/{name}"
    rewrite(store, node, document(store, node) | fields)

    check_refused(store, f"train/{name}")


def test_a_sharded_array_is_refused(store):
    """Written by zarr itself, in good order."""
    group = zarr.open_group(store / TRAIN, mode="r+")
    del group["embeddings"]
    values = np.zeros((7, 4), dtype=np.float32)
    group.create_array("embeddings", data=values, chunks=(1, 4), shards=(7, 4))

    check_refused(store, "not in the store format")


def test_an_array_of_zarr_2_is_no_array(store):
    """A .zarray beside nothing else."""
    shutil.rmtree(store / TRAIN / "embeddings")
    zarr.create_array(store / TRAIN / "embeddings", shape=(7, 4), dtype="f4", zarr_format=2)

    check_refused(store, "this array is missing")


def test_vectors_may_not_be_wider_than_the_cap(store):
    """However the fingerprint words it."""
    fingerprint = document(store, "")["attributes"]["geneb"]["fingerprint"] | {"dim": 2**40}
    change_root(store, fingerprint=fingerprint, fingerprint_id=digest(fingerprint))

    check_refused(store, "131,072")


# -- chunks ------------------------------------------------------------------------------------

CHUNKS = [f"{TRAIN}/embeddings/c.0.0", f"{TRAIN}/labels/c.0", f"{TRAIN}/row_id/c.0.0"]
CHUNKS += ["tasks/unlabelled/train/embeddings/c.0.0", "canary/embeddings/c.0.0"]


@pytest.mark.parametrize("chunk", CHUNKS)
def test_a_missing_chunk_is_not_the_fill_value(store, chunk):
    """Zarr alone would return NaN, -1 or 0."""
    (store / chunk).unlink()

    check_refused(store, "this block is missing", chunk.rpartition("/")[2])


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize("size", [0, 3, 11, 1 << 40])
def test_a_chunk_of_another_size_is_refused_before_it_is_read(store, chunk, size):
    """Cut short, or a sparse file of 1 TB."""
    with (store / chunk).open("r+b") as stream:
        stream.truncate(size)

    check_refused(store, "regular file", f"{size:,} bytes")


def test_a_store_cannot_claim_more_than_it_holds(store):
    """Fifty million rows, and one small block: refused without asking for memory."""
    node = f"{TRAIN}/embeddings"
    stated = document(store, node)
    stated["shape"] = [50_000_000, 4]
    stated["chunk_grid"]["configuration"]["chunk_shape"] = [1_041_667, 4]
    rewrite(store, node, stated)
    splits = document(store, "tasks/labelled")["attributes"]["geneb"]["splits"]
    splits["train"]["rows"] = 50_000_000
    change_manifest(store, "labelled", splits=splits)

    check_refused(store)


# -- what a store says about itself -------------------------------------------------------------


@pytest.mark.parametrize("version", ["2.0", "0.9", "10.0", "1", "1.", "1.x", "", None, 1.0, [1]])
def test_other_major_versions_are_refused(store, version):
    """And what is no version."""
    change_root(store, version=version)

    check_refused(store, "version", "install a newer geneb")


def test_a_newer_minor_version_is_read_and_its_fields_are_kept(store, content):
    """Unknown fields are ignored, are part of the digests, and can be shown."""
    change_root(store, version="1.7", new_field={"a": [1]})
    change_manifest(store, "labelled", other_field=None)
    group = document(store, "")
    group["consolidated_metadata"]["metadata"]["tasks/labelled"] |= document(
        store, "tasks/labelled"
    )
    rewrite(store, "", group)

    opened = open_store(store)

    assert opened.root.as_read()["new_field"] == {"a": [1]}
    rows = opened.task("labelled").embeddings("train")
    np.testing.assert_array_equal(content.tasks["labelled"].splits["train"].embeddings, rows)
    assert verify_store(store).faults == []


@pytest.mark.parametrize(
    "fields",
    [
        {"fingerprint_id": "0" * 64},
        {"fingerprint_id": "\x1b[31m"},
        {"model": None},
        {"token_budget": 0},
        {"token_budget": True},
        {"token_budget": "1024"},
        {"benchmark_data": []},
        {"canary": {"sequences_sha256": 7}},
        {"canary": {"sequences_sha256": "0" * 64}},
        {"canary": {"sequences_sha256": "0" * 64, "vectors_sha256": "0"}},
        {"format": "other"},
        {"seal": {}},
        {"seal": {"tasks": {}, "root_sha256": "0" * 64}},
    ],
    ids=repr,
)
def test_a_root_with_wrong_fields_is_refused(store, fields):
    """Every wrong kind, and a fingerprint or seal that does not fit."""
    root = document(store, "")
    root["attributes"]["geneb"] |= fields
    rewrite(store, "", root)

    check_refused(store)


@pytest.mark.parametrize("name", ["../x", "", "a/b", ".hidden", "a\x1b[2J", "x" * 151, "\u202ea"])
def test_names_in_the_seal_and_root_cannot_leave_the_store(store, name):
    """Of a task in the seal, of a split in a manifest, of the model."""
    seal = document(store, "")["attributes"]["geneb"]["seal"]
    model = document(store, "")["attributes"]["geneb"]["model"]
    splits = document(store, "tasks/labelled")["attributes"]["geneb"]["splits"]
    for number, change in enumerate(
        (
            lambda path: change_root(path, seal={**seal, "tasks": {name: "0" * 64}}),
            lambda path: change_root(path, model={**model, "id": name}),
            lambda path: change_manifest(path, "labelled", splits={name: splits["train"]}),
        )
    ):
        copy = Path(shutil.copytree(store, store.with_name(f"{number}.zarr")))
        change(copy)
        check_refused(copy, "this cannot be the name of a")


@pytest.mark.parametrize("name", ["a b", "\x1b[31m", "ta\nsk", "\udcff\udcfe", "\u202eksat", "é"])
@pytest.mark.parametrize("group", ["tasks", "runs"])
def test_folders_with_impossible_names_are_refused(tmp_path, content, name, group):
    """Control characters, other scripts, bytes that are no text."""
    path = write_store(tmp_path / "s.zarr", content, seal=False)
    (path / group / name).mkdir()

    check_refused(path, "this cannot be the name of a")


SPLIT = {
    "rows": 7,
    "embeddings_sha256": "0" * 64,
    "pairs_sha256": "0" * 64,
    "counts": {"truncated": 0, "non_acgt": 0, "empty": 0, "computed": 7, "copied": 0},
}


@pytest.mark.parametrize(
    "fields",
    [
        {"task": "other"},
        {"task": "\x1b[2J"},
        {"dim": 5},
        {"dim": -4},
        {"dim": 4.0},
        {"classes": None},
        {"classes": "ab"},
        {"classes": ["a", 1]},
        {"classes": ["only one"]},
        {"splits": {}},
        {"splits": {"train": SPLIT | {"rows": 8}}},
        {"splits": {"train": SPLIT | {"rows": -7}}},
        {"splits": {"train": SPLIT | {"rows": True}}},
        {"splits": {"train": SPLIT | {"rows": "7"}}},
        {"splits": {"train": SPLIT | {"counts": SPLIT["counts"] | {"truncated": -1}}}},
        {"splits": {"train": SPLIT | {"embeddings_sha256": "\x1b[31m"}}},
        {"splits": {"absent": SPLIT}},
        {"splits": {"train/embeddings": SPLIT}},
        {"left_out": {"dev": -1}},
        {"left_out": {"dev": 1.5}},
        {"left_out": {"\x1b[31m": None}},
    ],
    ids=lambda fields: repr(fields)[:60],
)
def test_a_manifest_that_does_not_fit_is_refused(store, fields):
    """Of another task or width, wrong kinds, negative numbers, splits that are not there."""
    change_manifest(store, "labelled", **fields)

    check_refused(store)


@pytest.mark.parametrize(
    "counts",
    [
        {"truncated": 8, "non_acgt": 0, "empty": 0, "computed": 7, "copied": 0},
        {"truncated": 0, "non_acgt": 0, "empty": 0, "computed": 7, "copied": 7},
    ],
)
def test_verifying_finds_counts_that_cannot_be(store, counts):
    """More rows cut than there are; more computed and copied than there are."""
    splits = document(store, "tasks/labelled")["attributes"]["geneb"]["splits"]
    splits["train"]["counts"] = counts
    change_manifest(store, "labelled", splits=splits)

    found = [fault for fault in verify_store(store).faults if "rows" in fault.problem]

    assert [fault.where for fault in found] == [f"{store}, task labelled, train"]


def test_labels_beyond_the_classes_are_refused(store):
    """A label is a position in the manifest's classes, also where every digest holds."""
    with pytest.raises(StoreError, match="a label is outside the classes"):
        change_manifest(store, "labelled", classes=["only one"])
        open_store(store).task("labelled").labels("train")


def test_a_run_s_record_is_its_own(store):
    """A record under another run's name is refused."""
    (store / "runs/made-by-hand").rename(store / "runs/another")

    check_refused(store, "belongs to another run")


def test_a_store_without_the_run_that_made_it_is_a_fault(store):
    """Provenance cannot be dropped unnoticed."""
    shutil.rmtree(store / "runs/made-by-hand")

    problems = [fault.problem for fault in verify_store(store).faults]

    assert "the run that created the store left no record" in problems


def test_numbers_that_are_not_finite_are_a_fault(tmp_path, content):
    """Checksums that hold do not make NaN an embedding."""
    path = write_store(tmp_path / "s.zarr", content)
    array = zarr.open_array(path / TRAIN / "embeddings", mode="r+")
    array[5, 2] = np.nan

    faults = verify_store(path).faults

    assert [fault.problem for fault in faults] == ["row 5 is not finite"]
    assert "task labelled, train/embeddings, block 0" in faults[0].where

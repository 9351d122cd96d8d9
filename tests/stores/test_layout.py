"""Blocks, shapes, and what an array's zarr.json may say."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geneb.errors import StoreError
from geneb.stores import layout

SIZES = st.tuples(st.integers(1, layout.MAX_ROWS), st.integers(1, layout.MAX_DIM))


@settings(deadline=None)
@given(SIZES)
def test_blocks_cover_all_rows_once(size):
    """Each row is in one block; blocks are equal but for the last, which is not empty."""
    rows, dim = size
    per_block, count = layout.block_rows(rows, dim), layout.block_count(rows, dim)

    assert (count - 1) * per_block < rows <= count * per_block
    for index in {0, count // 2, count - 1}:
        first, last = layout.block_span(rows, dim, index)
        assert first == index * per_block
        assert last == min(rows, first + per_block)


@settings(deadline=None)
@given(SIZES)
def test_blocks_are_neither_large_nor_wasteful(size):
    """At most 16 MiB and one row; padding is less than a row for each block."""
    rows, dim = size
    per_block, count = layout.block_rows(rows, dim), layout.block_count(rows, dim)

    assert per_block * dim * 4 < layout.BLOCK_BYTES + dim * 4
    assert count * per_block - rows < min(per_block, math.ceil(rows * dim * 4 / (16 << 20)) + 1)


@settings(deadline=None)
@given(SIZES)
def test_blocks_are_those_of_exact_arithmetic(size):
    """The formula in floating point gives what whole numbers give."""
    rows, dim = size
    blocks = max(1, -(-rows * dim * 4 // (16 << 20)))

    assert -(-rows // blocks) == layout.block_rows(rows, dim)


@pytest.mark.parametrize(
    ("rows", "dim", "per_block"),
    [(1, 1, 1), (4096, 1024, 4096), (4097, 1024, 2049), (8193, 1024, 2731), (33, 1 << 17, 17)],
)
def test_blocks_of_known_sizes(rows, dim, per_block):
    """Worked out by hand."""
    assert per_block == layout.block_rows(rows, dim)


def test_chunk_files_have_one_name_and_size():
    """Names are in row order; sizes are those of full chunks with their checksum."""
    embeddings = layout.embeddings_form(33, 1 << 17, "float16")
    labels, row_id = layout.labels_form(5), layout.row_id_form(5)

    assert embeddings.chunk_keys == ["c.0.0", "c.1.0"]
    assert embeddings.chunk_bytes == 17 * (1 << 17) * 2 + 4
    assert (labels.chunk_keys, labels.chunk_bytes) == (["c.0"], 44)
    assert (row_id.chunk_keys, row_id.chunk_bytes) == (["c.0.0"], 84)


@pytest.mark.parametrize(
    ("rows", "dim"),
    [(0, 4), (-1, 4), (layout.MAX_ROWS + 1, 1), (1, 0), (1, layout.MAX_DIM + 1), (2**60, 2**60)],
)
def test_sizes_beyond_the_caps_are_refused(rows, dim):
    """No split is empty, and none is too large for readers."""
    with pytest.raises(StoreError, match="cannot be used"):
        layout.check_size(rows, dim, "here")


def test_the_cap_on_bytes_holds_where_each_number_alone_is_allowed():
    """The largest number of rows with the largest width is far too much."""
    layout.check_size(layout.MAX_ROWS, 1000, "here")
    with pytest.raises(StoreError, match="256 GiB"):
        layout.check_size(layout.MAX_ROWS, layout.MAX_DIM, "here")


@pytest.mark.parametrize(
    "shape",
    [
        None, 7, "7", {}, [], [7], [7, 4, 1], [7, 5], [True, 4], [7.0, 4], ["7", 4], [-7, 4],
        [0, 4], [2**60, 4], [10**400, 4], [[7], 4], ["\x1b[31m\u202e", 4],
    ],
)  # fmt: skip
def test_absurd_shapes_are_refused(shape):
    """Wrong kinds, signs, widths and sizes are one error, harmless on a terminal."""
    with pytest.raises(StoreError) as caught:
        layout.stated_rows({"shape": shape}, 4, "here")

    assert str(caught.value).replace("\n", "").isprintable()


def document(form: layout.ArrayForm) -> dict:
    """The zarr.json of an array of this form, written down independently."""
    little = {"name": "bytes", "configuration": {"endian": "little"}}
    return {
        "shape": list(form.shape),
        "data_type": form.dtype,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(form.chunks)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
        "fill_value": form.fill,
        "codecs": [{"name": "bytes"} if form.dtype == "uint8" else little, {"name": "crc32c"}],
        "attributes": {},
        "zarr_format": 3,
        "node_type": "array",
        "storage_transformers": [],
    }


FORMS = {
    "embeddings": layout.embeddings_form(7, 4, "float32"),
    "half": layout.embeddings_form(7, 4, "float16"),
    "labels": layout.labels_form(7),
    "row_id": layout.row_id_form(7),
    "canary": layout.canary_form(4, "float32"),
}


@pytest.mark.parametrize("name", FORMS)
def test_the_right_document_is_taken(name):
    """Also without the members that Zarr lets one leave out."""
    good = document(FORMS[name])
    layout.check_array(good, FORMS[name], "here")

    for absent in ("storage_transformers", "attributes"):
        short = {key: value for key, value in good.items() if key != absent}
        layout.check_array(short, FORMS[name], "here")
    layout.check_array({**good, "dimension_names": None}, FORMS[name], "here")


ZSTD = {"name": "zstd", "configuration": {"level": 1, "checksum": False}}
BLOSC = {"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5}}
LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
BIG = {"name": "bytes", "configuration": {"endian": "big"}}
CRC = {"name": "crc32c"}
SHARDING = {"name": "sharding_indexed", "configuration": {"chunk_shape": [1, 4]}}

OTHERWISE = [
    ("codecs", [LITTLE]),
    ("codecs", [LITTLE, ZSTD, CRC]),
    ("codecs", [LITTLE, ZSTD]),
    ("codecs", [LITTLE, BLOSC]),
    ("codecs", [BIG, CRC]),
    ("codecs", [SHARDING]),
    ("codecs", [LITTLE, CRC, CRC]),
    ("codecs", [{"name": "numcodecs.pickle"}, CRC]),
    ("codecs", "bytes"),
    ("data_type", "float64"),
    ("data_type", "int32"),
    ("data_type", "bool"),
    ("data_type", {"name": "fixed_length_utf32", "configuration": {"length_bytes": 4}}),
    ("fill_value", "Infinity"),
    ("fill_value", 0.0),
    ("fill_value", None),
    ("fill_value", "\u202eNaN"),
    ("chunk_grid", {"name": "regular", "configuration": {"chunk_shape": [1, 4]}}),
    ("chunk_grid", {"name": "regular", "configuration": {"chunk_shape": [7.0, 4]}}),
    ("chunk_grid", {"name": "rectangular"}),
    ("chunk_key_encoding", {"name": "default", "configuration": {"separator": "/"}}),
    ("chunk_key_encoding", {"name": "v2", "configuration": {"separator": "."}}),
    ("storage_transformers", [{"name": "redirect"}]),
    ("dimension_names", ["row", "number"]),
    ("attributes", {"a": 1}),
    ("attributes", []),
    ("zarr_format", 2),
    ("zarr_format", 3.0),
    ("zarr_format", True),
    ("node_type", "group"),
    ("shape", [7, 4.0]),
    ("must_understand", True),
    ("\x1b]0;title\x07", 1),
]


@pytest.mark.parametrize(("member", "value"), OTHERWISE, ids=lambda value: repr(value)[:60])
def test_any_other_document_is_refused(member, value):
    """Another value anywhere is refused, before zarr sees the document."""
    form = FORMS["embeddings"]
    with pytest.raises(StoreError) as caught:
        layout.check_array({**document(form), member: value}, form, "here")

    assert "not in the store format" in str(caught.value)
    assert str(caught.value).replace("\n", "").isprintable()


@pytest.mark.parametrize(
    "name", ["shape", "data_type", "chunk_grid", "fill_value", "codecs", "zarr_format"]
)
def test_nothing_may_be_missing(name):
    """A member that says how to read the bytes must be there."""
    short = document(FORMS["embeddings"])
    del short[name]

    with pytest.raises(StoreError, match=name):
        layout.check_array(short, FORMS["embeddings"], "here")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@settings(deadline=None)
@given(JSON)
def test_no_json_value_is_more_than_refused(value):
    """Whatever stands in a zarr.json, the answer is a `StoreError`."""
    value = json.loads(json.dumps(value))
    for check in (
        lambda: layout.check_array(value, FORMS["labels"], "here"),
        lambda: layout.stated_rows(value, 4, "here"),
        lambda: layout.check_group(value, "here"),
    ):
        with pytest.raises(StoreError):
            check()


@pytest.mark.parametrize(
    "document",
    [
        {"node_type": "group"},
        {"node_type": "group", "zarr_format": 2},
        {"node_type": "group", "zarr_format": 3.0},
        {"node_type": "array", "zarr_format": 3},
        {"node_type": "group", "zarr_format": 3, "attributes": []},
    ],
)
def test_only_groups_of_zarr_3_are_groups(document):
    """Another version or kind, or attributes that are no object, are refused."""
    with pytest.raises(StoreError):
        layout.check_group(document, "here")

"""Where everything in a store lies, and what its arrays must look like.

All that stores/FORMAT.md promises about paths, chunk shapes, data types and codecs is here, for
the writer and the reader alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from geneb.base.canonical import ROW_ID_BYTES, canonical_json
from geneb.base.text import plain
from geneb.errors import StoreError

BLOCK_BYTES = 16 << 20
FLOAT_BYTES = 4
CHECKSUM_BYTES = 4
CANARY_ROWS = 16

# Caps that do not rely on anything a store says about itself. Writers keep to them too.
MAX_ROWS = 50_000_000
MAX_DIM = 1 << 17
MAX_ARRAY_BYTES = 256 << 30
MAX_ENTRIES = 200_000
MAX_METADATA_BYTES = 4 << 20
MAX_ROOT_BYTES = 64 << 20

CANARY = "canary/embeddings"
TASKS = "tasks"
RUNS = "runs"
FRAME = ("canary", RUNS, TASKS)
"""The groups at the first level of every store."""


def task_path(task: str) -> str:
    """Return the path of a task's group within the store."""
    return f"{TASKS}/{task}"


def array_path(task: str, split: str, name: str) -> str:
    """Return the path of one of a split's arrays: embeddings, labels or row_id."""
    return f"{TASKS}/{task}/{split}/{name}"


def block_rows(rows: int, dim: int) -> int:
    """Return the rows a block: ceil(n / k) with k = ceil(n x dim x 4 / 16 MiB).

    Chunks are padded to full size, so equal blocks waste the least. The factor is 4 for float16
    as well, so that both have the same blocks.
    """
    blocks = max(1, math.ceil(rows * dim * FLOAT_BYTES / BLOCK_BYTES))
    return math.ceil(rows / blocks)


def block_count(rows: int, dim: int) -> int:
    """Return the number of blocks of a split."""
    return math.ceil(rows / block_rows(rows, dim))


def block_span(rows: int, dim: int, index: int) -> tuple[int, int]:
    """Return the first row of a block and the row after its last."""
    size = block_rows(rows, dim)
    return index * size, min(rows, (index + 1) * size)


@dataclass(frozen=True)
class ArrayForm:
    """What an array must be: everything but its name.

    Attributes
    ----------
    dtype
        ``float32``, ``float16``, ``int64`` or ``uint8``.
    fill
        The fill value as zarr.json writes it.
    """

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: str
    fill: str | int

    @property
    def itemsize(self) -> int:
        """Bytes a number."""
        return {"float32": 4, "float16": 2, "int64": 8, "uint8": 1}[self.dtype]

    @property
    def chunk_bytes(self) -> int:
        """Size of every chunk file: padded to full size, checksum included."""
        return math.prod(self.chunks) * self.itemsize + CHECKSUM_BYTES

    @property
    def chunk_keys(self) -> list[str]:
        """The chunk files' names, in row order; blocks are cut along rows only."""
        count = math.ceil(self.shape[0] / self.chunks[0])
        tail = ".0" * (len(self.shape) - 1)
        return [f"c.{index}{tail}" for index in range(count)]


def embeddings_form(rows: int, dim: int, dtype: str) -> ArrayForm:
    """Return the form of a split's embeddings."""
    return ArrayForm((rows, dim), (block_rows(rows, dim), dim), dtype, "NaN")


def labels_form(rows: int) -> ArrayForm:
    """Return the form of a split's labels: one chunk."""
    return ArrayForm((rows,), (rows,), "int64", -1)


def row_id_form(rows: int) -> ArrayForm:
    """Return the form of a split's row ids: one chunk."""
    return ArrayForm((rows, ROW_ID_BYTES), (rows, ROW_ID_BYTES), "uint8", 0)


def canary_form(dim: int, dtype: str) -> ArrayForm:
    """Return the form of the canary's vectors: one chunk."""
    return ArrayForm((CANARY_ROWS, dim), (CANARY_ROWS, dim), dtype, "NaN")


def check_size(rows: int, dim: int, where: str) -> None:
    """Refuse a split of a size that no reader takes; for writers and readers alike.

    Raises
    ------
    StoreError
    """
    if (
        not 1 <= rows <= MAX_ROWS
        or not 1 <= dim <= MAX_DIM
        or rows * dim * FLOAT_BYTES > MAX_ARRAY_BYTES
    ):
        raise StoreError(
            "embeddings of this size cannot be used",
            where=where,
            expected=f"1 to {MAX_ROWS:,} rows, vectors of 1 to {MAX_DIM:,} numbers, "
            f"at most {MAX_ARRAY_BYTES >> 30} GiB in float32",
            found=f"{rows:,} rows, vectors of {dim:,} numbers",
        )


def stated_rows(document: Any, dim: int, where: str) -> int:
    """Return the number of rows that the zarr.json of embeddings states.

    Raises
    ------
    StoreError
        If it states no shape of such vectors, or one beyond the caps.
    """
    shape = document.get("shape") if isinstance(document, dict) else None
    if (
        not isinstance(shape, list)
        or not all(type(size) is int for size in shape)
        or shape[1:] != [dim]
    ):
        raise StoreError(
            "this is not the shape of the store's embeddings",
            where=where,
            expected=f"[rows, {dim}]",
            found=plain(repr(shape), limit=100),
        )
    check_size(shape[0], dim, where)
    return shape[0]


def _allowed(form: ArrayForm) -> dict[str, list[Any]]:
    """Return the values that each member of an array's zarr.json may have, the usual one first."""
    endian = {"name": "bytes", "configuration": {"endian": "little"}}
    bytes_codecs = [endian] if form.itemsize > 1 else [{"name": "bytes"}, endian]
    checksum = ({"name": "crc32c"}, {"name": "crc32c", "configuration": {}})
    return {
        "zarr_format": [3],
        "node_type": ["array"],
        "shape": [list(form.shape)],
        "data_type": [form.dtype],
        "chunk_grid": [{"name": "regular", "configuration": {"chunk_shape": list(form.chunks)}}],
        "chunk_key_encoding": [{"name": "default", "configuration": {"separator": "."}}],
        "fill_value": [form.fill],
        "codecs": [[first, last] for first in bytes_codecs for last in checksum],
        "attributes": [{}, None],
        "dimension_names": [None],
        "storage_transformers": [[], None],
    }


def check_array(document: Any, form: ArrayForm, where: str) -> None:
    """Compare an array's zarr.json with the form that it must have.

    Nothing else may stand in it: zarr reads the document too, and its opinion on the rest is not
    needed.

    Raises
    ------
    StoreError
        Naming the first member that differs.
    """
    if not isinstance(document, dict):
        raise StoreError("this zarr.json is not an object", where=where)
    allowed = _allowed(form)
    for name in [*allowed, *document]:
        # Compared as JSON: in Python, 1, 1.0 and True are equal.
        found = canonical_json(document.get(name))
        values = allowed.get(name, [None])
        if found not in [canonical_json(value) for value in values]:
            raise StoreError(
                f"this array is not in the store format: {plain(name, limit=80)} differs",
                where=where,
                expected=str(values[0]) if values[0] is not None else "nothing",
                found=plain(found.decode("utf-8")),
            )


def group_document(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the zarr.json of a group with these attributes."""
    return {"attributes": attributes, "zarr_format": 3, "node_type": "group"}


def check_group(document: Any, where: str) -> dict[str, Any]:
    """Return a group's attributes.

    Raises
    ------
    StoreError
        If its zarr.json is not that of a Zarr v3 group.
    """
    if (
        not isinstance(document, dict)
        or document.get("node_type") != "group"
        or type(document.get("zarr_format")) is not int
        or document["zarr_format"] != 3
    ):
        raise StoreError("this is not a Zarr v3 group", where=where)
    attributes = document.get("attributes", {})
    if not isinstance(attributes, dict):
        raise StoreError("a group's attributes must be an object", where=where)
    return attributes

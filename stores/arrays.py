"""A store's files and arrays, read a block at a time; every block has passed its checksum."""

from __future__ import annotations

import hashlib
import os
import stat
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.storage import LocalStore

from geneb.base.canonical import pairs_digest
from geneb.base.files import parse_json, read_bytes
from geneb.base.text import plain
from geneb.errors import CorruptionError, InputError, NotFoundError, StoreError
from geneb.stores import layout
from geneb.stores.layout import ArrayForm
from geneb.stores.model import Fingerprint

_MEND = (
    "embed the task again with `geneb embed ... --replace-task`, or fetch the store again "
    "(a task that is not complete yet mends itself when embedding is resumed)"
)


class Files:
    """The files below a store's root, none of them reached through a link."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def where(self, path: str) -> str:
        """Return how messages name a path in this store."""
        return f"{self.root}, {path}" if path else str(self.root)

    def resolve(self, path: str) -> Path:
        """Return the file system path of a node, having refused links on the way to it.

        Raises
        ------
        StoreError
            If a part of the path is a symbolic link.
        """
        current = self.root
        for part in path.split("/") if path else []:
            current = current / part
            if current.is_symlink():
                raise StoreError(
                    "a store must not hold symbolic links",
                    where=plain(str(current), limit=1000),
                    fix="copy the store with its links replaced by what they point to",
                )
        return current

    def document(self, path: str, limit: int = layout.MAX_METADATA_BYTES) -> Any:
        """Return the parsed zarr.json of a group or array.

        Raises
        ------
        NotFoundError, StoreError
        """
        file = self.resolve(path) / "zarr.json"
        try:
            return parse_json(read_bytes(file, limit), str(file))
        except NotFoundError:
            raise
        except InputError as error:
            raise StoreError(error.problem, where=error.where, found=error.found) from error

    def array_document(self, path: str) -> Any:
        """Return the parsed zarr.json of an array that must be there.

        Raises
        ------
        CorruptionError
            If it is not.
        StoreError
        """
        try:
            return self.document(path)
        except NotFoundError as error:
            raise CorruptionError("this array is missing", where=self.where(path)) from error

    def attributes(self, path: str, limit: int = layout.MAX_METADATA_BYTES) -> Any:
        """Return ``attributes.geneb`` of a group, or None.

        Raises
        ------
        NotFoundError, StoreError
        """
        return layout.check_group(self.document(path, limit), self.where(path)).get("geneb")

    def entries(self, path: str) -> list[os.DirEntry[str]]:
        """Return what lies in a node's folder, sorted by name.

        Raises
        ------
        StoreError
            If there is no such folder, or one that cannot be read.
        """
        try:
            with os.scandir(self.resolve(path)) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            raise StoreError(
                "there must be a folder here",
                where=self.where(path),
                found=error.strerror or str(error),
            ) from error
        if len(found) > layout.MAX_ENTRIES:
            raise StoreError(
                "this folder has too many entries",
                where=self.where(path),
                expected=f"at most {layout.MAX_ENTRIES:,}",
                found=f"{len(found):,}",
            )
        return found

    def names(self, path: str) -> list[str]:
        """Return the names of the folders in a group, sorted, without those being written.

        Links are among them, to be refused when somebody goes there.
        """
        return [
            entry.name
            for entry in self.entries(path)
            if not entry.name.startswith(".")
            and (entry.is_symlink() or entry.is_dir(follow_symlinks=False))
        ]


class BlockArray:
    """An array of the store, read a block at a time.

    Parameters
    ----------
    files
        The store's files.
    path
        The array's path within the store.
    form
        What the array must be; compared with its zarr.json before zarr sees it.
    """

    def __init__(self, files: Files, path: str, form: ArrayForm) -> None:
        self.files = files
        self.path = path
        self.form = form
        layout.check_array(files.array_document(path), form, files.where(path))

    @cached_property
    def _array(self) -> zarr.Array:
        store = LocalStore(self.files.root, read_only=True)
        return zarr.open_array(store=store, path=self.path, mode="r", zarr_format=3)

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return len(self.form.chunk_keys)

    def where(self, index: int) -> str:
        """Return how messages name a block: task, split, block and file."""
        parts = self.path.split("/")
        key = self.form.chunk_keys[index]
        if parts[0] == layout.TASKS:
            return (
                f"{self.files.root}, task {parts[1]}, {parts[2]}/{parts[3]}, block {index} ({key})"
            )
        return f"{self.files.root}, {self.path}, block {index} ({key})"

    def check_size(self, index: int) -> None:
        """Check that a block's file is there and as long as the format says.

        Raises
        ------
        CorruptionError
        """
        file = self.files.resolve(self.path) / self.form.chunk_keys[index]
        try:
            status = file.lstat()
        except FileNotFoundError as error:
            raise CorruptionError(
                "this block is missing", where=self.where(index), fix=_MEND
            ) from error
        except OSError as error:
            raise self._unreadable(index, error) from error
        if not stat.S_ISREG(status.st_mode) or status.st_size != self.form.chunk_bytes:
            raise CorruptionError(
                "this block's file is not what it must be",
                where=self.where(index),
                expected=f"a regular file of {self.form.chunk_bytes:,} bytes",
                found=f"{status.st_size:,} bytes, mode {stat.filemode(status.st_mode)}",
            )

    def _unreadable(self, index: int, error: OSError) -> CorruptionError:
        return CorruptionError(
            "this block cannot be read",
            where=self.where(index),
            found=error.strerror or str(error),
        )

    def read_block(self, index: int) -> np.ndarray:
        """Return one block's rows, its checksum verified.

        Raises
        ------
        CorruptionError
            If the block is missing or damaged.
        """
        self.check_size(index)
        first = index * self.form.chunks[0]
        try:
            rows = self._array[first : min(first + self.form.chunks[0], self.form.shape[0])]
        except ValueError as error:
            raise CorruptionError(
                "this block's checksum does not hold",
                where=self.where(index),
                found=str(error)[:200],
                fix=_MEND,
            ) from error
        except OSError as error:
            raise self._unreadable(index, error) from error
        return np.asarray(rows)

    def read(self) -> np.ndarray:
        """Return the whole array, every checksum verified.

        All files are looked at before memory is asked for, so that a store cannot claim more
        than it holds.

        Raises
        ------
        CorruptionError
            If a block is missing or damaged.
        StoreError
            If there is not enough memory for the whole.
        """
        for index in range(self.blocks):
            self.check_size(index)
        if self.blocks == 1:
            return self.read_block(0)
        try:
            values = np.empty(self.form.shape, dtype=self.form.dtype)
        except MemoryError as error:
            raise StoreError(
                "this array does not fit into memory",
                where=self.files.where(self.path),
                expected=f"{self.blocks * self.form.chunk_bytes:,} bytes",
                fix="read it block by block",
            ) from error
        for index in range(self.blocks):
            first = index * self.form.chunks[0]
            values[first : first + self.form.chunks[0]] = self.read_block(index)
        return values


def vectors_digest(rows: np.ndarray) -> str:
    """Return the SHA-256 of vectors in row order, in their own data type, little-endian."""
    return hashlib.sha256(_stored_bytes(rows)).hexdigest()


def _stored_bytes(rows: np.ndarray) -> memoryview:
    return np.ascontiguousarray(rows, rows.dtype.newbyteorder("<")).data


class EmbeddingsDigest:
    """SHA-256 over a split's embeddings in row order, little-endian, read a block at a time."""

    def __init__(self, array: BlockArray) -> None:
        self._array = array
        self._state = hashlib.sha256()

    def read_block(self, index: int) -> None:
        """Read the next block and add it.

        Raises
        ------
        CorruptionError
            If it is missing, damaged, or holds a number that is not finite.
        """
        rows = self._array.read_block(index)
        if not np.isfinite(rows).all():
            first = int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
            raise CorruptionError(
                f"row {index * self._array.form.chunks[0] + first} is not finite",
                where=self._array.where(index),
            )
        self._state.update(_stored_bytes(rows))

    def hexdigest(self) -> str:
        """Return the digest of all blocks added so far, in hexadecimal."""
        return self._state.hexdigest()


class SplitArrays:
    """The arrays of one split, complete or not; forms are checked, contents not yet."""

    def __init__(self, files: Files, task: str, split: str, fingerprint: Fingerprint) -> None:
        path = layout.array_path(task, split, "embeddings")
        rows = layout.stated_rows(files.array_document(path), fingerprint.dim, files.where(path))
        self.rows = rows
        form = layout.embeddings_form(rows, fingerprint.dim, fingerprint.store_dtype)
        self.embeddings = BlockArray(files, path, form)
        self.row_id = BlockArray(
            files, layout.array_path(task, split, "row_id"), layout.row_id_form(rows)
        )
        label_path = layout.array_path(task, split, "labels")
        self.labels: BlockArray | None = None
        if files.resolve(label_path).is_dir():
            self.labels = BlockArray(files, label_path, layout.labels_form(rows))

    @property
    def every(self) -> list[BlockArray]:
        """All of the split's arrays."""
        return [self.embeddings, self.row_id, *([self.labels] if self.labels else [])]

    def pairs_sha256(self) -> str:
        """Return the digest of the ordered (row id, label) pairs; see `pairs_digest`."""
        return pairs_digest(self.row_id.read(), self.labels.read() if self.labels else None)

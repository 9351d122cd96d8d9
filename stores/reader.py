"""Opening a store and reading it: every byte that is used has passed its checksum."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.storage import LocalStore

from geneb.base.canonical import pairs_digest
from geneb.base.files import check_name, parse_json, read_bytes
from geneb.errors import CorruptionError, InputError, NotFoundError, StoreError
from geneb.stores import layout
from geneb.stores.layout import ArrayForm
from geneb.stores.model import (
    Fingerprint,
    Manifest,
    ModelRef,
    Root,
    RunRecord,
    check_version,
)


def open_store(path: str | os.PathLike[str]) -> Store:
    """Open an embedding store for reading.

    Parameters
    ----------
    path
        The store's folder.

    Returns
    -------
    Store

    Raises
    ------
    NotFoundError
        If there is nothing, or a folder that is no Zarr group.
    StoreError
        If it is no embedding store, or one that this version does not read.
    CorruptionError
        If its fingerprint does not have the id that it states.
    """
    return Store(Path(path))


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
                    where=str(current),
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

    def attributes(self, path: str, limit: int = layout.MAX_METADATA_BYTES) -> Any:
        """Return ``attributes.geneb`` of a group, or None."""
        document = self.document(path, limit)
        if not isinstance(document, dict) or document.get("node_type") != "group":
            raise StoreError("this is not a Zarr v3 group", where=self.where(path))
        attributes = document.get("attributes")
        return attributes.get("geneb") if isinstance(attributes, dict) else None

    def names(self, path: str) -> list[str]:
        """Return the names of the folders in a group that may be nodes, sorted."""
        try:
            with os.scandir(self.resolve(path)) as entries:
                names = sorted(
                    entry.name
                    for entry in entries
                    if not entry.name.startswith(".") and entry.name != "zarr.json"
                )
        except (FileNotFoundError, NotADirectoryError) as error:
            raise StoreError("this group is missing", where=self.where(path)) from error
        if len(names) > layout.MAX_TASKS:
            raise StoreError("this group has too many entries", where=self.where(path))
        return names


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
        layout.check_array(files.document(path), form, files.where(path))

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
            raise CorruptionError("this block is missing", where=self.where(index)) from error
        if not stat.S_ISREG(status.st_mode) or status.st_size != self.form.chunk_bytes:
            raise CorruptionError(
                "this block's file is not what it must be",
                where=self.where(index),
                expected=f"a regular file of {self.form.chunk_bytes:,} bytes",
                found=f"{status.st_size:,} bytes, mode {stat.filemode(status.st_mode)}",
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
                fix="embed again into this store: damaged blocks of incomplete tasks are redone; "
                "for a complete task add --replace-task, or fetch the store again",
            ) from error
        return np.asarray(rows)

    def read(self) -> np.ndarray:
        """Return the whole array, every checksum verified.

        All files are looked at before memory is asked for, so that a store cannot claim more
        than it holds.
        """
        for index in range(self.blocks):
            self.check_size(index)
        if self.blocks == 1:
            return self.read_block(0)
        values = np.empty(self.form.shape, dtype=self.form.dtype)
        for index in range(self.blocks):
            first = index * self.form.chunks[0]
            values[first : first + self.form.chunks[0]] = self.read_block(index)
        return values


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
        self._state.update(np.ascontiguousarray(rows, rows.dtype.newbyteorder("<")).data)

    def hexdigest(self) -> str:
        """Return the digest of all blocks added so far, in hexadecimal."""
        return self._state.hexdigest()


class SplitArrays:
    """The arrays of one split, complete or not; forms are checked, contents not yet."""

    def __init__(self, files: Files, task: str, split: str, fingerprint: Fingerprint) -> None:
        path = layout.array_path(task, split, "embeddings")
        rows = layout.read_shape(files.document(path), files.where(path))[0]
        self.rows = rows
        form = layout.embeddings_form(rows, fingerprint.dim, fingerprint.store_dtype)
        self.embeddings = BlockArray(files, path, form)
        self.row_id = BlockArray(
            files, layout.array_path(task, split, "row_id"), layout.row_id_form(rows)
        )
        label_path = layout.array_path(task, split, "labels")
        self.labels: BlockArray | None = None
        if files.resolve(label_path).exists():
            self.labels = BlockArray(files, label_path, layout.labels_form(rows))

    @property
    def every(self) -> list[BlockArray]:
        """All of the split's arrays."""
        return [self.embeddings, self.row_id, *([self.labels] if self.labels else [])]

    def pairs_sha256(self) -> str:
        """Return the digest of the ordered (row id, label) pairs; see `pairs_digest`."""
        return pairs_digest(self.row_id.read(), self.labels.read() if self.labels else None)


class StoredTask:
    """One complete task of a store.

    Attributes
    ----------
    id
        The task's id.
    manifest
        What the store says about it.
    """

    def __init__(self, store: Store, task_id: str, manifest: Manifest) -> None:
        self.id = task_id
        self.manifest = manifest
        self._store = store

    @property
    def classes(self) -> list[str] | None:
        """Text of each label 0..K-1; None for unlabelled data."""
        return self.manifest.classes

    @property
    def splits(self) -> list[str]:
        """Names of the splits: train and test, then others."""
        return ordered_splits(self.manifest.splits)

    def arrays(self, split: str) -> SplitArrays:
        """Return a split's arrays for reading block by block.

        Raises
        ------
        NotFoundError
            If the task has no such split.
        StoreError
            If arrays and manifest do not fit together.
        """
        if split not in self.manifest.splits:
            raise NotFoundError(
                f"this task has no split {split!r}",
                where=f"{self._store.path}, task {self.id}",
                found=", ".join(self.splits),
            )
        arrays = SplitArrays(self._store.files, self.id, split, self._store.fingerprint)
        stated = self.manifest.splits[split].rows
        labelled = self.manifest.classes is not None
        if stated != arrays.rows or labelled != (arrays.labels is not None):
            raise StoreError(
                "the manifest does not fit the arrays",
                where=f"{self._store.path}, task {self.id}, {split}",
                expected=f"{stated:,} rows, {'with' if labelled else 'without'} labels",
                found=f"{arrays.rows:,} rows, {'with' if arrays.labels else 'without'} labels",
            )
        return arrays

    def embeddings(self, split: str) -> np.ndarray:
        """Return a split's embeddings.

        Returns
        -------
        ndarray of float32, shape (n, dim)

        Raises
        ------
        CorruptionError
            Naming the block that is missing or damaged.
        """
        return self.arrays(split).embeddings.read().astype(np.float32, copy=False)

    def labels(self, split: str) -> np.ndarray | None:
        """Return a split's labels: int64, shape (n,), 0..K-1; None for unlabelled data."""
        labels = self.arrays(split).labels
        if labels is None:
            return None
        values = labels.read()
        classes = len(self.manifest.classes or [])
        if values.min() < 0 or values.max() >= classes:
            raise CorruptionError(
                "a label is outside the classes",
                where=f"{self._store.path}, task {self.id}, {split}/labels",
                expected=f"0 to {classes - 1}",
                found=f"{values.min()} to {values.max()}",
            )
        return values

    def row_ids(self, split: str) -> np.ndarray:
        """Return a split's row ids: uint8, shape (n, 16)."""
        return self.arrays(split).row_id.read()


def ordered_splits(names: Iterable[str]) -> list[str]:
    """Return split names in the one order used everywhere: train, test, then by name."""
    return sorted(names, key=lambda name: ({"train": 0, "test": 1}.get(name, 2), name))


class Store:
    """An embedding store, opened for reading.

    Attributes
    ----------
    path
        The store's folder.
    root
        What the root group says: fingerprint, model, seal.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files = Files(path)
        if not path.exists():
            raise NotFoundError(
                "there is no embedding store",
                where=str(path),
                fix="check the path, or make a store with `geneb embed`",
            )
        try:
            attributes = self.files.attributes("", layout.MAX_ROOT_BYTES)
        except NotFoundError as error:
            raise NotFoundError(
                "this is not an embedding store: it has no zarr.json",
                where=str(path),
                fix="name the folder that `geneb embed --store` wrote",
            ) from error
        check_version(attributes, str(path))
        self.root = Root.parse(attributes, f"{path}, attributes.geneb")
        self._check_fingerprint()

    def _check_fingerprint(self) -> None:
        if self.root.fingerprint.id != self.root.fingerprint_id:
            raise CorruptionError(
                "the fingerprint does not have the id that the store states",
                where=str(self.path),
                expected=self.root.fingerprint_id[:80],
                found=self.root.fingerprint.id,
            )
        if self.root.fingerprint.dim > layout.MAX_DIM:
            raise StoreError(
                f"vectors of more than {layout.MAX_DIM:,} numbers are not read",
                where=str(self.path),
                found=f"{self.root.fingerprint.dim:,}",
            )

    @property
    def fingerprint(self) -> Fingerprint:
        """Everything that changed the numbers."""
        return self.root.fingerprint

    @property
    def fingerprint_id(self) -> str:
        """SHA-256 of the fingerprint, in hexadecimal."""
        return self.root.fingerprint_id

    @property
    def model(self) -> ModelRef:
        """The model that made the store."""
        return self.root.model

    @property
    def model_id(self) -> str:
        """The model's id; may become a file's name."""
        return check_name(self.root.model.id, "model")

    @property
    def sealed(self) -> bool:
        """Whether the store was finished: its root lists its tasks with their digests."""
        return self.root.seal is not None

    def present(self) -> list[str]:
        """Return the ids of all tasks that have been begun, complete or not, sorted."""
        return [check_name(name, "task") for name in self.files.names(layout.TASKS)]

    def manifest(self, task_id: str) -> Manifest | None:
        """Return a task's manifest, or None while the task is incomplete or absent."""
        path = layout.task_path(check_name(task_id, "task"))
        try:
            attributes = self.files.attributes(path)
        except NotFoundError:
            return None
        if attributes is None:
            return None
        manifest = Manifest.parse(attributes, self.files.where(path))
        self._check_manifest(task_id, manifest)
        return manifest

    def _check_manifest(self, task_id: str, manifest: Manifest) -> None:
        where = self.files.where(layout.task_path(task_id))
        if manifest.task != task_id or manifest.dim != self.fingerprint.dim:
            raise StoreError(
                "this manifest belongs to another task or store",
                where=where,
                expected=f"task {task_id}, dim {self.fingerprint.dim}",
                found=f"task {manifest.task[:80]}, dim {manifest.dim}",
            )
        for split in manifest.splits:
            check_name(split, "split")
        if self.root.seal and self.root.seal.tasks.get(task_id) != manifest.digest:
            raise CorruptionError(
                "this manifest is not the one that the seal lists",
                where=where,
                expected=str(self.root.seal.tasks.get(task_id)),
                found=manifest.digest,
                fix="run `geneb embed` on the store again, or fetch the store again",
            )

    def task_ids(self) -> list[str]:
        """Return the ids of the complete tasks, sorted; of a sealed store, those it lists."""
        if self.root.seal:
            return sorted(check_name(name, "task") for name in self.root.seal.tasks)
        return [name for name in self.present() if self.manifest(name) is not None]

    def incomplete(self) -> list[str]:
        """Return the ids of tasks that were begun and are not complete, sorted."""
        complete = set(self.task_ids())
        return [name for name in self.present() if name not in complete]

    def task(self, task_id: str) -> StoredTask:
        """Return one complete task.

        Raises
        ------
        NotFoundError
            If the store does not have it, or not completely.
        """
        manifest = self.manifest(task_id)
        if manifest is None:
            raise NotFoundError(
                f"the store has no complete task {task_id}",
                where=str(self.path),
                found=f"complete: {', '.join(self.task_ids()[:10]) or 'none'}",
                fix="embed it: `geneb embed` resumes where it stopped",
            )
        return StoredTask(self, task_id, manifest)

    def canary(self) -> np.ndarray:
        """Return the canary's vectors, float32, shape (16, dim)."""
        form = layout.canary_form(self.fingerprint.dim, self.fingerprint.store_dtype)
        return BlockArray(self.files, layout.CANARY, form).read().astype(np.float32, copy=False)

    def runs(self) -> list[RunRecord]:
        """Return the records of the runs that wrote, in the order in which they started."""
        records = []
        for name in self.files.names(layout.RUNS):
            path = f"{layout.RUNS}/{check_name(name, 'run')}"
            records.append(RunRecord.parse(self.files.attributes(path), self.files.where(path)))
        return sorted(records, key=lambda record: (record.started, record.run))

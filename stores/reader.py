"""Opening a store and reading its tasks."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from geneb.base.files import check_name
from geneb.base.text import name_some, plain
from geneb.errors import CorruptionError, InputError, NotFoundError, StoreError
from geneb.stores import layout
from geneb.stores.arrays import BlockArray, Files, SplitArrays, vectors_digest
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
            inside = sorted(entry.parent.name for entry in path.glob("*/zarr.json"))
            raise NotFoundError(
                "this is not an embedding store: it has no zarr.json",
                where=str(path),
                fix=f"name one that lies in it: {name_some(inside)}"
                if inside
                else "name the folder that `geneb embed --store` wrote",
            ) from error
        check_version(attributes, str(path))
        self.root = Root.parse(attributes, f"{path}, attributes.geneb")
        self._check_fingerprint()
        self._check_root()

    def _check_fingerprint(self) -> None:
        if self.root.fingerprint.id != self.root.fingerprint_id:
            raise CorruptionError(
                "the fingerprint does not have the id that the store states",
                where=str(self.path),
                expected=self.root.fingerprint_id,
                found=self.root.fingerprint.id,
            )
        if self.root.fingerprint.dim > layout.MAX_DIM:
            raise StoreError(
                f"vectors of more than {layout.MAX_DIM:,} numbers are not read",
                where=str(self.path),
                found=f"{self.root.fingerprint.dim:,}",
            )

    def _check_root(self) -> None:
        if self.root.seal and self.root.seal.root_sha256 != self.root.sha256:
            raise CorruptionError(
                "what this store says about itself is not what was sealed",
                where=f"{self.path}, attributes.geneb",
                expected=self.root.seal.root_sha256,
                found=self.root.sha256,
                fix="fetch the store again",
            )
        check_name(self.root.model.id, "model")

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
        return self.root.model.id

    @property
    def sealed(self) -> bool:
        """Whether the store was finished: its root lists its tasks with their digests."""
        return self.root.seal is not None

    def present(self) -> list[str]:
        """Return the ids of all tasks that have been begun, complete or not, sorted."""
        return self._checked_names(self.files.names(layout.TASKS), "task", layout.TASKS)

    def _checked_names(self, names: Iterable[str], what: str, path: str) -> list[str]:
        try:
            return sorted(check_name(name, what) for name in names)
        except InputError as error:
            raise StoreError(
                error.problem,
                where=self.files.where(path),
                expected=error.expected,
                found=error.found,
            ) from error

    def unsealed_manifest(self, task_id: str) -> Manifest | None:
        """Return a task's manifest as it stands, whatever the seal says; see `manifest`."""
        path = layout.task_path(check_name(task_id, "task"))
        try:
            attributes = self.files.attributes(path)
        except NotFoundError:
            return None
        if attributes is None:
            return None
        manifest = Manifest.parse(attributes, self.files.where(path))
        if manifest.task != task_id or manifest.dim != self.fingerprint.dim:
            raise StoreError(
                "this manifest belongs to another task or store",
                where=self.files.where(path),
                expected=f"task {task_id}, dim {self.fingerprint.dim}",
                found=f"task {plain(manifest.task, limit=80)}, dim {manifest.dim}",
            )
        self._checked_names(manifest.splits, "split", path)
        return manifest

    def manifest(self, task_id: str) -> Manifest | None:
        """Return a task's manifest, or None while the task is incomplete or absent.

        Raises
        ------
        StoreError
            If it is not a manifest of this task.
        CorruptionError
            If the store is sealed, and not with this manifest.
        """
        manifest = self.unsealed_manifest(task_id)
        if self.root.seal:
            listed = self.root.seal.tasks.get(task_id)
            found = manifest and manifest.digest
            if listed != found:
                raise CorruptionError(
                    "this task's manifest is not the one that the seal lists",
                    where=self.files.where(layout.task_path(task_id)),
                    expected=listed or "none: the seal does not list this task",
                    found=found or "none",
                    fix="embed the task anew with --replace-task, or fetch the store again",
                )
        return manifest

    def task_ids(self) -> list[str]:
        """Return the ids of the complete tasks, sorted; of a sealed store, those it lists."""
        if self.root.seal:
            return self._checked_names(self.root.seal.tasks, "task", "attributes.geneb.seal")
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
        """Return the canary's vectors, float32, shape (16, dim).

        Raises
        ------
        CorruptionError
            If they are missing, damaged, or not those that the root states.
        """
        form = layout.canary_form(self.fingerprint.dim, self.fingerprint.store_dtype)
        vectors = BlockArray(self.files, layout.CANARY, form).read()
        stated, found = self.root.canary.vectors_sha256, vectors_digest(vectors)
        if found != stated:
            raise CorruptionError(
                "the canary's vectors are not those that the store states",
                where=self.files.where(layout.CANARY),
                expected=stated,
                found=found,
                fix="fetch the store again",
            )
        return vectors.astype(np.float32, copy=False)

    def runs(self) -> list[RunRecord]:
        """Return the records of the runs that wrote, in the order in which they started."""
        records = []
        for name in self._checked_names(self.files.names(layout.RUNS), "run", layout.RUNS):
            path = f"{layout.RUNS}/{name}"
            record = RunRecord.parse(self.files.attributes(path), self.files.where(path))
            if record.run != name:
                raise StoreError(
                    "this record belongs to another run",
                    where=self.files.where(path),
                    found=plain(record.run, limit=80),
                )
            records.append(record)
        return sorted(records, key=lambda record: (record.started, record.run))

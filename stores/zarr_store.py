"""Writing a store: the only writer, safe with any number of processes on one file system.

Four rules make it so. Creating is a rename: a node is built beside its place and moved there, and
whoever loses the race uses the winner's. One block is one file with one writer, who holds the
task's claim. A manifest is written last, once everything that it vouches for is on the disk.
Sealing and sweeping need the store alone.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
import zarr
from zarr.codecs import BytesCodec, Crc32cCodec
from zarr.storage import LocalStore

from geneb.base.canonical import pretty_json
from geneb.base.files import PARTIAL, atomic_write, check_name, fsync_directory, fsync_file
from geneb.base.text import plain
from geneb.errors import BusyError, FingerprintError, GenebError, InputError, StoreError
from geneb.stores import layout
from geneb.stores.arrays import EmbeddingsDigest, Files, SplitArrays, vectors_digest
from geneb.stores.consolidated import consolidated_metadata
from geneb.stores.layout import ArrayForm
from geneb.stores.model import (
    Counts,
    Fingerprint,
    Manifest,
    Root,
    RunRecord,
    Seal,
    SplitManifest,
    fingerprint_difference,
)
from geneb.stores.reader import Store, open_store, ordered_splits
from geneb.stores.writers import alive_lock, claim_lock, ending, sweep

_CLAIM_POLL_SECONDS = 0.2


def _create_array(root: Path, path: str, form: ArrayForm) -> zarr.Array:
    codecs: dict[str, Any] = {
        "serializer": BytesCodec(endian="little"),
        "compressors": [Crc32cCodec()],
        "filters": None,
    }
    return zarr.create_array(
        store=LocalStore(root),
        name=path,
        shape=form.shape,
        chunks=form.chunks,
        dtype=form.dtype,
        fill_value=float("nan") if form.fill == "NaN" else form.fill,
        chunk_key_encoding={"name": "default", "separator": "."},
        zarr_format=3,
        config={"write_empty_chunks": True},
        **codecs,
    )


def _group_text(attributes: dict[str, Any], where: Path) -> str:
    text = pretty_json(layout.group_document(attributes))
    _check_length(text, layout.MAX_METADATA_BYTES, where)
    return text


def _check_length(text: str, limit: int, where: Path) -> None:
    """Refuse to write what no reader would take."""
    if len(text.encode("utf-8")) > limit:
        raise StoreError(
            "there is more to be said here than a store's metadata may hold",
            where=str(where),
            expected=f"at most {limit:,} bytes",
            found=f"{len(text.encode('utf-8')):,} bytes",
        )


def _write_group(path: Path, attributes: dict[str, Any]) -> None:
    path.mkdir(parents=True, exist_ok=True)
    (path / "zarr.json").write_text(_group_text(attributes, path), encoding="utf-8")


def _sync_tree(path: Path) -> None:
    for folder, _, files in os.walk(path):
        for name in files:
            fsync_file(Path(folder, name))
        fsync_directory(Path(folder))


def _aside(place: Path) -> Path:
    return place.with_name(f".{place.name}.{secrets.token_hex(4)}{PARTIAL}")


def _create_by_rename(place: Path, build: Callable[[Path], None]) -> bool:
    """Build a folder beside its place and move it there; return whether ours won the race."""
    temporary = _aside(place)
    try:
        temporary.mkdir(parents=True)
        build(temporary)
        _sync_tree(temporary)
        temporary.rename(place)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST) and place.is_dir():
            return False
        raise
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    fsync_directory(place.parent)
    return True


def _named(path: Path) -> Path:
    # Locks, and what is being built, lie beside the store and are called after it.
    return path.resolve() if path.name in ("", "..") else path


@contextlib.contextmanager
def _nothing_started(path: Path) -> Iterator[None]:
    """Say of a place where no store can be that it is a mistake: no work has been done yet."""
    try:
        yield
    except GenebError:
        raise
    except OSError as error:
        raise InputError(
            "a store cannot be made or written here",
            where=str(error.filename or path),
            found=error.strerror or str(error),
            fix="name another --store, or make its folder writable, with room in it",
        ) from error


def create_store(path: Path, root: Root, canary: np.ndarray, run: RunRecord) -> bool:
    """Create a store unless it is there; return whether this call made it.

    Parameters
    ----------
    root
        Its `canary` states the vectors' digest.
    canary
        The canary's vectors, shape (16, dim).
    run
        The record of the run that creates it.

    Raises
    ------
    InputError
        If there cannot be a store at this path.
    """
    form = layout.canary_form(root.fingerprint.dim, root.fingerprint.store_dtype)
    vectors = canary.astype(form.dtype)
    if vectors_digest(vectors) != root.canary.vectors_sha256:
        raise ValueError("the root states the digest of another canary")

    def build(folder: Path) -> None:
        _write_group(folder, {"geneb": root.dump()})
        for group in layout.FRAME:
            _write_group(folder / group, {})
        _write_group(folder / layout.RUNS / run.run, {"geneb": run.dump()})
        array = _create_array(folder, layout.CANARY, form)
        array[:] = vectors

    with _nothing_started(path):
        path = _named(path)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        return _create_by_rename(path, build)


def _changed(name: str, old: Any, new: Any) -> str:
    return f"{plain(name)}: {plain(repr(old))} -> {plain(repr(new))}"


class Writer:
    """One process's hold on a store that it writes to.

    Parameters
    ----------
    path
        The store's folder; it may not exist yet.

    Notes
    -----
    Every writer holds a shared lock for as long as it lives; whoever finds itself alone at the
    end seals. Locks are the kernel's: they are gone with a process that was killed.
    """

    def __init__(self, path: Path) -> None:
        with _nothing_started(path):
            path = _named(path)
            if path.exists() and not path.is_dir():
                raise InputError(
                    "a store is a folder, and this is a file",
                    where=str(path),
                    fix="name another path for the store",
                )
        self.path = path
        self._alive = alive_lock(path)
        self._arrays: dict[tuple[str, str], zarr.Array] = {}
        self._fingerprint: Fingerprint | None = None

    def __enter__(self) -> Self:
        with _nothing_started(self.path):
            self._alive.acquire(shared=True)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._alive.taken:  # seal() ends it too
            with ending(self.path, self._alive):
                pass

    # -- the store as a whole ---------------------------------------------------------------

    @property
    def store(self) -> Store:
        """The store as it stands now, opened for reading."""
        return open_store(self.path)

    def open(self, fingerprint: Fingerprint) -> Store:
        """Open the existing store for writing under a fingerprint.

        Raises
        ------
        FingerprintError
            With a field-by-field difference, if the store has another.
        """
        store = self.store
        if store.fingerprint_id != fingerprint.id:
            rows = fingerprint_difference(store.fingerprint, fingerprint)
            listed = "".join(f"\n    {_changed(*row)}" for row in rows)
            raise FingerprintError(
                "this store was made in another way; one store holds one kind of embedding",
                where=str(self.path),
                expected=f"fingerprint {store.fingerprint_id}",
                found=f"fingerprint {fingerprint.id}; store -> asked for:{listed}",
                fix="name another --store, or ask for what the store was made with",
            )
        self._fingerprint = fingerprint
        return store

    @property
    def fingerprint(self) -> Fingerprint:
        """The fingerprint under which the store was opened."""
        assert self._fingerprint is not None, "open() comes first"
        return self._fingerprint

    def _rewrite_root(self, seal: Seal | None, consolidated: dict[str, Any] | None) -> None:
        store = self.store
        before = store.files.document("", layout.MAX_ROOT_BYTES)
        root = store.root.model_copy(update={"seal": seal})
        # Attributes beside ours are somebody's; they stay.
        document = layout.group_document({**before["attributes"], "geneb": root.as_read()})
        if consolidated is not None:
            document["consolidated_metadata"] = consolidated
        if document != before:
            text = pretty_json(document)
            _check_length(text, layout.MAX_ROOT_BYTES, self.path)
            atomic_write(self.path / "zarr.json", text)

    def unseal(self) -> None:
        """Take the seal off, before anything is added."""
        if self.store.sealed:
            self._rewrite_root(None, None)

    def seal(self) -> str | None:
        """Seal the store if every task in it is complete and nobody else writes to it.

        Returns
        -------
        str or None
            None once sealed, else why not. The writer's hold on the store ends with this call.
        """
        with ending(self.path, self._alive) as alone:
            if not alone:
                return "another process is still writing; the last one seals"
            sweep(self.path)
            return self._seal_alone()

    def _seal_alone(self) -> str | None:
        store = self.store
        manifests = {task: store.unsealed_manifest(task) for task in store.present()}
        if unfinished := [task for task, manifest in manifests.items() if manifest is None]:
            self.unseal()
            listed = ", ".join(unfinished[:5]) + (" ..." if len(unfinished) > 5 else "")
            return f"{len(unfinished)} of its tasks are incomplete: {listed}"
        tasks = {task: manifest.digest for task, manifest in manifests.items() if manifest}
        seal = Seal(tasks=tasks, root_sha256=store.root.sha256)
        self._rewrite_root(seal, consolidated_metadata(self.path))
        return None

    # -- tasks -------------------------------------------------------------------------------

    @contextlib.contextmanager
    def claim(self, task: str, waiting: Callable[[], None]) -> Iterator[None]:
        """Hold a task's claim: only its holder writes to the task.

        Parameters
        ----------
        waiting
            Called again and again while another process holds it; what it raises ends the wait.
        """
        lock = claim_lock(self.path, check_name(task, "task"))
        while not lock.taken:
            try:
                lock.acquire(wait=False)
            except BusyError:
                waiting()
                time.sleep(_CLAIM_POLL_SECONDS)
        try:
            yield
        finally:
            lock.release(remove=True)

    def create_task(
        self, task: str, splits: Mapping[str, tuple[np.ndarray, np.ndarray | None]]
    ) -> None:
        """Create a task's groups and arrays unless they are there.

        Parameters
        ----------
        splits
            For each split its row ids (uint8, shape (n, 16)) and labels (int64, shape (n,), or
            None for unlabelled data).
        """
        fingerprint = self.fingerprint

        for split, (row_ids, _) in splits.items():
            where = f"{self.path}, task {check_name(task, 'task')}, {check_name(split, 'split')}"
            layout.check_size(len(row_ids), fingerprint.dim, where)

        def build(folder: Path) -> None:
            _write_group(folder, {})
            for split, (row_ids, labels) in splits.items():
                _write_group(folder / split, {})
                rows = len(row_ids)
                form = layout.embeddings_form(rows, fingerprint.dim, fingerprint.store_dtype)
                _create_array(folder, f"{split}/embeddings", form)
                ids = _create_array(folder, f"{split}/row_id", layout.row_id_form(rows))
                ids[:] = row_ids
                if labels is not None:
                    values = _create_array(folder, f"{split}/labels", layout.labels_form(rows))
                    values[:] = labels

        _create_by_rename(self.path / layout.task_path(task), build)

    def split_arrays(self, task: str, split: str) -> SplitArrays:
        """Return a begun task's arrays, for comparing them and reading blocks back."""
        return SplitArrays(Files(self.path), task, split, self.fingerprint)

    def stamp(self, task: str) -> tuple[int, int] | None:
        """Return what tells a task from one that took its place since; None where it is not there.

        Digests do not: a task that is embedded again has the same ones.
        """
        try:
            status = (self.path / layout.task_path(check_name(task, "task")) / "zarr.json").stat()
        except FileNotFoundError:
            return None
        return status.st_ino, status.st_mtime_ns

    def drop_task(self, task: str) -> None:
        """Remove a task; at any moment it is there whole or not at all."""
        place = self.path / layout.task_path(check_name(task, "task"))
        aside = _aside(place)
        with contextlib.suppress(FileNotFoundError):
            place.rename(aside)
            fsync_directory(place.parent)
            shutil.rmtree(aside)
        self._arrays = {key: value for key, value in self._arrays.items() if key[0] != task}

    def write_block(self, task: str, split: str, index: int, rows: np.ndarray) -> None:
        """Write one block whole; called by the holder of the task's claim alone."""
        array = self._arrays.get((task, split))
        if array is None:
            self._arrays.clear()
            path = layout.array_path(task, split, "embeddings")
            # open_array takes no config: an array keeps what was set when it was opened.
            with zarr.config.set({"array.write_empty_chunks": True}):
                array = zarr.open_array(
                    store=LocalStore(self.path), path=path, mode="r+", zarr_format=3
                )
            self._arrays[task, split] = array
        first, last = layout.block_span(array.shape[0], array.shape[1], index)
        if rows.shape != (last - first, array.shape[1]):
            raise ValueError(f"block {index} has {last - first} rows, got shape {rows.shape}")
        array[first:last] = rows.astype(array.dtype, copy=False)

    def commit_task(
        self,
        task: str,
        counts: Mapping[str, Counts],
        classes: list[str] | None,
        left_out: Mapping[str, int],
    ) -> Manifest:
        """Declare a task complete: everything is synced and read back, then vouched for.

        Raises
        ------
        CorruptionError
            If a block is missing or damaged: nothing is declared then.
        """
        place = self.path / layout.task_path(task)
        _sync_tree(place)
        splits = {}
        for split in ordered_splits(counts):
            arrays = self.split_arrays(task, split)
            sha256 = EmbeddingsDigest(arrays.embeddings)
            for index in range(arrays.embeddings.blocks):
                sha256.read_block(index)
            splits[split] = SplitManifest(
                rows=arrays.rows,
                embeddings_sha256=sha256.hexdigest(),
                pairs_sha256=arrays.pairs_sha256(),
                counts=counts[split],
            )
        manifest = Manifest(
            task=task,
            dim=self.fingerprint.dim,
            classes=classes,
            splits=splits,
            left_out=dict(left_out),
        )
        atomic_write(place / "zarr.json", _group_text({"geneb": manifest.dump()}, place))
        return manifest

    # -- runs --------------------------------------------------------------------------------

    def record_run(self, record: RunRecord) -> None:
        """Write or rewrite this process's record."""
        place = self.path / layout.RUNS / check_name(record.run, "run")
        attributes = {"geneb": record.dump()}
        if not _create_by_rename(place, lambda folder: _write_group(folder, attributes)):
            atomic_write(place / "zarr.json", _group_text(attributes, place))


def check_rows(
    arrays: SplitArrays, row_ids: np.ndarray, labels: np.ndarray | None, where: str
) -> None:
    """Compare a begun or complete split with the CSV's (row id, label) pairs.

    Raises
    ------
    StoreError
        If they differ: the CSV is not the one that was embedded.
    """
    same = (
        arrays.rows == len(row_ids)
        and (arrays.labels is None) == (labels is None)
        and np.array_equal(arrays.row_id.read(), row_ids)
        and (
            labels is None or arrays.labels is None or np.array_equal(arrays.labels.read(), labels)
        )
    )
    if not same:
        raise StoreError(
            "the CSV's rows or labels are not those in the store",
            where=where,
            expected=f"the {arrays.rows:,} rows that were embedded, in their order",
            found=f"{len(row_ids):,} rows in the CSV"
            + (", in another order or with other content" if arrays.rows == len(row_ids) else ""),
            fix="embed the CSV that the store was made from, or drop the stored task and embed "
            "this one with --replace-task",
        )

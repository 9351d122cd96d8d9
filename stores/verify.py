"""Verifying a store: everything that it states is computed again; all faults are listed."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from geneb.base.files import check_name
from geneb.base.progress import Progress, Silent
from geneb.errors import Fault, GenebError, NotFoundError
from geneb.stores import layout
from geneb.stores.model import Manifest, SplitManifest
from geneb.stores.reader import EmbeddingsDigest, SplitArrays, Store, StoredTask, open_store
from geneb.stores.zarr_store import PARTIAL, clean, consolidated_metadata, strays


@dataclass
class Verification:
    """What verifying a store found.

    Attributes
    ----------
    tasks, blocks, bytes
        What was read and computed again.
    strays
        Left behind by interrupted writers; harmless, removed by ``--clean``.
    """

    path: Path
    sealed: bool = False
    fingerprint_id: str | None = None
    tasks: int = 0
    blocks: int = 0
    bytes: int = 0
    faults: list[Fault] = field(default_factory=list)
    strays: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether no fault was found."""
        return not self.faults

    def as_json(self) -> dict[str, Any]:
        """Return the result as a JSON value."""
        return {**asdict(self), "path": str(self.path), "holds": self.holds}


def _fault(error: GenebError) -> Fault:
    return Fault(
        where=error.where or "store",
        problem=error.problem,
        expected=error.expected,
        found=error.found,
        fix=error.fix,
    )


def verify_store(
    path: Path, *, clean_strays: bool = False, progress: Progress | None = None
) -> Verification:
    """Verify a store.

    Parameters
    ----------
    clean_strays
        Remove what interrupted writers left, if nobody is writing.

    Raises
    ------
    NotFoundError
        If there is no store at the path. Everything else is a fault in the result.
    BusyError
        If strays are to be removed while somebody writes.
    """
    progress = progress or Silent()
    result = Verification(path)
    try:
        store = open_store(path)
    except NotFoundError:
        raise
    except GenebError as error:
        result.faults.append(_fault(error))
        return result
    if clean_strays:
        clean(path)
    result.sealed = store.sealed
    result.fingerprint_id = store.fingerprint_id
    result.strays = [str(entry.relative_to(path.parent)) for entry in strays(path)]
    result.faults += _foreign_entries(path)
    result.faults += _collect(lambda: _check_canary(store))
    result.faults += _collect(lambda: _check_seal(store))
    result.faults += _collect(lambda: _check_runs(store))
    try:
        present = store.present()
    except GenebError as error:
        result.faults.append(_fault(error))
        return result
    progress.start(len(present), "tasks")
    for task in present:
        result.faults += _verify_task(store, task, result)
        progress.advance(1, task)
    progress.finish()
    return result


def _collect(check: Callable[[], Iterable[Fault]]) -> list[Fault]:
    """Run a check; an error that ends it is one more fault."""
    faults: list[Fault] = []
    try:
        faults.extend(check())
    except GenebError as error:
        faults.append(_fault(error))
    return faults


def _foreign_entries(path: Path) -> Iterator[Fault]:
    """Find links and special files anywhere below the root."""
    for folder, folders, files in os.walk(path):
        for name in [*folders, *files]:
            entry = Path(folder, name)
            mode = entry.lstat().st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                yield Fault(
                    str(entry), "a store holds only files and folders", found=stat.filemode(mode)
                )


def _check_canary(store: Store) -> Iterator[Fault]:
    if not np.isfinite(store.canary()).all():
        yield Fault(f"{store.path}, {layout.CANARY}", "a vector is not finite")


def _check_runs(store: Store) -> Iterator[Fault]:
    runs = {record.run for record in store.runs()}
    if store.root.created_by not in runs:
        yield Fault(
            f"{store.path}, {layout.RUNS}",
            "the run that created the store left no record",
            expected=store.root.created_by,
        )


def _check_seal(store: Store) -> Iterator[Fault]:
    if store.root.seal is None:
        return
    listed, present = set(store.root.seal.tasks), set(store.present())
    for task in sorted(listed - present):
        yield Fault(f"{store.path}, task {task[:150]}", "the seal lists this task; it is not there")
    for task in sorted(present - listed):
        yield Fault(
            f"{store.path}, task {task}",
            "this task was added after sealing",
            fix="run `geneb embed` on the store again: it seals what is complete",
        )
    document = store.files.document("", layout.MAX_ROOT_BYTES)
    consolidated = document.get("consolidated_metadata")
    stated = consolidated.get("metadata") if isinstance(consolidated, dict) else None
    if stated != consolidated_metadata(store.path):
        yield Fault(
            f"{store.path}, zarr.json",
            "the consolidated metadata is not that of the groups and arrays",
            fix="fetch the store again",
        )


def _verify_task(store: Store, task: str, result: Verification) -> list[Fault]:
    where = f"{store.path}, task {task}"
    try:
        manifest = store.manifest(task)
        if manifest is None:
            return [
                Fault(
                    where,
                    "this task is incomplete",
                    fix="run `geneb embed` on the store again: it resumes where it stopped",
                )
            ]
        stored = store.task(task)
        faults = list(_check_manifest(where, manifest))
        splits = {split: stored.arrays(split) for split in manifest.splits}
        for split in splits:
            store.files.attributes(f"{layout.task_path(task)}/{split}")
    except GenebError as error:
        return [_fault(error)]
    result.tasks += 1
    for split, arrays in splits.items():
        faults += _check_embeddings(f"{where}, {split}", manifest.splits[split], arrays)
        faults += _collect(partial(_check_pairs, stored, split, arrays))
        result.blocks += arrays.embeddings.blocks
        result.bytes += arrays.embeddings.blocks * arrays.embeddings.form.chunk_bytes
    extra = set(store.files.names(layout.task_path(task))) - set(manifest.splits)
    faults += [
        Fault(f"{where}, {name[:150]}", "the manifest does not list this")
        for name in sorted(extra)
        if not name.endswith(PARTIAL)
    ]
    return faults


def _check_manifest(where: str, manifest: Manifest) -> Iterator[Fault]:
    for split, entry in manifest.splits.items():
        check_name(split, "split")
        if entry.counts.computed + entry.counts.copied != entry.rows:
            yield Fault(
                f"{where}, {split}",
                "computed and copied rows do not add up to all rows",
                expected=str(entry.rows),
                found=f"{entry.counts.computed} + {entry.counts.copied}",
            )


def _check_embeddings(where: str, stated: SplitManifest, arrays: SplitArrays) -> Iterator[Fault]:
    """Read every block once; name each that is damaged; compare the digest where none is."""
    sha256 = EmbeddingsDigest(arrays.embeddings)
    damaged = False
    for index in range(arrays.embeddings.blocks):
        try:
            sha256.read_block(index)
        except GenebError as error:
            damaged = True
            yield _fault(error)
    if not damaged and sha256.hexdigest() != stated.embeddings_sha256:
        yield Fault(
            where,
            "the embeddings are not those that the manifest states",
            expected=stated.embeddings_sha256,
            found=sha256.hexdigest(),
        )


def _check_pairs(stored: StoredTask, split: str, arrays: SplitArrays) -> Iterator[Fault]:
    pairs = arrays.pairs_sha256()
    if pairs != stored.manifest.splits[split].pairs_sha256:
        yield Fault(
            arrays.embeddings.files.where(f"{layout.task_path(stored.id)}/{split}"),
            "row ids and labels are not those that the manifest states",
            expected=stored.manifest.splits[split].pairs_sha256,
            found=pairs,
        )
    stored.labels(split)  # raises where a label is outside the classes

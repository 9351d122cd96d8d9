"""Verifying a store: everything that it states is computed again; all faults are listed."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from geneb.base.canonical import canonical_json
from geneb.base.files import PARTIAL, check_name
from geneb.base.progress import Progress, Silent
from geneb.base.text import plain
from geneb.errors import Fault, GenebError, NotFoundError
from geneb.stores import layout
from geneb.stores.arrays import EmbeddingsDigest, SplitArrays
from geneb.stores.consolidated import consolidated_metadata
from geneb.stores.model import SplitManifest
from geneb.stores.reader import Store, StoredTask, open_store
from geneb.stores.writers import clean, strays


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
    result.strays = [plain(os.path.relpath(entry, path.parent)) for entry in strays(path)]
    result.faults += _collect(lambda: _check_kinds(path))
    result.faults += _collect(lambda: _check_frame(store))
    result.faults += _collect(lambda: _check_canary(store))
    result.faults += _collect(lambda: _check_runs(store))
    result.faults += _collect(lambda: _check_seal(store))
    names = _task_names(store, result)
    progress.start(len(names), "tasks")
    for task in names:
        result.faults += _collect(partial(_verify_task, store, task, result))
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


def _check_kinds(path: Path) -> Iterator[Fault]:
    """Find links and special files anywhere below the root."""
    for folder, folders, files in os.walk(path):
        for name in [*folders, *files]:
            entry = Path(folder, name)
            try:
                mode = entry.lstat().st_mode
            except FileNotFoundError:  # a writer has just moved it to its place
                continue
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                yield Fault(
                    plain(str(entry), limit=1000),
                    "a store holds only files and folders",
                    found=stat.filemode(mode),
                )


def _check_frame(store: Store) -> Iterator[Fault]:
    """Look at the groups that every store has, and for what does not belong beside them.

    Files such as a README may lie in the root; below it is nothing but the format's.
    """
    for group in layout.FRAME:
        store.files.attributes(group)
    for name in set(store.files.names("")) - set(layout.FRAME):
        yield _not_ours(store.files.where(""), name)
    yield from _check_entries(store, layout.TASKS, [], folders=True)
    yield from _check_entries(store, layout.RUNS, [], folders=True)
    yield from _check_entries(store, "canary", ["embeddings"])


def _check_entries(
    store: Store, path: str, expected: Iterable[str], *, folders: bool = False
) -> Iterator[Fault]:
    """Find what does not belong into a node's folder: all but its zarr.json and what is expected.

    Hidden entries are no part of a store, and ``*.partial`` are strays.
    """
    allowed = {"zarr.json", *expected}
    for entry in store.files.entries(path):
        if not (
            entry.name in allowed
            or entry.name.startswith(".")
            or (folders and entry.is_dir(follow_symlinks=False))
            or (entry.name.endswith(PARTIAL) and entry.is_file(follow_symlinks=False))
        ):
            yield _not_ours(store.files.where(path), entry.name)


def _not_ours(where: str, name: str) -> Fault:
    return Fault(f"{where}, {plain(name)}", "nothing in the store vouches for this")


def _check_canary(store: Store) -> Iterator[Fault]:
    yield from _check_entries(store, layout.CANARY, ["c.0.0"])
    if not np.isfinite(store.canary()).all():  # raises where it is not what the root states
        yield Fault(f"{store.path}, {layout.CANARY}", "a vector is not finite")


def _check_runs(store: Store) -> Iterator[Fault]:
    records = store.runs()
    if store.root.created_by not in {record.run for record in records}:
        yield Fault(
            f"{store.path}, {layout.RUNS}",
            "the run that created the store left no record",
            expected=plain(store.root.created_by),
        )
    for record in records:
        yield from _check_entries(store, f"{layout.RUNS}/{record.run}", [])


def _check_seal(store: Store) -> Iterator[Fault]:
    if store.root.seal is None:
        return
    present = store.files.names(layout.TASKS)
    for task in sorted(set(present) - set(store.root.seal.tasks)):
        yield Fault(
            f"{store.path}, task {plain(task)}",
            "this task was added after sealing",
            fix="run `geneb embed` on the store again: it seals what is complete",
        )
    stated = store.files.document("", layout.MAX_ROOT_BYTES).get("consolidated_metadata")
    if _comparable(stated) != _comparable(consolidated_metadata(store.path)):
        yield Fault(
            f"{store.path}, zarr.json",
            "the consolidated metadata is not that of the groups and arrays",
            fix="fetch the store again; if everything else holds, `geneb embed` writes it anew",
        )


def _comparable(consolidated: Any) -> bytes:
    """Return consolidated metadata as bytes, without the empty ones that groups in it may have."""
    nodes = consolidated.get("metadata") if isinstance(consolidated, dict) else None
    if not isinstance(nodes, dict):
        return canonical_json(consolidated)
    bare = {
        name: {key: value for key, value in node.items() if key != "consolidated_metadata"}
        if isinstance(node, dict)
        else node
        for name, node in nodes.items()
    }
    return canonical_json({**consolidated, "metadata": bare})


def _task_names(store: Store, result: Verification) -> list[str]:
    """Return the tasks that are there or that the seal lists; report impossible names."""
    names = set(store.root.seal.tasks) if store.root.seal else set()
    try:
        names.update(store.files.names(layout.TASKS))
    except GenebError as error:
        result.faults.append(_fault(error))
    possible = []
    for name in sorted(names):
        try:
            possible.append(check_name(name, "task"))
        except GenebError as error:
            result.faults.append(replace(_fault(error), where=store.files.where(layout.TASKS)))
    return possible


def _verify_task(store: Store, task: str, result: Verification) -> Iterator[Fault]:
    where = f"{store.path}, task {task}"
    manifest = store.manifest(task)
    if manifest is None:
        yield Fault(
            where,
            "this task is incomplete",
            fix="run `geneb embed` on the store again: it resumes where it stopped",
        )
        return
    result.tasks += 1
    stored = StoredTask(store, task, manifest)
    yield from _check_entries(store, layout.task_path(task), manifest.splits)
    for split in stored.splits:
        yield from _collect(partial(_verify_split, stored, store, split, result))


def _verify_split(
    stored: StoredTask, store: Store, split: str, result: Verification
) -> Iterator[Fault]:
    path = f"{layout.task_path(stored.id)}/{split}"
    where = f"{store.path}, task {stored.id}, {split}"
    stated = stored.manifest.splits[split]
    yield from _check_counts(where, stated)
    store.files.attributes(path)
    arrays = stored.arrays(split)
    names = [array.path.rpartition("/")[2] for array in arrays.every]
    yield from _check_entries(store, path, names)
    for array in arrays.every:
        yield from _check_entries(store, array.path, array.form.chunk_keys)
        result.blocks += array.blocks
        result.bytes += array.blocks * array.form.chunk_bytes
    yield from _check_embeddings(where, stated, arrays)
    yield from _collect(partial(_check_pairs, where, stored, split, arrays))


def _check_counts(where: str, stated: SplitManifest) -> Iterator[Fault]:
    counts = stated.counts
    if counts.computed + counts.copied != stated.rows:
        yield Fault(
            where,
            "computed and copied rows do not add up to all rows",
            expected=f"{stated.rows:,}",
            found=f"{counts.computed:,} + {counts.copied:,}",
        )
    for name in ("truncated", "non_acgt", "empty"):
        if getattr(counts, name) > stated.rows:
            yield Fault(
                where,
                f"more rows are counted as {name} than there are",
                expected=f"at most {stated.rows:,}",
                found=f"{getattr(counts, name):,}",
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


def _check_pairs(
    where: str, stored: StoredTask, split: str, arrays: SplitArrays
) -> Iterator[Fault]:
    stated, found = stored.manifest.splits[split].pairs_sha256, arrays.pairs_sha256()
    if found != stated:
        yield Fault(
            where,
            "row ids and labels are not those that the manifest states",
            expected=stated,
            found=found,
        )
    stored.labels(split)  # raises where a label is outside the classes

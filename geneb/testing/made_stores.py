"""Embedding stores made without a model, for tests of readers, probes and analyses."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from geneb.base.canonical import row_ids
from geneb.embedding.canary import canary_digest
from geneb.stores.arrays import vectors_digest
from geneb.stores.layout import CANARY_ROWS, block_count, block_span
from geneb.stores.model import (
    FORMAT,
    VERSION,
    CanaryRef,
    Counts,
    Fingerprint,
    ModelRef,
    Root,
    RunRecord,
)
from geneb.stores.zarr_store import Writer, create_store

RUN = "made-by-hand"
MODEL = "made-by-hand"


@dataclass(frozen=True)
class SplitContent:
    """What one split of a store is made of.

    Attributes
    ----------
    embeddings
        float32, shape (n, dim).
    row_ids
        uint8, shape (n, 16).
    labels
        int64, shape (n,), 0..K-1; None for unlabelled data.
    """

    embeddings: np.ndarray
    row_ids: np.ndarray
    labels: np.ndarray | None


@dataclass(frozen=True)
class TaskContent:
    """What one task of a store is made of.

    Attributes
    ----------
    splits
        By name.
    classes
        Text of each label; None for unlabelled data.
    """

    splits: Mapping[str, SplitContent]
    classes: list[str] | None


@dataclass(frozen=True)
class StoreContent:
    """What a whole store is made of.

    Attributes
    ----------
    tasks
        By id.
    dim
        Numbers a vector.
    store_dtype
        What vectors are stored as.
    """

    tasks: Mapping[str, TaskContent]
    dim: int
    store_dtype: Literal["float32", "float16"] = "float32"

    @property
    def canary(self) -> np.ndarray:
        """The canary's vectors: float32, shape (16, dim)."""
        return _random_rows(CANARY_ROWS, self.dim, "canary")

    @property
    def fingerprint(self) -> Fingerprint:
        """The store's fingerprint."""
        return Fingerprint(
            extractor="made-by-hand",
            numerics_version=1,
            parameters={"why": "a test"},
            weights=None,
            tokenizer=None,
            file=None,
            compute_dtype="float32",
            matmul_precision="highest",
            store_dtype=self.store_dtype,
            dim=self.dim,
        )


def make_task(
    task: str, dim: int, rows: Mapping[str, int], classes: list[str] | None = None
) -> TaskContent:
    """Return a task of random vectors, the same for the same arguments.

    Parameters
    ----------
    task
        Its id; tasks with different ids differ.
    rows
        Number of rows of each split.
    classes
        Text of each label; labels go round. None for unlabelled data.
    """
    splits = {}
    for split, count in rows.items():
        labels = None if classes is None else np.arange(count, dtype=np.int64) % len(classes)
        ids = row_ids(f"{task} {split} {row}" for row in range(count))
        splits[split] = SplitContent(_random_rows(count, dim, f"{task} {split}"), ids, labels)
    return TaskContent(splits, classes)


def _random_rows(rows: int, dim: int, name: str) -> np.ndarray:
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
    return np.random.default_rng(seed).standard_normal((rows, dim), dtype=np.float32)


def write_store(path: Path, content: StoreContent, *, seal: bool = True) -> Path:
    """Write a store to a folder that does not exist yet, and return the folder."""
    with Writer(path) as writer:
        create_empty(path, content)
        writer.open(content.fingerprint)
        for name, task in content.tasks.items():
            with writer.claim(name, lambda: None):
                write_task(writer, name, task)
        unsealed = writer.seal() if seal else None
        assert unsealed is None, unsealed
    return path


def create_empty(path: Path, content: StoreContent) -> bool:
    """Create the store without its tasks unless it is there; return whether this call made it."""
    canary = content.canary.astype(content.store_dtype)
    return create_store(path, _root(content.fingerprint, canary), canary, make_run(RUN))


def write_task(writer: Writer, name: str, task: TaskContent) -> None:
    """Write a whole task through an opened writer that holds its claim."""
    splits = {split: (entry.row_ids, entry.labels) for split, entry in task.splits.items()}
    writer.create_task(name, splits)
    for split, entry in task.splits.items():
        write_split(writer, name, split, entry.embeddings)
    writer.commit_task(name, make_counts(task), task.classes, {})


def write_split(writer: Writer, task: str, split: str, embeddings: np.ndarray) -> None:
    """Write all blocks of a split whose arrays exist."""
    rows, dim = embeddings.shape
    for index in range(block_count(rows, dim)):
        first, last = block_span(rows, dim, index)
        writer.write_block(task, split, index, embeddings[first:last])


def _root(fingerprint: Fingerprint, canary: np.ndarray) -> Root:
    return Root(
        format=FORMAT,
        version=VERSION,
        fingerprint_id=fingerprint.id,
        fingerprint=fingerprint,
        model=ModelRef(id=MODEL, display="Made by hand", params=None, licence=None, source=None),
        canary=CanaryRef(sequences_sha256=canary_digest(), vectors_sha256=vectors_digest(canary)),
        token_budget=1024,
        benchmark_data={},
        created_by=RUN,
        seal=None,
    )


def make_run(run: str) -> RunRecord:
    """Return the record of a run that did nothing."""
    return RunRecord(
        run=run,
        started="2026-01-01T00:00:00+00:00",
        ended=None,
        outcome=None,
        options={},
        versions={},
        platform={},
        blocks=0,
        rows_computed=0,
        rows_copied=0,
        tokens=0,
        seconds=None,
        out_of_memory_splits=0,
    )


def make_counts(task: TaskContent) -> dict[str, Counts]:
    """Return the counts of a task whose rows were all computed, and none of them unusual."""
    return {
        split: Counts(truncated=0, non_acgt=0, empty=0, computed=len(entry.row_ids), copied=0)
        for split, entry in task.splits.items()
    }


AWKWARD_NUMBERS = np.array(
    [0.0, -0.0, 1e-45, -1e-40, 3.4028235e38, -3.4028235e38, 1.0, 1 / 3], dtype=np.float32
)
"""Zeros of both signs, numbers below the normal range, the largest ones."""


def awkward_content(store_dtype: Literal["float32", "float16"] = "float32") -> StoreContent:
    """Return a store's content with everything that the format allows, in small."""
    dim = len(AWKWARD_NUMBERS)
    extremes = make_task("extremes", dim, {"train": 5, "test": 3}, ["0", "1"])
    numbers = AWKWARD_NUMBERS.clip(-60_000, 60_000) if store_dtype == "float16" else AWKWARD_NUMBERS
    extremes.splits["train"].embeddings[:] = numbers
    extremes.splits["test"].embeddings[:] = 0
    splits = {"validation": 2, "test": 1, "train": 3}
    return StoreContent(
        {
            "unlabelled": make_task("unlabelled", dim, {"train": 4}),
            "Other.splits+names_": make_task("other", dim, splits, ["-1", "é", ""]),
            "extremes": extremes,
        },
        dim,
        store_dtype,
    )

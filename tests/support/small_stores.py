"""Small embedding stores and embeddings, made without the embedding engine."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from geneb.base.canonical import row_ids
from geneb.probing.fit import TaskArrays
from geneb.stores.arrays import vectors_digest
from geneb.stores.layout import CANARY_ROWS
from geneb.stores.model import CanaryRef, Fingerprint, ModelRef, Root
from geneb.stores.zarr_store import Writer, create_store
from geneb.testing.made_stores import SplitContent, TaskContent, make_run, write_task


@dataclass
class Arrays:
    """A task's embeddings and labels; labels None where it has none.

    A row is told from others by its embedding, as if that were its sequence.
    """

    train: np.ndarray
    train_labels: np.ndarray | None
    test: np.ndarray
    test_labels: np.ndarray | None

    def all(self) -> tuple:
        return self.train, self.train_labels, self.test, self.test_labels

    def for_probe(self) -> TaskArrays:
        ids = [row_ids([row.tobytes().hex() for row in rows]) for rows in (self.train, self.test)]
        return TaskArrays(
            self.train, self.train_labels, ids[0], self.test, self.test_labels, ids[1]
        )


def kmer_frequencies(path: Path, k: int, rows: int | None = None) -> Arrays:
    """Frequencies of all words of k letters in a task's sequences, at most so many a split."""
    place = {"".join(word): i for i, word in enumerate(itertools.product("ACGT", repeat=k))}
    found: dict[str, tuple[list, list]] = {"train": ([], []), "test": ([], [])}
    with path.open(newline="", encoding="utf-8") as stream:
        for line in csv.DictReader(stream):
            vectors, labels = found[line["split"]]
            if rows is not None and len(vectors) == rows:
                continue
            vector = np.zeros(4**k, dtype=np.float32)
            words = [line["text"][i : i + k] for i in range(len(line["text"]) - k + 1)]
            for word in words:
                if word in place:
                    vector[place[word]] += np.float32(1 / len(words))
            vectors.append(vector)
            labels.append(int(line["label"]))
    return Arrays(
        np.stack(found["train"][0]),
        np.array(found["train"][1]),
        np.stack(found["test"][0]),
        np.array(found["test"][1]),
    )


def random_task(seed: int = 0, *, dim: int = 6, classes: int = 2, rows: int = 40) -> Arrays:
    """A task that can be told apart, more or less."""
    generator = np.random.default_rng(seed)
    centres = generator.normal(size=(classes, dim))

    def split() -> tuple[np.ndarray, np.ndarray]:
        labels = np.arange(rows) % classes
        noise = generator.normal(size=(rows, dim))
        return (centres[labels] + noise).astype(np.float32), labels.astype(np.int64)

    return Arrays(*split(), *split())


def write_store(path: Path, tasks: Mapping[str, Arrays], model: str = "small-model") -> Path:
    """Write a store with these tasks; the model's name is part of the fingerprint."""
    dim = next(iter(tasks.values())).train.shape[1]
    fingerprint = Fingerprint(
        extractor="by-hand",
        numerics_version=1,
        parameters={"model": model},
        weights=None,
        tokenizer=None,
        file=None,
        compute_dtype="float32",
        matmul_precision="highest",
        store_dtype="float32",
        dim=dim,
    )
    canary = np.zeros((CANARY_ROWS, dim), dtype=np.float32)
    root = Root(
        format="geneb-store",
        version="1.0",
        fingerprint_id=fingerprint.id,
        fingerprint=fingerprint,
        model=ModelRef(id=model, display=model, params=None, licence=None, source=None),
        canary=CanaryRef(sequences_sha256="0" * 64, vectors_sha256=vectors_digest(canary)),
        token_budget=1,
        benchmark_data={},
        created_by="by-hand",
        seal=None,
    )
    create_store(path, root, canary, make_run("by-hand"))
    with Writer(path) as writer:
        writer.open(fingerprint)
        for task_id, arrays in tasks.items():
            write_task(writer, task_id, _content(task_id, arrays))
    return path


def replace_task(path: Path, task_id: str, arrays: Arrays) -> None:
    """Write a task of an existing store anew."""
    with Writer(path) as writer:
        writer.open(writer.store.fingerprint)
        writer.drop_task(task_id)
        write_task(writer, task_id, _content(task_id, arrays))


def damage_block(store: Path, task: str) -> None:
    """Flip a bit of a task's test embeddings."""
    block = store / "tasks" / task / "test/embeddings/c.0.0"
    content = bytearray(block.read_bytes())
    content[11] ^= 4
    block.write_bytes(content)


def _content(task_id: str, arrays: Arrays) -> TaskContent:
    splits = {
        "train": (arrays.train, arrays.train_labels),
        "test": (arrays.test, arrays.test_labels),
    }
    known = [labels.max() for _, labels in splits.values() if labels is not None]
    return TaskContent(
        {
            name: SplitContent(
                rows, row_ids(f"{task_id} {name} {i}" for i in range(len(rows))), labels
            )
            for name, (rows, labels) in splits.items()
        },
        [str(label) for label in range(max(known) + 1)] if known else None,
    )

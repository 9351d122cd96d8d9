"""What a contributor hands in: a submission, its evidence and its store; and forgeries of them."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import geneb
from geneb.benchmark.spec import load_spec
from geneb.embedding.run import embed
from geneb.reporting.pack import Statement, pack
from geneb.stores import layout, open_store
from geneb.stores.model import Counts
from geneb.stores.zarr_store import Writer
from support.small_tasks import Rows, demo_rows, write_task
from support.submissions import submission

MODEL = "kmer2"
TASKS = load_spec().task_ids[:3]


@dataclass(frozen=True)
class Contribution:
    """Where a contribution lies."""

    submission: Path
    store: Path

    @property
    def evidence(self) -> Path:
        return self.submission.with_name(f"{MODEL}.evidence.json")

    @property
    def document(self) -> dict[str, Any]:
        return json.loads(self.submission.read_text(encoding="utf-8"))

    def rewrite(self, document: dict[str, Any]) -> None:
        """Replace the submission, and bind the evidence to the new one."""
        text = json.dumps(document)
        self.submission.write_text(text, encoding="utf-8")
        if self.evidence.exists():
            evidence = json.loads(self.evidence.read_text(encoding="utf-8"))
            evidence["submission_sha256"] = hashlib.sha256(text.encode()).hexdigest()
            self.evidence.write_text(json.dumps(evidence), encoding="utf-8")

    def change_evidence(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Change the evidence in place."""
        evidence = json.loads(self.evidence.read_text(encoding="utf-8"))
        change(evidence)
        self.evidence.write_text(json.dumps(evidence), encoding="utf-8")

    def copy(self, folder: Path) -> Contribution:
        """Return a copy to be spoilt."""
        shutil.copytree(self.submission.parent, folder)
        return Contribution(folder / self.submission.name, folder / self.store.name)


def write_spec_tasks(demo_data: Path, folder: Path, task_ids: Sequence[str], rows: int) -> Path:
    """Write tasks of the benchmark's names with real, labelled sequences, each its own."""
    folder.mkdir(parents=True, exist_ok=True)
    known = demo_rows(demo_data, "demo_chloroplast_coding")
    for place, task in enumerate(task_ids):
        write_task(folder / f"{task}.csv", _some_rows(known, place, rows))
    return folder


def _some_rows(known: Rows, place: int, rows: int) -> Rows:
    """So many rows of each split, both classes in each."""
    chosen = []
    for split in ("train", "test"):
        for label in ("0", "1"):
            of_class = [row for row in known if row[1:] == (label, split)]
            first = place * 7 % (len(of_class) - rows)
            chosen += of_class[first : first + rows // 2]
    return [(text[:120], label, split) for text, label, split in chosen]


def contribute(folder: Path, data: Path, task_ids: Sequence[str]) -> Contribution:
    """Embed, probe and submit; the scores of tasks that were not probed are made up."""
    store = folder / f"{MODEL}.zarr"
    embed(MODEL, data=data, store=store, tasks=task_ids)
    return submit(folder, store)


def submit(folder: Path, store: Path) -> Contribution:
    """Probe a store and submit what comes of it."""
    geneb.probe(store, out=folder / "results")
    packed = pack(
        [folder / "results" / MODEL], Statement(params=16), store=open_store(store), partial=True
    )[0]
    document = submission(MODEL)
    for regime, tasks in json.loads(packed.submission)["results"].items():
        document["results"][regime].update(tasks)
    found = Contribution(folder / f"{MODEL}.json", store)
    found.evidence.write_text(packed.evidence, encoding="utf-8")
    found.rewrite(document)
    return found


@dataclass(frozen=True)
class Content:
    """One split of a stored task."""

    embeddings: np.ndarray
    row_ids: np.ndarray
    labels: np.ndarray

    def in_order(self, order: np.ndarray) -> Content:
        return Content(self.embeddings[order], self.row_ids[order], self.labels[order])

    def changed(self, **values: np.ndarray) -> Content:
        return replace(self, **values)


def forge(store: Path, task_id: str, change: Callable[[Content], Content]) -> None:
    """Write a task anew with other content; its manifest and the seal fit it."""
    task = open_store(store).task(task_id)
    splits = {
        name: change(Content(task.embeddings(name), task.row_ids(name), task.labels(name)))
        for name in task.splits
    }
    with Writer(store) as writer:
        writer.open(writer.store.fingerprint)
        writer.unseal()
        writer.drop_task(task_id)
        writer.create_task(
            task_id, {name: (one.row_ids, one.labels) for name, one in splits.items()}
        )
        for name, one in splits.items():
            assert layout.block_count(*one.embeddings.shape) == 1
            writer.write_block(task_id, name, 0, one.embeddings)
        counts = {
            name: Counts(truncated=0, non_acgt=0, empty=0, computed=len(one.labels), copied=0)
            for name, one in splits.items()
        }
        writer.commit_task(task_id, counts, task.classes, {})
        writer.seal()

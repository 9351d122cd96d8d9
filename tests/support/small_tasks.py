"""Small task CSVs cut from the shipped real data: mixed lengths, duplicates within and across."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from geneb.stores import layout

Rows = list[tuple[str, str, str]]
"""(sequence, label, split) of a task, in file order."""


def demo_rows(demo_data: Path, task: str) -> Rows:
    """All rows of a shipped task."""
    with (demo_data / f"{task}.csv").open(newline="", encoding="utf-8") as stream:
        return [(row["text"], row["label"], row["split"]) for row in csv.DictReader(stream)]


def write_task(path: Path, rows: Iterable[tuple[str, ...]]) -> Path:
    """Write a task's CSV."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["text", "label", "split"])
        writer.writerows(rows)
    return path


def write_small_tasks(demo_data: Path, folder: Path, rows: int = 60) -> Path:
    """Write three tasks of about so many rows that share some; return their folder.

    ``mixed`` has real sequences cut to 40 to 199 letters, and every tenth row twice; ``shared``
    begins and ends with rows of ``mixed``, in both splits; ``three`` has three classes and rows
    of one length, one of them in lower case and one all N.
    """
    folder.mkdir(parents=True, exist_ok=True)
    coding = demo_rows(demo_data, "demo_chloroplast_coding")
    mixed = [
        (text[: 40 + 37 * number % 160], label, split)
        for number, (text, label, split) in enumerate(coding[:rows])
    ]
    mixed += mixed[::10]
    other = [(text[:90], label, split) for text, label, split in coding[rows : 3 * rows // 2]]
    junctions = demo_rows(demo_data, "demo_splice_junctions")
    three = junctions[: rows // 2] + junctions[2000 : 2000 + rows // 4]
    three[3] = (three[3][0].lower(), *three[3][1:])
    three[5] = ("N" * 60, *three[5][1:])
    write_task(folder / "mixed.csv", mixed)
    write_task(folder / "shared.csv", mixed[rows // 6 : rows // 3] + other + mixed[5:15])
    write_task(folder / "three.csv", three)
    return folder


def content(store: Path) -> dict[str, bytes]:
    """Every file of a store that a resumed run must write just as an uninterrupted one does."""
    files = {}
    for part in ("canary", "tasks"):
        for folder, _, names in os.walk(store / part):
            for name in names:
                path = Path(folder, name)
                files[str(path.relative_to(store))] = path.read_bytes()
    return files


def differing(left: dict[str, bytes], right: dict[str, bytes]) -> list[str]:
    """Names of the files that only one of two stores has, or that are not the same in both."""
    return sorted(name for name in {*left, *right} if left.get(name) != right.get(name))


def beside(store: Path) -> list[str]:
    """What lies next to a store and belongs to it: locks, and what killed writers left."""
    return sorted(entry.name for entry in store.parent.glob(f".{store.name}*"))


@contextmanager
def blocks_of(size: int) -> Iterator[None]:
    """Make blocks of at most so many bytes, so that small data has many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "BLOCK_BYTES", size)
        yield

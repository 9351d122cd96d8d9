"""Facts on a split: sizes, classes, and digests that tell tasks with similar names apart."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from geneb.base.canonical import row_id
from geneb.tasks.describe import SplitFacts, describe_split
from geneb.tasks.read import Task, read_task

ROWS = [("ACGT", "b"), ("", "a"), ("ACGTNN", "b"), ("acg", "b"), ("ACGT", "a")]


@pytest.fixture
def task_of(tmp_path: Path):
    """Read a task whose train split has these (text, label) rows."""

    def read(rows: list[tuple[str, str]], others: str = "A,c,test\n") -> Task:
        path = tmp_path / "task.csv"
        body = "".join(f"{text},{label},train\n" for text, label in rows)
        path.write_text("text,label,split\n" + body + others)
        return read_task(path)

    return read


def pairs_sha256(pairs: list[tuple[bytes, int]]) -> str:
    content = b"".join(row + label.to_bytes(8, "little") for row, label in pairs)
    return hashlib.sha256(content).hexdigest()


def test_facts(task_of):
    """Every number, by hand; the digests are those of the row ids and labels one after another."""
    codes = {"a": 0, "b": 1}
    pairs = [(row_id(text), codes[label]) for text, label in ROWS]

    assert describe_split(task_of(ROWS), "train") == SplitFacts(
        rows=5,
        min_length=0,
        median_length=4.0,
        max_length=6,
        non_acgt=1,
        empty=1,
        rows_of_class={"a": 2, "b": 3, "c": 0},
        ordered_sha256=pairs_sha256(pairs),
        sorted_sha256=pairs_sha256(sorted(pairs)),
    )


def test_order_of_rows_changes_one_digest_only(task_of):
    """The same rows in another order are told from other rows."""
    first = describe_split(task_of(ROWS), "train")
    turned = describe_split(task_of(ROWS[::-1]), "train")

    assert first.ordered_sha256 != turned.ordered_sha256
    assert first.sorted_sha256 == turned.sorted_sha256


@pytest.mark.parametrize("changed", [("ACGA", "b"), ("ACGT", "a")])
def test_another_row_changes_both_digests(changed, task_of):
    """One letter, or one label."""
    first = describe_split(task_of(ROWS), "train")
    other = describe_split(task_of([changed, *ROWS[1:]]), "train")

    assert first.ordered_sha256 != other.ordered_sha256
    assert first.sorted_sha256 != other.sorted_sha256


def test_unlabelled_rows(tmp_path):
    """Digests are those of the row ids alone, and no classes are counted."""
    path = tmp_path / "own.csv"
    path.write_text("text,split\nC,train\nACGT,train\nA,test\n")
    ids = [row_id("C"), row_id("ACGT")]

    facts = describe_split(read_task(path), "train")

    assert facts.rows_of_class == {}
    assert facts.ordered_sha256 == hashlib.sha256(b"".join(ids)).hexdigest()
    assert facts.sorted_sha256 == hashlib.sha256(b"".join(sorted(ids))).hexdigest()

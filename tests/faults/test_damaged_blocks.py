"""Damaged and missing blocks: redone where a task is incomplete, found where it is complete."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from support.small_tasks import blocks_of, content, differing

import geneb
from geneb.errors import CorruptionError
from geneb.stores.verify import verify_store

BLOCK = "tasks/mixed/train/embeddings/c.1.0"


@pytest.fixture(autouse=True)
def many_blocks():
    """Several blocks a split."""
    with blocks_of(16 << 10):
        yield


@pytest.fixture
def embed(small_data):
    """Embed k-mers."""

    def run(store, **options):
        return geneb.embed("kmer4", data=small_data, store=store, available=True, **options)

    return run


@pytest.fixture
def begun(embed, tmp_path) -> Path:
    """A store whose first task has two blocks of three, and is not complete."""
    store = tmp_path / "begun.zarr"
    asked = itertools.count()
    summary = embed(store, stop=lambda: next(asked) == 3)
    assert summary.stopped
    assert summary.blocks == 2
    return store


def flip_a_bit(block: Path) -> None:
    data = bytearray(block.read_bytes())
    data[1000] ^= 0x10
    block.write_bytes(data)


def cut_short(block: Path) -> None:
    block.write_bytes(block.read_bytes()[:-100])


def empty(block: Path) -> None:
    block.write_bytes(b"")


def remove(block: Path) -> None:
    block.unlink()


DAMAGES = [flip_a_bit, cut_short, empty, remove]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_block_of_an_incomplete_task_is_redone(embed, begun, tmp_path, damage):
    """There, and valid, are two things: only a block that passes its checksum is kept."""
    whole = embed(tmp_path / "whole.zarr")
    damage(begun / BLOCK)

    summary = embed(begun)

    assert summary.blocks == whole.blocks - 2 + 1
    assert differing(content(tmp_path / "whole.zarr"), content(begun)) == []
    assert verify_store(begun).holds


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_block_of_a_complete_task_is_found_and_mended(embed, tmp_path, damage):
    """Verifying names it; embedding the task anew mends it, other tasks stay as they are."""
    store = tmp_path / "complete.zarr"
    embed(store)
    before = content(store)
    damage(store / BLOCK)

    (fault,) = verify_store(store).faults
    assert "task mixed, train/embeddings, block 1 (c.1.0)" in fault.where

    summary = embed(store, replace_tasks=["mixed"])

    assert summary.embedded == ["mixed"]
    assert summary.complete == ["shared", "three"]
    assert summary.unsealed is None
    assert verify_store(store).holds
    # The manifest may differ: rows that other tasks hold are copied from there this time.
    assert differing(before, content(store)) in ([], ["tasks/mixed/zarr.json"])


def test_nothing_is_copied_from_a_damaged_block(embed, small_data, tmp_path):
    """A checksum is verified when a row is copied, and the message says what to do."""
    store = tmp_path / "source.zarr"
    embed(store, tasks=["mixed"])
    flip_a_bit(store / "tasks/mixed/train/embeddings/c.0.0")

    with pytest.raises(CorruptionError, match="block 0") as caught:
        embed(store, tasks=["mixed", "shared"])

    assert "--replace-task" in caught.value.fix
    assert caught.value.exit_code == 1
    summary = embed(store, tasks=["mixed", "shared"], replace_tasks=["mixed"])
    assert summary.embedded == ["mixed", "shared"]
    assert verify_store(store).holds


def test_a_replaced_task_takes_rows_from_others(embed, small_data, tmp_path):
    """Rows that complete tasks hold are copied, and are the same bits as before."""
    store = tmp_path / "replaced.zarr"
    embed(store)
    before = geneb.open_store(store).task("mixed").embeddings("train")

    summary = embed(store, replace_tasks=["mixed"])

    assert summary.rows_copied > 0
    np.testing.assert_array_equal(before, geneb.open_store(store).task("mixed").embeddings("train"))

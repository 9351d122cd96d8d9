"""Published numbers that depend on the batch are repeated: every row, in the file's batches."""

from __future__ import annotations

import csv
import itertools
from pathlib import Path

import numpy as np
import pytest
from support.layered_extractors import FileOrder
from support.small_tasks import blocks_of, content, differing, write_small_tasks

import geneb
from geneb.extractors.base import LAST, Batch


@pytest.fixture(scope="module")
def data(demo_data, tmp_path_factory) -> Path:
    """Three small tasks that share rows."""
    return write_small_tasks(demo_data, tmp_path_factory.mktemp("data"))


@pytest.fixture
def embed(root, data):
    """Embed in file order."""
    spec = f"{root / 'tests' / 'support' / 'layered_extractors.py'}:FileOrder"

    def run(store: Path, **options):
        return geneb.embed(spec, data=data, store=store, available=True, **options)

    return run


def published_loop(sequences: list[str]) -> np.ndarray:
    """Eight rows of a split at a time, padded to the longest of them."""
    extractor = FileOrder()
    vectors = []
    for first in range(0, len(sequences), 8):
        items = extractor.prepare(sequences[first : first + 8])
        batch = Batch(items, max(item.length for item in items))
        vectors.append(extractor.forward(batch, (LAST,))[LAST])
    return np.concatenate(vectors)


@pytest.mark.parametrize("block_bytes", [16 << 20, 333, 20])
def test_batches_are_those_of_the_split(embed, data, tmp_path, block_bytes):
    """Wherever a block begins or ends: in many, in one, or with less than a batch in each."""
    with blocks_of(block_bytes):
        summary = embed(tmp_path / "f.zarr")

        store = geneb.open_store(tmp_path / "f.zarr")
        for name in store.task_ids():
            with (data / f"{name}.csv").open(newline="", encoding="utf-8") as stream:
                rows = list(csv.DictReader(stream))
            for split in ("train", "test"):
                sequences = [row["text"] for row in rows if row["split"] == split]
                expected = published_loop(sequences)
                np.testing.assert_array_equal(expected, store.task(name).embeddings(split))
                counts = store.task(name).manifest.splits[split].counts
                assert (counts.computed, counts.copied) == (len(sequences), 0)
                assert counts.truncated == sum(len(sequence) > 50 for sequence in sequences)
    assert summary.rows_copied == 0
    assert store.fingerprint.parameters["rows a batch"] == 8


def test_stopped_and_resumed_it_is_the_same(embed, tmp_path):
    """A block that begins within a batch is made again with all of it."""
    with blocks_of(333):
        embed(tmp_path / "whole.zarr", tasks=["mixed"])
        for number in (2, 3, 5):
            store = tmp_path / f"stopped{number}.zarr"
            asked = itertools.count()
            stop = lambda asked=asked, number=number: next(asked) == number  # noqa: E731
            assert embed(store, tasks=["mixed"], stop=stop).stopped
            embed(store, tasks=["mixed"])
            assert differing(content(tmp_path / "whole.zarr"), content(store)) == []

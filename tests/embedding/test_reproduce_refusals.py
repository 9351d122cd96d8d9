"""Embedding rows again with a model that cannot: the rows are named, or it is the verdict."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.small_tasks import write_small_tasks

import geneb
from geneb.embedding.engine import RowError
from geneb.embedding.reproduce import reproduce_rows

ALL = 1_000_000


@pytest.fixture(scope="module")
def data(demo_data, tmp_path_factory) -> Path:
    return write_small_tasks(demo_data, tmp_path_factory.mktemp("data"), rows=30)


@pytest.fixture
def odd(root):
    file = root / "tests" / "support" / "odd_extractors.py"
    return lambda name: f"{file}:{name}"


@pytest.fixture
def store(odd, data, tmp_path) -> Path:
    geneb.embed(
        odd("Letters"), data=data, available=True, store=tmp_path / "s", store_dtype="float16"
    )
    return tmp_path / "s"


def test_numbers_too_large_for_the_store_are_other_vectors(odd, data, store):
    """No store in float16 was made by a model whose vectors do not fit into it."""
    found = reproduce_rows(store, odd("Overflowing"), data=data, sample=ALL)

    assert not found.reproduced
    assert found.failing == found.sample
    assert "too large for float16" in found.faults[0].reason
    assert found.canary_difference is None


def test_rows_without_numbers_are_among_those_that_differ(odd, data, store):
    """All others are compared all the same."""
    letters = reproduce_rows(store, odd("Letters"), data=data, sample=ALL)
    found = reproduce_rows(store, odd("NotFinite"), data=data, sample=ALL)

    without = [fault for fault in found.faults if "NaN or infinity" in fault.reason]
    assert letters.failing == 0
    assert 0 < len(without) == found.failing < found.sample
    assert (without[0].task, without[0].split, without[0].row) == ("shared", "train", 5)
    assert without[0].difference is None
    assert found.smallest_cosine == letters.smallest_cosine


def test_rows_that_cannot_be_embedded_are_named(odd, data, store):
    """By task, split and row, as in a run."""
    with pytest.raises(RowError, match=r"failed in forward\(\)") as caught:
        reproduce_rows(store, odd("Failing"), data=data, sample=ALL)

    assert caught.value.where.startswith("task three, train, row ")

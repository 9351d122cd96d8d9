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


@pytest.mark.parametrize(
    ("name", "problem", "where"),
    [
        ("NotFinite", "NaN or infinity", "task shared, train, row 5, 13"),
        ("Failing", r"failed in forward\(\)", "task three, train, row "),
    ],
)
def test_rows_that_cannot_be_embedded_are_named(odd, data, store, name, problem, where):
    """By task, split and row, as in a run."""
    with pytest.raises(RowError, match=problem) as caught:
        reproduce_rows(store, odd(name), data=data, sample=ALL)

    assert caught.value.where.startswith(where)

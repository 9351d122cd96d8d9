"""A small sealed store, made once; each test gets a copy to spoil."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from geneb.stores import layout
from geneb.testing.made_stores import StoreContent, make_task, write_store


@pytest.fixture(autouse=True, scope="module")
def _no_syncing():
    """Syncing is against power cuts, which no test can make, and slow."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield


@pytest.fixture(scope="session")
def content() -> StoreContent:
    """Two tasks: ``labelled`` with train and test, ``unlabelled`` with train."""
    return StoreContent(
        {
            "labelled": make_task("labelled", 4, {"train": 7, "test": 3}, ["a", "b"]),
            "unlabelled": make_task("unlabelled", 4, {"train": 2}),
        },
        dim=4,
    )


@pytest.fixture(scope="session")
def _original(tmp_path_factory, content) -> Path:
    return write_store(tmp_path_factory.mktemp("made") / "s.zarr", content)


@pytest.fixture
def store(_original, tmp_path) -> Path:
    """A sealed store of `content`."""
    return Path(shutil.copytree(_original, tmp_path / "s.zarr"))


@pytest.fixture
def small_blocks(monkeypatch) -> None:
    """Blocks of two rows for `content`'s width, so that small splits have several."""
    monkeypatch.setattr(layout, "BLOCK_BYTES", 2 * 4 * layout.FLOAT_BYTES)

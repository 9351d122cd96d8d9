"""The store contract, on the stores that we write."""

from __future__ import annotations

from pathlib import Path

from geneb.stores import Store, open_store
from geneb.testing import StoreContract
from geneb.testing.made_stores import StoreContent, write_store


class TestZarrStore(StoreContract):
    """A folder in the store format."""

    def make(self, tmp_path: Path, content: StoreContent) -> Store:
        return open_store(write_store(tmp_path / "s.zarr", content))

    def damage(self, tmp_path: Path, task: str, split: str) -> None:
        chunk = tmp_path / "s.zarr" / "tasks" / task / split / "embeddings" / "c.0.0"
        data = bytearray(chunk.read_bytes())
        data[7] ^= 1
        chunk.write_bytes(data)

"""The embedding store: its format, reading, writing and verification."""

from geneb.stores.reader import Store, StoredTask, open_store

__all__ = ["Store", "StoredTask", "open_store"]

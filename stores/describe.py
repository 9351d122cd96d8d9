"""What a store says about itself, for people and programs; nothing is computed again."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

from geneb.stores.reader import open_store


def describe_store(path: Path) -> dict[str, Any]:
    """Return a store's facts as a JSON value.

    Raises
    ------
    NotFoundError, StoreError
    """
    store = open_store(path)
    tasks = [store.task(name) for name in store.task_ids()]
    files, size = _disk_use(path)
    return {
        "store": str(path),
        "version": store.root.version,
        "model": store.model.as_read(),
        "sealed": store.sealed,
        "fingerprint_id": store.fingerprint_id,
        "fingerprint": store.fingerprint.as_read(),
        "token_budget": store.root.token_budget,
        "benchmark_data": store.root.benchmark_data,
        "tasks": [task.id for task in tasks],
        "incomplete": store.incomplete(),
        "splits": [
            {
                "task": task.id,
                "split": split,
                "rows": task.manifest.splits[split].rows,
                **task.manifest.splits[split].counts.as_read(),
                "embeddings_sha256": task.manifest.splits[split].embeddings_sha256,
                "pairs_sha256": task.manifest.splits[split].pairs_sha256,
            }
            for task in tasks
            for split in task.splits
        ],
        "runs": [record.as_read() for record in store.runs()],
        "files": files,
        "bytes": size,
    }


def _disk_use(path: Path) -> tuple[int, int]:
    files = size = 0
    for folder, _, names in os.walk(path):
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # a writer has just moved it to its place
                size += Path(folder, name).lstat().st_size
                files += 1
    return files, size

"""One of several processes that make the same store at the same time; run as a script."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from geneb.stores import layout
from geneb.stores.zarr_store import Writer
from geneb.testing.made_stores import StoreContent, create_empty, make_task, write_task

TASKS = ("first", "second", "third")
DIM = 4


def content() -> StoreContent:
    """The store that all of them make."""
    tasks = {name: make_task(name, DIM, {"train": 9, "test": 5}) for name in TASKS}
    return StoreContent(tasks, DIM)


def make(path: Path) -> dict:
    """Do what every process of a run does; return what this one did."""
    # Blocks of two rows: other processes' blocks lie beside ours.
    layout.BLOCK_BYTES = 2 * DIM * layout.FLOAT_BYTES
    made = content()
    did: dict = {"waited": 0, "wrote": []}
    with Writer(path) as writer:
        did["created"] = create_empty(path, made)
        writer.open(made.fingerprint)
        for name, task in made.tasks.items():
            with writer.claim(name, lambda: did.update(waited=did["waited"] + 1)):
                if writer.store.manifest(name) is None:
                    write_task(writer, name, task)
                    did["wrote"].append(name)
        did["unsealed"] = writer.seal()
    return did


if __name__ == "__main__":
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    sys.stdout.write(json.dumps(make(Path(sys.argv[1]))))

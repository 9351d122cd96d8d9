"""Which layers a run writes, and where: ``--layer all`` makes a store for each of them.

A store holds one layer under one fingerprint and name, the same as a run for that layer alone
would make, so that each of a model's layers can be shared, checked and probed like any other
store, and all of them together.
"""

from __future__ import annotations

from pathlib import Path

from geneb.errors import InputError
from geneb.extractors.base import LAST, Extractor
from geneb.stores.zarr_store import Writer

ALL_LAYERS = "all"


def check_place(store: Path, *, every: bool) -> None:
    """Refuse a place where no store can be, or no store for each layer, before a model is loaded.

    Raises
    ------
    InputError
    """
    for folder in store.resolve().parents:
        if (folder / "zarr.json").exists():
            raise InputError(
                "this lies in an embedding store, where no other may be",
                where=str(store),
                found=f"the store {folder}",
                fix="name another --store",
            )
    if not every:
        Writer(store)
    elif (is_store := (store / "zarr.json").exists()) or (store.exists() and not store.is_dir()):
        raise InputError(
            "with --layer all, --store names a folder that gets a store for each layer",
            where=str(store),
            found="a store" if is_store else "a file",
            fix="name another --store",
        )


def store_paths(extractor: Extractor, store: Path, *, every: bool) -> dict[str, Path]:
    """Return the layers to write, as the extractor calls them, and each one's store.

    Raises
    ------
    InputError
        If every layer is asked for of an extractor that has one, or does not state its own.
    """
    if not every:
        return {LAST: store}
    count = extractor.layer_count
    if count is None:
        raise InputError(
            f"extractor {extractor.name} has one layer", found="--layer all", fix="leave it out"
        )
    own = extractor.describe().parameters.get("layer")
    if isinstance(own, bool) or own not in range(count):
        raise InputError(
            f"extractor {extractor.name} does not state which of its layers is its own",
            where="describe()",
            expected=f'a parameter "layer": a number from 0 to {count - 1}',
            found=repr(own)[:80],
        )
    return {str(number): store / f"{layer_name(number, count)}.zarr" for number in range(count)}


def layer_name(number: int | str, count: int) -> str:
    """Return what a layer is called among so many: with as many digits each, so that they sort."""
    return f"layer_{str(number).zfill(max(2, len(str(count - 1))))}"

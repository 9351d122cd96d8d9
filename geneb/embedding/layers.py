"""Which layers a run writes, and where: ``--layer all`` makes a store for each of them.

A store holds one layer under one fingerprint, the same as a run for that layer alone would make,
so that each of a model's layers can be shared, checked and probed like any other store.
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
        If every layer is asked for of an extractor that has one.
    """
    if not every:
        return {LAST: store}
    count = extractor.layer_count
    if count is None:
        raise InputError(
            f"extractor {extractor.name} has one layer", found="--layer all", fix="leave it out"
        )
    digits = max(2, len(str(count - 1)))  # as many in each name, so that they sort
    return {str(number): store / f"layer_{number:0{digits}}.zarr" for number in range(count)}

"""Sixteen fixed sequences whose vectors tell whether a model still is what it was.

A library can load a model so that its vectors are finite and wrong. The canary's vectors are made
when a store is created, and again before anything is added to it; a difference beyond the
tolerance is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from geneb.base.canonical import digest
from geneb.embedding.engine import Engine, RowError, as_stored
from geneb.errors import DriftError, StoreError, WorkError
from geneb.extractors.base import LAST
from geneb.stores.layout import CANARY_ROWS
from geneb.stores.reader import Store

# Several of one length, so that models that are batched by equal length meet neighbours too.
_LENGTHS = (12, 36, 60, 60, 60, 60, 81, 101, 101, 101, 128, 150, 199, 200, 256, 300)

# Largest difference allowed, relative to the row's root mean square. Float32 sums in another
# order differ by about 1e-6; half precision, where an extractor declares it, by about 1e-2.
_TOLERANCE = 1e-4
_TOLERANCE_IN_HALF = 5e-2
_STORED_IN_HALF = 2e-3


@cache
def canary_sequences() -> tuple[str, ...]:
    """Return the canary: random ACGT from a fixed generator; one has an N, one is lower case.

    The generator is x -> (1664525 x + 1013904223) mod 2^32 from x = 20260604; each step's top
    two bits choose the letter.
    """
    state, sequences = 20260604, []
    for length in _LENGTHS:
        letters = []
        for _ in range(length):
            state = (1664525 * state + 1013904223) % (1 << 32)
            letters.append("ACGT"[state >> 30])
        sequences.append("".join(letters))
    sequences[6] = sequences[6][:40] + "N" + sequences[6][41:]
    sequences[9] = sequences[9].lower()
    assert len(sequences) == CANARY_ROWS
    return tuple(sequences)


def canary_digest() -> str:
    """Return the SHA-256 of the canary's sequences."""
    return digest(list(canary_sequences()))


def tolerance(compute_dtype: str, store_dtype: str) -> float:
    """Return the largest allowed difference, relative to a row's root mean square."""
    allowed = _TOLERANCE_IN_HALF if compute_dtype in ("bfloat16", "float16") else _TOLERANCE
    return allowed + (_STORED_IN_HALF if store_dtype == "float16" else 0.0)


def relative_difference(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return for each row the largest difference over the right row's root mean square."""
    left, right = left.astype(np.float64), right.astype(np.float64)
    scale = np.sqrt(np.mean(right**2, axis=1))
    largest = np.abs(left - right).max(axis=1)
    # Of rows of zeros, and of NaN, anything but equality is infinitely far.
    return np.divide(largest, scale, out=np.where(largest == 0, 0.0, np.inf), where=scale > 0)


def make_canary(
    engine: Engine, store_dtype: str = "float32", layers: Sequence[str] = (LAST,)
) -> dict[str, np.ndarray]:
    """Embed the canary one sequence at a time, and make sure that company changes nothing.

    Where batches are in file order, company is meant to change vectors: the canary is then
    embedded in such batches, as the rows of a store are.

    Returns
    -------
    dict of str to ndarray
        For each layer the store's float32 or float16, shape (16, dim).

    Raises
    ------
    WorkError
        If a vector depends on padding or on what else is in the batch, or cannot be made.
    """
    items = engine.prepare(canary_sequences())
    try:
        if engine.extractor.batching == "file-order":
            made = engine.embed_together(items, layers)
        else:
            made = engine.embed_alone(items, layers)
            together = engine.embed_together(items, layers)
            for layer in layers:
                _check_company(engine, together[layer], made[layer])
        return {layer: as_stored(vectors, store_dtype) for layer, vectors in made.items()}
    except RowError as error:
        rows = ", ".join(map(str, error.rows.tolist()))
        error.where = error.where or f"sequence {rows} of the canary (counted from 0)"
        raise


def _check_company(engine: Engine, together: np.ndarray, alone: np.ndarray) -> None:
    allowed = tolerance(engine.extractor.describe().compute_dtype, "float32")
    worst = relative_difference(together, alone).max()
    if worst > allowed:
        raise WorkError(
            f"extractor {engine.extractor.name} gives a sequence another vector in company",
            expected=f"a difference of at most {allowed:g} of the vector's root mean square",
            found=f"{worst:.3g}",
            fix='mask the padding, or set batching = "equal-length" or "alone" in the extractor; '
            'where the model computes in half precision, declare compute_dtype = "bfloat16" or '
            '"float16"',
        )


def check_sequences(store: Store) -> None:
    """Make sure that a store's canary is of the sequences that this version embeds.

    Raises
    ------
    StoreError
        If another version of geneb made it of others: there is nothing to compare then.
    """
    if store.root.canary.sequences_sha256 != canary_digest():
        raise StoreError(
            "this store's canary is of other sequences than this version of geneb embeds",
            where=str(store.path),
            expected=f"sequences of digest {canary_digest()}",
            found=store.root.canary.sequences_sha256[:80],
            fix="add to the store with the version of geneb that made it",
        )


def check_drift(made: np.ndarray, stored: np.ndarray, allowed: float, where: str) -> None:
    """Compare the canary made now with the one that the store was created with.

    Raises
    ------
    DriftError
        If a vector differs by more than is allowed.
    """
    worst = relative_difference(made, stored).max()
    if not worst <= allowed:
        raise DriftError(
            "this model's vectors are no longer those that the store was created with",
            where=where,
            expected=f"the canary within {allowed:g} of each vector's root mean square",
            found=f"a difference of {worst:.3g}",
            fix="compare the versions in `geneb store info` with those of `geneb doctor`; "
            "embed into a new store if the change is wanted",
        )

"""How the extractor contract runs an extractor, and what it looks at, one thing at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from geneb.base.canonical import canonical_json
from geneb.embedding.batches import BatchPlan, padded_length, plan_batches, plan_file_order
from geneb.extractors.base import (
    LAST,
    Batch,
    Description,
    Extractor,
    Item,
    Parts,
    combine,
    flatten,
)

_ACGT = np.frombuffer(b"ACGT", dtype=np.uint8)


def bases(length: int, seed: int) -> str:
    """Return a random sequence over A, C, G, T; the same one for the same arguments."""
    return _ACGT[np.random.default_rng(seed).integers(4, size=length)].tobytes().decode("ascii")


def check_array(array: np.ndarray, rows: int) -> None:
    """A layer's rows of a batch are a float32 array of shape (rows, dim)."""
    assert isinstance(array, np.ndarray), f"forward() returned {type(array).__name__}"
    assert array.dtype == np.float32, f"forward() returned {array.dtype}, not float32"
    assert array.ndim == 2, f"forward() returned the shape {array.shape}, not (rows, dim)"
    assert len(array) == rows, f"forward() returned {len(array)} rows for a batch of {rows}"


def check_vectors(vectors: Mapping[str, np.ndarray], rows: int) -> None:
    """Each layer has as many rows as there are sequences, and every number is finite."""
    for layer, array in vectors.items():
        assert len(array) == rows, f"layer {layer}: {len(array)} rows for {rows} sequences"
        bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
        assert bad.size == 0, f"layer {layer}: rows {bad.tolist()} hold NaN or infinity"


def forward_rows(extractor: Extractor, items: Sequence[Item]) -> np.ndarray:
    """Run items as one batch, and return the vectors of its rows."""
    parts = flatten(items)
    longest = max(part.length for part in parts.items)
    batch = Batch(parts.items, padded_length(longest, extractor.max_length))
    array = extractor.forward(batch, (LAST,))[LAST]
    check_array(array, len(parts.items))
    return array.copy()


def embed_in_batches(
    extractor: Extractor, sequences: Sequence[str], layers: Sequence[str], token_budget: int
) -> dict[str, np.ndarray]:
    """Embed sequences in the engine's batches; the rows of each layer are in order."""
    items = extractor.prepare(sequences)
    assert len(items) == len(sequences), f"{len(sequences)} sequences, {len(items)} items"
    parts = flatten(items)
    rows: dict[str, list[np.ndarray]] = {
        layer: [np.empty(0)] * len(parts.items) for layer in layers
    }
    for plan in _batches_of(extractor, parts, token_budget):
        batch = Batch([parts.items[row] for row in plan.rows], plan.padded_length)
        found = extractor.forward(batch, layers)
        assert set(found) == set(layers), f"asked for {layers}, got {list(found)}"
        for layer, array in found.items():
            check_array(array, len(plan.rows))
            for row, vector in zip(plan.rows, array, strict=True):
                # A copy: extractors may reuse what they return.
                rows[layer][row] = vector.copy()
    for layer, vectors in rows.items():
        widths = sorted({len(vector) for vector in vectors})
        assert len(widths) == 1, f"layer {layer} has rows of several widths: {widths}"
    return {layer: combine(np.stack(vectors), parts) for layer, vectors in rows.items()}


def longest_that_fits(extractor: Extractor, letters: str) -> int:
    """Return how many letters are not yet over the limit; found by halving."""
    fitting, over = 0, len(letters) + 1
    while over - fitting > 1:
        middle = (fitting + over) // 2
        (item,) = extractor.prepare([letters[:middle]])
        if item.truncated or item.windows:
            over = middle
        else:
            fitting = middle
    return fitting


def check_windows(item: Item) -> None:
    """Windows are items without windows of their own, and say what they count."""
    assert isinstance(item.windows, tuple), f"windows is {type(item.windows).__name__}"
    if not item.windows:
        return
    assert not item.truncated, "an item in windows is marked as cut"
    assert item.length == sum(window.length for window in item.windows), (
        f"the length {item.length} is not the sum of the windows'"
    )
    for window in item.windows:
        assert not window.windows, "a window has windows"
        assert window.weight > 0, f"a window's weight is {window.weight!r}"


def is_count(value: object) -> bool:
    """Return whether a value is a whole number of 1 or more."""
    return type(value) is int and value >= 1


def assert_close(expected: np.ndarray, found: np.ndarray, allowed: float, problem: str) -> None:
    """Two vectors differ by no more than a share of the first one's root mean square."""
    scale = float(np.sqrt(np.mean(np.square(expected, dtype=np.float64))))
    gap = float(np.max(np.abs(expected.astype(np.float64) - found)))
    assert gap <= allowed * scale, (
        f"{problem}: it moved by {gap:.3g}, more than {allowed:g} of its root mean "
        f"square {scale:.3g}"
    )


def assert_same_bits(expected: np.ndarray, found: np.ndarray, problem: str) -> None:
    """Two float32 arrays are equal to the bit."""
    assert expected.shape == found.shape, f"{problem}: {expected.shape}, then {found.shape}"
    differing = int(np.count_nonzero(expected.view(np.uint32) != found.view(np.uint32)))
    assert differing == 0, f"{problem}: {differing} of {expected.size} numbers differ"


def shapes(items: Sequence[Item]) -> list[tuple[int, bool, list[int]]]:
    """Return what can be told of items without running them: lengths, and marks."""
    return [
        (item.length, item.truncated, [window.length for window in item.windows]) for item in items
    ]


def described(extractor: Extractor) -> bytes:
    """Return an extractor's description as JSON."""
    description = extractor.describe()
    assert isinstance(description, Description), f"describe() returned {type(description)}"
    for name in ("weights", "tokenizer", "file"):
        sha256 = getattr(description, name)
        assert sha256 is None or _is_sha256(sha256), f"{name} is {sha256!r}, not a SHA-256"
    try:
        return canonical_json(
            {
                "name": extractor.name,
                "numerics_version": extractor.numerics_version,
                **vars(description),
                "parameters": dict(description.parameters),
            }
        )
    except (TypeError, ValueError) as error:
        raise AssertionError(f"describe() holds what JSON cannot: {error}") from error


def _batches_of(extractor: Extractor, parts: Parts, token_budget: int) -> list[BatchPlan]:
    lengths = [part.length for part in parts.items]
    if extractor.batching == "file-order":
        return plan_file_order(lengths, parts.owners, extractor.batch_size)
    return plan_batches(lengths, extractor.batching, token_budget, extractor.max_length)


def _is_sha256(value: object) -> bool:
    return isinstance(value, str) and len(value) == 64 and set(value) <= set("0123456789abcdef")

"""One byte string for one value: canonical JSON, digests, row ids."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

ROW_ID_BYTES = 16
_READ_BYTES = 1 << 20


def canonical_json(value: Any) -> bytes:
    """Return the one UTF-8 JSON text of a value: sorted keys, no spaces, shortest floats.

    Raises
    ------
    ValueError
        For NaN and infinities, which JSON does not have.
    """
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return text.encode("utf-8")


def pretty_json(value: Any) -> str:
    """Return JSON for people: two spaces, keys in the given order, a newline at the end."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def digest(value: Any) -> str:
    """Return the SHA-256 of a value's canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's content, in hexadecimal."""
    state = hashlib.sha256()
    with path.open("rb") as stream:
        while data := stream.read(_READ_BYTES):
            state.update(data)
    return state.hexdigest()


def row_id(sequence: str) -> bytes:
    """Return the BLAKE2b-128 of a sequence as it stands in the CSV, in UTF-8."""
    return hashlib.blake2b(sequence.encode("utf-8"), digest_size=ROW_ID_BYTES).digest()


def row_ids(sequences: Iterable[str]) -> np.ndarray:
    """Return the row ids of sequences.

    Returns
    -------
    ndarray of uint8, shape (n, 16)
    """
    import numpy as np  # here, because most commands only need the JSON above

    joined = b"".join(row_id(sequence) for sequence in sequences)
    return np.frombuffer(joined, dtype=np.uint8).reshape(-1, ROW_ID_BYTES)


def pairs_digest(ids: np.ndarray, labels: np.ndarray | None) -> str:
    """Return the SHA-256 of the ordered (row id, label) pairs of a split.

    Parameters
    ----------
    ids
        uint8, shape (n, 16).
    labels
        int64, shape (n,); None for unlabelled data, which hashes the row ids alone.
    """
    import numpy as np

    state = hashlib.sha256()
    if labels is None:
        state.update(np.ascontiguousarray(ids).tobytes())
        return state.hexdigest()
    pairs = np.empty(len(ids), dtype=[("id", "V16"), ("label", "<i8")])
    pairs["id"] = np.ascontiguousarray(ids).view("V16").ravel()
    pairs["label"] = labels
    state.update(pairs.tobytes())
    return state.hexdigest()

"""One byte string for one value."""

from __future__ import annotations

import hashlib
import json
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geneb.base.canonical import (
    canonical_json,
    digest,
    file_sha256,
    pairs_digest,
    pretty_json,
    row_id,
    row_ids,
)

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=4)
    ),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [1.0, True, None]}, '{"a":[1.0,true,null],"b":1}'),
        ({"é": "ß", "Z": '\n"\\'}, '{"Z":"\\n\\"\\\\","é":"ß"}'),
        ([0.1, 1e-05, 1e16, -0.0, 12345.123456789012], "[0.1,1e-05,1e+16,-0.0,12345.123456789011]"),
        ({"\U0001f9ec": 1, "\uffff": 2}, '{"\uffff":2,"\U0001f9ec":1}'),
        ({}, "{}"),
    ],
)  # fmt: skip
def test_canonical_json_is_this_text(value, text):
    """Fixed for ever: fingerprints and digests depend on every byte."""
    assert text.encode("utf-8") == canonical_json(value)


@settings(deadline=None)
@given(JSON)
def test_canonical_json_is_stable(value):
    """It holds the value, and the same bytes come from it whatever the order of keys was."""
    data = canonical_json(value)

    assert value == json.loads(data)
    assert data == canonical_json(json.loads(data))
    assert data == canonical_json(_reversed(value))


def _reversed(value):
    if isinstance(value, dict):
        return {key: _reversed(inner) for key, inner in reversed(value.items())}
    return [_reversed(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [-float("inf")]])
def test_what_json_has_not_is_refused(value):
    """NaN and infinities have no text."""
    with pytest.raises(ValueError, match="JSON compliant"):
        canonical_json(value)
    with pytest.raises(ValueError, match="JSON compliant"):
        pretty_json(value)


def test_pretty_json_is_for_people():
    """Keys as they come, two spaces, a newline at the end, letters as letters."""
    assert pretty_json({"b": "é", "a": []}) == '{\n  "b": "é",\n  "a": []\n}\n'


def test_a_digest_is_sha256_of_canonical_json():
    """With known values; 1, 1.0 and True are three things."""
    assert hashlib.sha256(b'{"a":1}').hexdigest() == digest({"a": 1})
    assert digest({"a": 1}) == "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862"
    assert len({digest(value) for value in (1, 1.0, True, "1", [1], None)}) == 6


@pytest.mark.parametrize("size", [0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1])
def test_a_file_s_digest_is_that_of_its_content(tmp_path, size):
    """Also where it is read in several pieces."""
    data = bytes(range(256)) * (size // 256 + 1)
    (tmp_path / "file").write_bytes(data[:size])

    assert hashlib.sha256(data[:size]).hexdigest() == file_sha256(tmp_path / "file")


def test_row_ids_are_blake2b_of_the_text():
    """Sixteen bytes each, in order; case, spaces and other scripts count."""
    sequences = ["", "ACGT", "acgt", " ACGT", "é"]

    ids = row_ids(sequences)

    assert ids.dtype == np.uint8
    assert ids.shape == (5, 16)
    assert [row_id(sequence) for sequence in sequences] == [bytes(row) for row in ids]
    assert len(set(map(bytes, ids))) == 5
    assert row_id("ACGT").hex() == hashlib.blake2b(b"ACGT", digest_size=16).hexdigest()


def test_row_ids_of_nothing():
    """An array of the same width."""
    assert row_ids([]).shape == (0, 16)


@settings(deadline=None)
@given(st.lists(st.tuples(st.text(max_size=5), st.integers(-(2**63), 2**63 - 1)), max_size=6))
def test_pairs_are_hashed_in_order(pairs):
    """Sixteen bytes and a little-endian int64 for each row, whatever the arrays' layout."""
    texts = [text.encode("utf-8", "replace").decode("utf-8") for text, _ in pairs]
    ids = row_ids(texts)
    labels = np.array([label for _, label in pairs], dtype=np.int64)
    expected = b"".join(
        bytes(row) + struct.pack("<q", label) for row, label in zip(ids, labels, strict=True)
    )

    assert hashlib.sha256(expected).hexdigest() == pairs_digest(ids, labels)
    assert pairs_digest(ids, labels) == pairs_digest(np.asfortranarray(ids), labels.astype(">i8"))
    assert hashlib.sha256(ids.tobytes()).hexdigest() == pairs_digest(ids, None)


def test_another_order_is_another_digest():
    """Of rows, of labels, and of labels against rows."""
    ids, labels = row_ids("ABC"), np.array([0, 1, 2])
    found = {
        pairs_digest(ids, labels),
        pairs_digest(ids[::-1], labels),
        pairs_digest(ids, labels[::-1]),
        pairs_digest(ids[::-1], labels[::-1]),
        pairs_digest(ids, None),
    }

    assert len(found) == 5

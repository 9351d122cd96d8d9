"""What is exchanged: strict when written, patient with newer minor versions when read."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geneb.base.canonical import digest
from geneb.errors import StoreError
from geneb.stores.model import Fingerprint, Manifest, Seal, check_version, fingerprint_difference

FINGERPRINT = {
    "extractor": "kmer",
    "numerics_version": 1,
    "parameters": {"k": 4, "policy": {"N": "skip"}},
    "weights": None,
    "tokenizer": None,
    "file": "0" * 64,
    "compute_dtype": "float32",
    "matmul_precision": "highest",
    "store_dtype": "float32",
    "dim": 256,
}


def test_a_fingerprint_s_id_covers_every_field():
    """Any other value, of any field, is another id; the order of fields is none."""
    base = Fingerprint.parse(FINGERPRINT, "here")
    changes = {
        "extractor": "other",
        "numerics_version": 2,
        "parameters": {"k": 4, "policy": {"N": "count"}},
        "weights": "1" * 64,
        "tokenizer": "1" * 64,
        "file": None,
        "compute_dtype": "bfloat16",
        "matmul_precision": "tf32",
        "store_dtype": "float16",
        "dim": 257,
    }

    ids = {Fingerprint.parse(FINGERPRINT | {key: changes[key]}, "").id for key in FINGERPRINT}

    assert len({base.id, *ids}) == len(FINGERPRINT) + 1
    assert base.id == Fingerprint.parse(dict(reversed(FINGERPRINT.items())), "here").id
    assert base.id == digest(FINGERPRINT)


def test_differences_are_listed_field_by_field():
    """Parameters singly, however deep; absent ones are called so; 1, 1.0 and True differ."""
    left = Fingerprint.parse(FINGERPRINT, "here")
    parameters = {"k": 4.0, "policy": {"N": "skip", "U": "T"}, "pooling": True}
    right = Fingerprint.parse(FINGERPRINT | {"parameters": parameters, "dim": 5}, "here")

    assert fingerprint_difference(left, right) == [
        ("dim", 256, 5),
        ("parameters.k", 4, 4.0),
        ("parameters.policy.U", "(absent)", "T"),
        ("parameters.pooling", "(absent)", True),
    ]
    assert fingerprint_difference(left, left) == []


def test_unknown_fields_are_kept_when_read_and_refused_when_written():
    """They count in the id: a newer version put them there for a reason."""
    newer = Fingerprint.parse(FINGERPRINT | {"new": [1]}, "here")

    assert newer.as_read()["new"] == [1]
    assert newer.id == digest(FINGERPRINT | {"new": [1]})
    with pytest.raises(ValueError, match=r"unknown fields \['new'\]"):
        newer.dump()


@pytest.mark.parametrize(
    "fields",
    [
        {"dim": 0},
        {"dim": 256.0},
        {"dim": "256"},
        {"dim": True},
        {"numerics_version": None},
        {"store_dtype": "bfloat16"},
        {"parameters": []},
        {"weights": "abc"},
        {"weights": "A" * 64},
        {"weights": "0" * 64 + "\n"},
        {"extractor": b"kmer"},
    ],
    ids=repr,
)
def test_wrong_kinds_are_refused(fields):
    """Nothing is turned into something else; the field is named."""
    with pytest.raises(StoreError, match=next(iter(fields))):
        Fingerprint.parse(FINGERPRINT | fields, "here")


def test_all_wrong_fields_are_named_at_once():
    """Also the missing ones, in text that is harmless on a terminal."""
    with pytest.raises(StoreError) as caught:
        Manifest.parse({"task": 7, "splits": {"\x1b[31m": {}}, "left_out": {"a\u202e": -1}}, "here")

    message = str(caught.value)
    for field in ("task", "dim", "classes", "splits", "left_out"):
        assert field in message
    assert message.replace("\n", "").isprintable()


@settings(deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=6,
    )
)
def test_no_value_is_more_than_refused(value):
    """Whatever stands where a manifest or seal should."""
    for model in (Manifest, Seal, Fingerprint):
        with pytest.raises(StoreError):
            model.parse(value, "here")


@pytest.mark.parametrize("version", ["1.0", "1.7", "1.12"])
def test_minor_versions_are_read(version):
    """All of this major version."""
    check_version({"format": "geneb-store", "version": version}, "here")


@pytest.mark.parametrize("version", ["2.0", "0.1", "11.0", "1", "1.0.0", "1.x", "1.\n", 1.0])
def test_other_versions_are_refused(version):
    """With what to do about it."""
    with pytest.raises(StoreError, match="install a newer geneb"):
        check_version({"format": "geneb-store", "version": version}, "here")

"""Reading TensorFlow graphs: what is in them, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from support import graphdef_writer as write

from geneb.errors import InputError
from geneb.extractors import graphdef
from geneb.extractors.graphdef import read_float_constants

_SHAPES = arrays.array_shapes(min_dims=0, max_dims=4, max_side=5)
_ARRAYS = arrays.arrays("<f4", _SHAPES, elements=st.floats(width=32))
_VALID = write.graph({"a/b": np.arange(6).reshape(2, 3), "c": np.float32(0.5)})


@given(st.dictionaries(st.text(min_size=1, max_size=20), _ARRAYS, max_size=4))
def test_what_is_written_is_read(constants) -> None:
    """Names, shapes and bits of all constants come back, in order."""
    found = read_float_constants(write.graph(constants), "graph.pb")

    assert list(constants) == list(found)
    for name, values in constants.items():
        assert values.shape == found[name].shape
        assert values.tobytes() == found[name].tobytes()


def test_a_hand_written_graph() -> None:
    """Bytes put down by hand from the format's description: one constant ``w`` of 1.0 and -2.0."""
    shape = bytes([0x12, 0x02, 0x08, 0x02])  # one dimension of size 2
    numbers = bytes([0x00, 0x00, 0x80, 0x3F, 0x00, 0x00, 0x00, 0xC0])
    tensor = bytes([0x08, 0x01, 0x12, 0x04]) + shape + bytes([0x22, 0x08]) + numbers
    value = bytes([0x42, len(tensor)]) + tensor
    entry = b"\x0a\x05value\x12" + bytes([len(value)]) + value
    node = b"\x0a\x01w\x12\x05Const\x2a" + bytes([len(entry)]) + entry

    found = read_float_constants(b"\x0a" + bytes([len(node)]) + node, "graph.pb")

    assert list(found) == ["w"]
    assert found["w"].tolist() == [1.0, -2.0]


def test_other_nodes_are_left_out() -> None:
    """Constants of whole numbers, and whatever is no constant, are skipped."""
    data = (
        write.node("shape", write.tensor([2], b"\0" * 8, dtype=write.INT32))
        + write.node("weights", write.tensor([1], b"\0" * 4), operation="Variable")
        + write.node("none", None)
        + write.constant("kept", np.ones(2))
    )

    assert list(read_float_constants(data, "graph.pb")) == ["kept"]


def test_a_repeated_last_number_is_filled_in() -> None:
    """TensorFlow writes 1 2 2 2 as 1 2, and a number at a time without packing."""
    floats = np.array([1, 2], "<f4").tobytes()
    unpacked = b"".join(write.varint(5 << 3 | 5) + floats[place : place + 4] for place in (0, 4))
    data = write.node("packed", write.tensor([2, 2], floats=floats)) + write.node(
        "unpacked", write.tensor([4]) + unpacked
    )

    found = read_float_constants(data, "graph.pb")

    assert found["packed"].tolist() == [[1.0, 2.0], [2.0, 2.0]]
    assert found["unpacked"].tolist() == [1.0, 2.0, 2.0, 2.0]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (write.node("w", write.tensor([3], b"\0" * 8)), "2 numbers where its shape is (3,)"),
        (write.node("w", write.tensor([1], b"\0" * 7)), "a tensor of 7 bytes"),
        (write.node("w", write.tensor([1 << 40], floats=b"\0" * 4)), "definite shape"),
        (write.node("w", write.tensor([(1 << 64) - 1], b"\0" * 4)), "definite shape"),
        (write.node("w", write.tensor([1 << 20, 1 << 20], floats=b"\0" * 4)), "more than"),
        (write.node("w", write.tensor([1] * 9, b"\0" * 4)), "9 dimensions"),
        (write.constant("w", np.ones(2)) * 2, "two constants named w"),
        (write.constant("w" * 1001, np.ones(2)), "a name that is none"),
        (write.message(1, write.message(1, b"\xff")), "not UTF-8"),
        (write.message(1, write.number(1, 7)), "a name that is none"),
        (write.number(1, 7), "a number where a message should be"),
        (b"\x0b", "wire type 3"),
        (b"\x0a\x05abc", "ends within a field"),
        (b"\xff" * 11, "a number is too long"),
    ],
)
def test_what_is_no_graph_is_refused(data, problem) -> None:
    """One clear message that names the file, whatever is wrong in the bytes."""
    with pytest.raises(InputError, match="TensorFlow graph") as caught:
        read_float_constants(data, "graph.pb")

    assert caught.value.where == "graph.pb"
    assert problem in caught.value.found


def test_small_files_cannot_ask_for_much_memory(monkeypatch) -> None:
    """Repetitions that are filled in count towards one limit for all constants together."""
    monkeypatch.setattr(graphdef, "MAX_NUMBERS", 100)
    filled = [write.node(name, write.tensor([60], floats=b"\0" * 4)) for name in ("a", "b")]

    assert read_float_constants(filled[0], "graph.pb")["a"].shape == (60,)
    with pytest.raises(InputError, match="more than 100 numbers"):
        read_float_constants(b"".join(filled), "graph.pb")


@pytest.mark.parametrize(
    "data",
    [
        write.node("n", None) * 4,
        write.number(15, 0) * 10,
        write.message(1, write.number(15, 0) * 10),
        write.node("n", write.message(2, write.message(2, b"") * 10)),
        write.node("n", b"\x2d\0\0\x80\x3f" * 10),
    ],
    ids=["nodes", "of the graph", "of a node", "dimensions", "single numbers"],
)
def test_very_many_fields_are_refused(monkeypatch, data) -> None:
    """Two bytes are a field, and a hundred times as much in memory: there is one limit for all."""
    monkeypatch.setattr(graphdef, "MAX_FIELDS", 9)

    read_float_constants(write.node("n", None) * 3, "graph.pb")
    with pytest.raises(InputError, match="more than 9 fields"):
        read_float_constants(data, "graph.pb")


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data) -> None:
    """No bytes lead to anything but constants or the one error."""
    _read_or_refuse(data)


@given(st.integers(0, len(_VALID) - 1), st.integers(0, 255), st.booleans())
def test_a_damaged_graph_is_read_or_refused(place, byte, cut) -> None:
    """A graph that is cut off, or in which a byte is another, does no more."""
    _read_or_refuse(_VALID[:place] if cut else _VALID[:place] + bytes([byte]) + _VALID[place + 1 :])


def _read_or_refuse(data: bytes) -> None:
    try:
        found = read_float_constants(data, "graph.pb")
    except InputError as error:
        assert "TensorFlow graph" in str(error)
    else:
        assert all(values.dtype == np.float32 for values in found.values())

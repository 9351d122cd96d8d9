"""Constants out of a TensorFlow graph, without TensorFlow.

A frozen graph is a protocol buffer, GraphDef: a list of nodes, some of which hold a tensor. What is
read here is the wire format of just those messages; everything else in the file is skipped.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from geneb.base.text import plain
from geneb.errors import InputError

MAX_FIELDS = 1_000_000
"""Of all messages together: each takes time and memory, however few bytes it has."""
MAX_NUMBERS = 1 << 26
"""Numbers of all constants together, however few bytes of the file they are made of."""
_MAX_DIMENSIONS = 8
_MAX_NAME_BYTES = 1000
_VARINT_BYTES = 10

# Wire types of protocol buffers.
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
# Field numbers, by message.
_GRAPH_NODE = 1
_NODE_NAME, _NODE_OP, _NODE_ATTRIBUTE = 1, 2, 5
_ENTRY_KEY, _ENTRY_VALUE = 1, 2
_ATTRIBUTE_TENSOR = 8
_TENSOR_DTYPE, _TENSOR_SHAPE, _TENSOR_CONTENT, _TENSOR_FLOATS = 1, 2, 4, 5
_SHAPE_DIMENSION = 2
_DIMENSION_SIZE = 1

_FLOAT32 = 1  # DT_FLOAT
_LITTLE_ENDIAN_FLOAT = np.dtype("<f4")


class _Malformed(Exception):  # noqa: N818 - never leaves this module
    """What is wrong with the bytes."""


def read_float_constants(data: bytes, where: str) -> dict[str, np.ndarray]:
    """Return the float32 constants of a graph by the names of their nodes.

    Parameters
    ----------
    data
        A serialised GraphDef.
    where
        For messages: the file.

    Returns
    -------
    dict of str to ndarray
        float32, each of its own shape; constants of other types are left out.

    Raises
    ------
    InputError
        If the bytes are not a graph, are cut off, hold two constants of one name, or ask for more
        memory than any graph needs.
    """
    try:
        return _Reader().constants(memoryview(data))
    except _Malformed as error:
        raise InputError(
            "this file cannot be read as a TensorFlow graph",
            where=where,
            expected="a frozen GraphDef",
            found=plain(str(error)),
        ) from error


class _Reader:
    """Reads one graph, and no more of it than any graph has."""

    def __init__(self) -> None:
        self._fields_left = MAX_FIELDS
        self._numbers_left = MAX_NUMBERS

    def constants(self, graph: memoryview) -> dict[str, np.ndarray]:
        constants: dict[str, np.ndarray] = {}
        for node in self._messages(graph, _GRAPH_NODE):
            name, tensor = self._constant(node)
            values = None if tensor is None else self._float_tensor(tensor)
            if values is None:
                continue
            if name in constants:
                raise _Malformed(f"two constants named {name[:200]}")
            constants[name] = values
            self._numbers_left -= values.size
        return constants

    def _constant(self, node: memoryview) -> tuple[str, memoryview | None]:
        """Return a node's name, and its tensor where it is a constant."""
        name, operation, tensor = "", "", None
        for number, value in self._fields(node):
            if number == _NODE_NAME:
                name = _text(value)
            elif number == _NODE_OP:
                operation = _text(value)
            elif number == _NODE_ATTRIBUTE:
                entry = dict(self._fields(_message(value)))
                if _text(entry.get(_ENTRY_KEY, b"")) == "value":
                    value = entry.get(_ENTRY_VALUE, memoryview(b""))  # noqa: PLW2901
                    tensor = dict(self._fields(_message(value))).get(_ATTRIBUTE_TENSOR)
        if operation != "Const" or tensor is None:
            return name, None
        return name, _message(tensor)

    def _float_tensor(self, tensor: memoryview) -> np.ndarray | None:
        dtype, content, shape = 0, memoryview(b""), ()
        floats = bytearray()
        for number, value in self._fields(tensor):
            if number == _TENSOR_DTYPE:
                dtype = _number(value)
            elif number == _TENSOR_SHAPE:
                shape = self._shape(_message(value))
            elif number == _TENSOR_CONTENT:
                content = _message(value)
            elif number == _TENSOR_FLOATS:
                floats += _message(value)  # packed, or one number at a time
        if dtype != _FLOAT32:
            return None
        size = math.prod(shape)
        if size > self._numbers_left:
            raise _Malformed(f"constants of more than {MAX_NUMBERS:,} numbers")
        stored = bytes(floats) or bytes(content)
        if len(stored) % _LITTLE_ENDIAN_FLOAT.itemsize:
            raise _Malformed(f"a tensor of {len(stored):,} bytes")
        values = np.frombuffer(stored, dtype=_LITTLE_ENDIAN_FLOAT).astype(np.float32)
        if floats and 0 < len(values) < size:
            # TensorFlow leaves out repetitions of the last number.
            values = np.pad(values, (0, size - len(values)), mode="edge")
        if len(values) != size:
            raise _Malformed(f"a tensor of {len(values):,} numbers where its shape is {shape}")
        return values.reshape(shape)

    def _shape(self, message: memoryview) -> tuple[int, ...]:
        sizes = []
        for dimension in self._messages(message, _SHAPE_DIMENSION):
            size = _number(dict(self._fields(dimension)).get(_DIMENSION_SIZE, 0))
            if size > MAX_NUMBERS:  # an unknown size, -1, is a very large number on the wire
                raise _Malformed("a tensor without a definite shape")
            sizes.append(size)
        if len(sizes) > _MAX_DIMENSIONS:
            raise _Malformed(f"a tensor of {len(sizes):,} dimensions")
        return tuple(sizes)

    def _messages(self, message: memoryview, field: int) -> Iterator[memoryview]:
        """Go through the messages in one repeated field."""
        return (_message(value) for number, value in self._fields(message) if number == field)

    def _fields(self, message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
        """Go through a message's fields: their numbers, and whole numbers or bytes."""
        place, end = 0, len(message)
        while place < end:
            if self._fields_left == 0:
                raise _Malformed(f"more than {MAX_FIELDS:,} fields")
            self._fields_left -= 1
            key, place = _varint(message, place)
            number, kind = key >> 3, key & 7
            if kind == _VARINT:
                value, place = _varint(message, place)
                yield number, value
                continue
            if kind == _BYTES:
                length, place = _varint(message, place)
            elif kind in (_FIXED32, _FIXED64):
                length = 4 if kind == _FIXED32 else 8
            else:
                raise _Malformed(f"a field of the unknown wire type {kind}")
            if length > end - place:
                raise _Malformed("it ends within a field")
            yield number, message[place : place + length]
            place += length


def _varint(message: memoryview, place: int) -> tuple[int, int]:
    value = 0
    for step, byte in enumerate(message[place : place + _VARINT_BYTES]):
        value |= (byte & 0x7F) << (7 * step)
        if byte < 0x80:
            return value, place + step + 1
    raise _Malformed("it ends within a number, or a number is too long")


def _message(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise _Malformed("a number where a message should be")
    return value


def _number(value: int | memoryview) -> int:
    if not isinstance(value, int):
        raise _Malformed("bytes where a number should be")
    return value


def _text(value: int | memoryview | bytes) -> str:
    if isinstance(value, int) or len(value) > _MAX_NAME_BYTES:
        raise _Malformed("a name that is none")
    try:
        return bytes(value).decode("utf-8")
    except UnicodeDecodeError as error:
        raise _Malformed("a name that is not UTF-8") from error

"""TensorFlow graphs in protocol-buffer bytes, written without TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

FLOAT32, INT32 = 1, 3


def varint(number: int) -> bytes:
    """A whole number, seven bits a byte, the lowest first."""
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def message(field: int, content: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(content)) + content


def shape(sizes: Sequence[int]) -> bytes:
    return b"".join(message(2, number(1, size)) for size in sizes)


def tensor(
    sizes: Sequence[int], content: bytes = b"", floats: bytes = b"", dtype: int = FLOAT32
) -> bytes:
    """A TensorProto: raw bytes in ``content``, or packed numbers in ``floats``."""
    return (
        number(1, dtype)
        + message(2, shape(sizes))
        + (message(4, content) if content else b"")
        + (message(5, floats) if floats else b"")
    )


def node(name: str, tensor: bytes | None, operation: str = "Const") -> bytes:
    """A NodeDef in its place in a graph; of a constant, ``tensor`` is the value."""
    parts = message(1, name.encode()) + message(2, operation.encode())
    if tensor is not None:
        kind = message(1, b"dtype") + message(2, number(6, FLOAT32))
        value = message(1, b"value") + message(2, message(8, tensor))
        parts += message(5, kind) + message(5, value)
    return message(1, parts)


def constant(name: str, values: np.ndarray) -> bytes:
    """A float32 constant as TensorFlow writes it: raw bytes, but for a single number."""
    values = values.astype("<f4")
    stored = values.tobytes()
    return node(
        name,
        tensor(values.shape, floats=stored) if values.ndim == 0 else tensor(values.shape, stored),
    )


def graph(constants: Mapping[str, np.ndarray]) -> bytes:
    """A GraphDef of these constants, between a placeholder and the versions field."""
    return (
        node("input", None, "Placeholder")
        + b"".join(constant(name, values) for name, values in constants.items())
        + message(4, number(1, 175))
    )

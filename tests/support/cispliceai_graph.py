"""The frozen graph of CI-SpliceAI in its published layout, with small random numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

CHANNELS = 32
WIDTHS = (11, 11, 21, 41)


def convolutions() -> Iterator[tuple[int, tuple[int, int, int]]]:
    """Number and kernel shape (width, in, out) of the 39 convolutions."""
    yield 1, (1, 4, CHANNELS)
    yield 2, (1, CHANNELS, CHANNELS)
    layer = 3
    for width in WIDTHS:
        for _ in range(8):
            yield layer, (width, CHANNELS, CHANNELS)
            layer += 1
        yield layer, (1, CHANNELS, CHANNELS)
        layer += 1
    yield layer, (1, CHANNELS, 3)


def constants(networks: int = 5) -> dict[str, np.ndarray]:
    """All float constants by their names."""
    random = np.random.default_rng(20220518)
    found: dict[str, np.ndarray] = {}
    for network in range(networks):
        suffix = f"_{network}" if network else ""
        for layer, shape in convolutions():
            name = f"model_1/conv1d_{layer}"
            spread = (shape[0] * shape[1]) ** -0.5
            found[f"{name}/conv1d{suffix}/ExpandDims_1/ReadVariableOp/resource"] = (
                spread * random.standard_normal(shape)
            )
            found[f"{name}/BiasAdd{suffix}/ReadVariableOp/resource"] = 0.1 * random.standard_normal(
                shape[2]
            )
        for layer in range(1, 33):
            name = f"model_1/batch_normalization_{layer}/batchnorm{suffix}"
            for part, values in (
                ("ReadVariableOp", 0.5 + random.random(CHANNELS)),
                ("mul/ReadVariableOp", 0.5 + random.random(CHANNELS)),
                ("ReadVariableOp_1", 0.1 * random.standard_normal(CHANNELS)),
                ("ReadVariableOp_2", 0.1 * random.standard_normal(CHANNELS)),
            ):
                found[f"{name}/{part}/resource"] = values
            found[f"{name}/add/y"] = np.float32(1e-3)
    return found

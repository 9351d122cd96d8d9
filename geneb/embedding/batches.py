"""How rows are put into batches: pure functions of their lengths and the token budget.

Batches never cross a block, and a row's padded length is given by its own length alone, so that
an interrupted run makes the same batches, and the same bits, as an uninterrupted one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from geneb.extractors.base import Batching

DEFAULT_TOKEN_BUDGET = 16_384
_STEPS_PER_OCTAVE = 16
_SMALLEST_STEP = 4


@dataclass(frozen=True)
class BatchPlan:
    """Which rows form a batch.

    Attributes
    ----------
    rows
        int64 positions among the block's items.
    padded_length
        What every row is padded to.
    """

    rows: np.ndarray
    padded_length: int


def padded_length(length: int, max_length: int | None = None) -> int:
    """Return the step of the ladder that a length is padded to.

    Sixteen steps between a power of two and the next, none smaller than 4: at most 6.25 % of
    padding above 64.

    Parameters
    ----------
    max_length
        What the model can take: the ladder ends there, and a longer row is not padded.
    """
    if length <= _SMALLEST_STEP:
        padded = _SMALLEST_STEP
    else:
        step = max(_SMALLEST_STEP, (1 << (length - 1).bit_length()) // (2 * _STEPS_PER_OCTAVE))
        padded = -(-length // step) * step
    return padded if max_length is None else max(length, min(padded, max_length))


def plan_batches(
    lengths: Sequence[int],
    batching: Batching,
    token_budget: int,
    max_length: int | None = None,
) -> list[BatchPlan]:
    """Group rows into batches, longest first, so that memory runs out early or never.

    Parameters
    ----------
    lengths
        Each row's length before padding.
    batching
        ``masked``: rows of one step of the ladder meet; ``equal-length``: rows of exactly one
        length; ``alone``: one row at a time.
    token_budget
        Padded tokens a batch; a row longer than that is a batch of its own.
    max_length
        What the model can take, see `padded_length`.
    """
    if batching == "masked":
        padded = np.array([padded_length(length, max_length) for length in lengths], dtype=np.int64)
    else:
        padded = np.array(lengths, dtype=np.int64)
    order = np.argsort(-padded, kind="stable")
    plans = []
    starts = np.flatnonzero(np.diff(padded[order], prepend=-1))
    for bucket in np.split(order, starts[1:]):
        if not len(bucket):
            continue
        width = int(padded[bucket[0]])
        size = 1 if batching == "alone" else max(1, token_budget // max(1, width))
        plans += [
            BatchPlan(bucket[first : first + size], width) for first in range(0, len(bucket), size)
        ]
    return plans

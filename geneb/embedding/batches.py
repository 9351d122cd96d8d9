"""How rows are put into batches: pure functions of their lengths and the token budget.

Batches never cross a block, and a row's padded length is given by its own length alone, so that
an interrupted run makes the same batches, and the same bits, as an uninterrupted one. Only where
published numbers are repeated (``file-order``) are batches those of the whole split: a block that
begins or ends within one runs that batch whole, and keeps its own rows of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from geneb.errors import InputError
from geneb.extractors.base import Batching

DEFAULT_TOKEN_BUDGET = 16_384
# Hidden layers of 2,048 numbers are common. 4,096 tokens of them are 32 MiB of float32, more than
# the largest block that glibc keeps for reuse: it would be mapped anew, page by page, each time.
_CPU_TOKEN_BUDGET = 2048
_SMALLEST_TOKEN_BUDGET = 4096
_LARGEST_TOKEN_BUDGET = 65_536
# What may be asked for: beyond it is a slip of the keyboard, not a batch.
MOST_TOKENS = 1 << 24
# Room for what a token of a large model is turned into on its way: 1,280 numbers of float32 in
# each of 24 layers are 120 KiB, and four times that leaves room for what a layer needs besides.
_BYTES_A_TOKEN = 1 << 19
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

    Not for ``file-order``, see `plan_file_order`.

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


def plan_file_order(lengths: Sequence[int], owners: np.ndarray, batch_size: int) -> list[BatchPlan]:
    """Group rows into batches as they stand in the file, each padded to the longest in it.

    Parameters
    ----------
    lengths
        Of each part (an item, or one of its windows), before padding.
    owners
        int64, shape (parts,): the item that each belongs to, ascending; item 0 begins a batch.
    batch_size
        Items a batch. The windows of a batch's items are run so many at a time.
    """
    plans = []
    for group in np.split(
        np.arange(len(owners)), np.flatnonzero(np.diff(owners // batch_size)) + 1
    ):
        for first in range(0, len(group), batch_size):
            rows = group[first : first + batch_size]
            plans.append(BatchPlan(rows, max(lengths[row] for row in rows)))
    return plans


def whole_batches(first: int, last: int, rows: int, batch_size: int) -> tuple[int, int]:
    """Return the first and the row after the last of the file-order batches that a block meets.

    Parameters
    ----------
    first, last
        The block's rows within the split.
    rows
        Of the whole split.
    """
    return first - first % batch_size, min(rows, -(-last // batch_size) * batch_size)


def check_token_budget(tokens: int) -> None:
    """Refuse a token budget that no batch can have.

    Raises
    ------
    InputError
    """
    if not 1 <= tokens <= MOST_TOKENS:
        raise InputError(
            "this cannot be how many tokens a batch holds",
            where="batch_tokens",
            expected=f"1 to {MOST_TOKENS:,}",
            found=f"{tokens:,}",
        )


def choose_token_budget(accelerator_bytes: int | None) -> int:
    """Return how many padded tokens a batch shall have, for a network that is loaded.

    On a CPU 2,048: larger batches are slower there. On an accelerator the largest power of two
    for which half a MiB a token is free, from 4,096 to 65,536. What does not fit all the same is
    halved.

    Parameters
    ----------
    accelerator_bytes
        Memory that is free on the accelerator; None for a CPU.
    """
    if accelerator_bytes is None:
        return _CPU_TOKEN_BUDGET
    fitting = max(1, accelerator_bytes // _BYTES_A_TOKEN)
    largest = 1 << (fitting.bit_length() - 1)
    return min(_LARGEST_TOKEN_BUDGET, max(_SMALLEST_TOKEN_BUDGET, largest))

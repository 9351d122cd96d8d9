"""How many rows the test sets have: derived from published accuracies, which are multiples of 1/n.

A submission whose accuracies are no such multiples was not made on the benchmark's test sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from geneb.base.files import parse_json

SIZES_FILE = "test_sizes.json"
# Beyond this, too many fractions k/n share their first six decimals to tell sizes apart.
MAX_SIZE = 100_000
_MILLION = 1_000_000

Sizes = dict[str, Annotated[int, Field(ge=1)]]


class SizeTable(BaseModel):
    """What ``test_sizes.json`` holds.

    Attributes
    ----------
    note
        How the sizes were derived.
    test_sizes
        Task -> rows of its test set; tasks whose size is not known for certain are left out.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    schema_version: str
    note: str
    test_sizes: Sizes


@lru_cache(maxsize=1)
def load_test_sizes() -> dict[str, int]:
    """Return the rows of the test sets: task id -> n."""
    data = files("geneb.benchmark").joinpath(SIZES_FILE).read_bytes()
    parse_json(data, SIZES_FILE)
    return TypeAdapter(SizeTable).validate_json(data).test_sizes


def smallest_size(accuracies: Sequence[float], limit: int = MAX_SIZE) -> int | None:
    """Return the smallest n of which all accuracies can be multiples of 1/n.

    Parameters
    ----------
    accuracies
        Cut after six decimals: each stands for k/n from its own value to a millionth above, both
        included, because the mean of five equal fractions can lie one bit below them.
    limit
        The largest n that is tried.

    Returns
    -------
    int or None
        None if there is no such n, and if it could be chance: if other numbers of models'
        accuracies would fit it with a probability above one in a million.

    Examples
    --------
    >>> smallest_size([0.666666, 0.142857, 0.047619, 0.523809, 0.809523])
    21
    """
    import numpy as np  # here, because whoever only looks sizes up needs none of it

    cut = np.unique(np.round(np.asarray(accuracies) * _MILLION).astype(np.int64))
    sizes = np.arange(1, limit + 1, dtype=np.int64)
    fits = np.ones(limit, dtype=bool)
    for value in cut:
        fits &= -(-value * sizes // _MILLION) <= (value + 1) * sizes // _MILLION
    found = sizes[fits]
    if len(found) == 0:
        return None
    size = int(found[0])
    # A number drawn at random fits with probability size / 10**6, and there are as many chances
    # as sizes up to this one.
    by_chance = size * (size / _MILLION) ** len(cut)
    return size if by_chance < 1 / _MILLION else None

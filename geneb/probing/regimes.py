"""How much of the train set a fit gets to see, and which rows these are."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from geneb.errors import InputError

_NAME = re.compile(
    r"(?P<full>full)|(?P<shots>[1-9]\d{0,8})shot|(?P<percent>\d{1,2}(?:\.\d{1,6})?)%",
    re.ASCII,
)


@dataclass(frozen=True)
class Regime:
    """How much of the train set is fitted: all of it, so many rows or a share of each class.

    Attributes
    ----------
    name
        ``full``, ``<n>shot`` or ``<p>%``.
    shots
        Rows drawn of each class.
    share
        Share of each class's rows that is drawn, above 0 and below 1.
    """

    name: str
    shots: int | None = None
    share: Fraction | None = None

    @property
    def is_drawn(self) -> bool:
        """Whether a seed decides which rows are fitted."""
        return self.shots is not None or self.share is not None

    def size(self, count: int) -> int:
        """Return how many of a class's ``count`` rows are drawn; of a share at least one row."""
        if self.shots is not None:
            return min(self.shots, count)
        return count if self.share is None else math.ceil(self.share * count)


def parse_regime(name: str) -> Regime:
    """Return the regime of a name such as ``full``, ``10shot`` or ``2.5%``.

    Raises
    ------
    InputError
    """
    match = _NAME.fullmatch(name)
    share = Fraction(match["percent"]) / 100 if match and match["percent"] else None
    if match is None or share == 0:
        raise InputError(
            "this is not a regime",
            expected="full, <rows a class>shot or <share of each class>%, as in full,10shot,5%",
            found=name or "nothing",
        )
    return Regime(name, int(match["shots"]) if match["shots"] else None, share)


def draw(labels: np.ndarray, regime: Regime, seed: int) -> np.ndarray:
    """Draw the train rows of one fit.

    For each class in ascending order, `Regime.size` of its positions are drawn without
    replacement, and the classes' draws are joined in that order.

    Parameters
    ----------
    labels
        Integers, shape (n,), in file order.

    Returns
    -------
    ndarray of int64, shape (rows drawn,)
    """
    generator = np.random.RandomState(seed)
    chosen = []
    for label in np.unique(labels):
        positions = np.flatnonzero(labels == label)
        size = regime.size(len(positions))
        chosen.append(generator.choice(positions, size=size, replace=False))
    return np.concatenate(chosen)


def short_classes(labels: np.ndarray, regime: Regime) -> int:
    """Return the number of classes with fewer rows than the regime's shots; 0 without shots."""
    if regime.shots is None:
        return 0
    _, counts = np.unique(labels, return_counts=True)
    return int((counts < regime.shots).sum())

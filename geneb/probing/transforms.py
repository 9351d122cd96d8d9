"""What some probes do to rows first, learnt from the rows that are fitted and from no others.

All of it is computed in float64: no float32 number, its square or its reciprocal leaves that range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

Transform = Callable[[np.ndarray], np.ndarray]
"""From float32 rows of shape (n, dim) to float64 rows of shape (n, features)."""

_SLAB_BYTES = 64 << 20


@dataclass(frozen=True)
class Standardisation:
    """Gives each feature mean 0 and variance 1 among the rows it was learnt from.

    A feature that is constant there is 0 for these rows, and only shifted for others.

    Attributes
    ----------
    mean, scale
        float64, shape (dim,).
    """

    mean: np.ndarray
    scale: np.ndarray

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Return a new array of float64."""
        moved = rows.astype(np.float64)
        moved -= self.mean
        moved /= self.scale
        return moved


def standardisation(rows: np.ndarray) -> Standardisation:
    """Learn from float32 rows of shape (n, dim) how to standardise."""
    # A mean is rounded: what is left of a constant feature would be blown up to variance 1.
    constant = rows.max(axis=0) == rows.min(axis=0)
    mean = np.where(constant, rows[0], rows.mean(axis=0, dtype=np.float64))
    squares = np.zeros(rows.shape[1])
    for part in slabs(rows):
        squares += ((part.astype(np.float64) - mean) ** 2).sum(axis=0)
    return Standardisation(mean, np.where(constant, 1.0, np.sqrt(squares / len(rows))))


@dataclass(frozen=True)
class Projection:
    """Standardises, and keeps the directions in which the standardised rows differ most.

    Attributes
    ----------
    components
        float64, shape (dim, kept), orthonormal columns.
    """

    before: Standardisation
    components: np.ndarray

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Return a new array of float64, shape (n, kept)."""
        return np.concatenate([self.before(part) @ self.components for part in slabs(rows)])


def projection(rows: np.ndarray, most: int) -> Projection:
    """Learn the first principal components of standardised rows.

    Parameters
    ----------
    rows
        float32, shape (n, dim).
    most
        Components kept; n or dim where that is less.
    """
    before = standardisation(rows)
    moved = before(rows)
    count, dim = moved.shape
    if count < dim:
        kept = min(most, count)
        return Projection(before, np.linalg.svd(moved, full_matrices=False)[2][:kept].T)
    kept = min(most, dim)
    return Projection(before, eigh(moved.T @ moved, subset_by_index=(dim - kept, dim - 1))[1])


def unit_length(rows: np.ndarray) -> np.ndarray:
    """Return rows of Euclidean length 1, in float64; a row of zeros stays one."""
    moved = rows.astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", moved, moved))
    moved /= np.where(lengths == 0, 1.0, lengths)[:, np.newaxis]
    return moved


def slabs(rows: np.ndarray) -> Iterator[np.ndarray]:
    """Yield rows in order, so many at a time that a copy in float64 stays small."""
    step = max(1, _SLAB_BYTES // (8 * rows.shape[1]))
    for first in range(0, len(rows), step):
        yield rows[first : first + step]

"""What a probe is: regimes, seeds, the few-shot draw; each set of them has an id."""

from __future__ import annotations

import operator
from collections.abc import Container, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from geneb.errors import InputError

_MAX_SEED = 2**32 - 1  # what numpy.random.RandomState takes


@dataclass(frozen=True)
class Regime:
    """How much of the train set is fitted.

    Attributes
    ----------
    shots
        Rows drawn of each class; None for all rows.
    """

    name: str
    shots: int | None = None


@dataclass(frozen=True)
class Protocol:
    """A named way to get from embeddings and labels to reported values.

    Attributes
    ----------
    id
        What results are labelled with. Other seeds than the published ones make another id, so
        that such results can never pass for the published protocol's.
    regimes, seeds
        In the order in which they are run and averaged.
    parameters
        Arguments of scikit-learn's LogisticRegression. Nothing else is passed to it, so that no
        version warns about an argument that has come or gone.
    """

    id: str
    regimes: tuple[Regime, ...]
    seeds: tuple[int, ...]
    parameters: dict[str, Any] = field(hash=False)

    @property
    def fits(self) -> int:
        """Fits of one task: one a seed in the few-shot regimes, and one in the full regime.

        lbfgs has no randomness, so there is nothing in the full regime for a seed to change.
        """
        return sum(1 if regime.shots is None else len(self.seeds) for regime in self.regimes)

    def without(self, names: Container[str]) -> Protocol:
        """Return the same protocol for its other regimes; there may be none left."""
        left = tuple(regime for regime in self.regimes if regime.name not in names)
        return replace(self, regimes=left)


GENEB_LR_1 = Protocol(
    id="geneb-lr-1",
    regimes=(Regime("full"), Regime("10shot", 10), Regime("1shot", 1)),
    seeds=(13, 17, 42, 123, 997),
    parameters={"C": 1.0, "solver": "lbfgs", "max_iter": 1000, "tol": 1e-4},
)
PROTOCOLS = {protocol.id: protocol for protocol in (GENEB_LR_1,)}


def choose_protocol(
    protocol_id: str = GENEB_LR_1.id,
    regimes: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
) -> Protocol:
    """Return a protocol, narrowed to some regimes or with other seeds.

    Parameters
    ----------
    regimes
        Names, in any order. Default is all of the protocol's. A part of the regimes is still
        the protocol: each of its values is what it would be among the others.
    seeds
        Default is the protocol's; the same ones in another order are the protocol's too.

    Raises
    ------
    InputError
        For an unknown protocol or regime, and for seeds that are repeated or out of range.
    """
    if protocol_id not in PROTOCOLS:
        raise InputError(
            "there is no such protocol", expected=", ".join(PROTOCOLS), found=protocol_id
        )
    protocol = PROTOCOLS[protocol_id]
    if regimes is not None:
        protocol = replace(protocol, regimes=_pick_regimes(protocol, regimes))
    if seeds is None:
        return protocol
    chosen = tuple(operator.index(seed) for seed in seeds)
    if sorted(chosen) == sorted(protocol.seeds):
        return protocol
    _check_seeds(chosen)
    label = f"{protocol.id}+seeds-{'-'.join(map(str, chosen))}"
    return replace(protocol, id=label, seeds=chosen)


def _pick_regimes(protocol: Protocol, names: Sequence[str]) -> tuple[Regime, ...]:
    known = [regime.name for regime in protocol.regimes]
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise InputError(
            f"these are not regimes of {protocol.id}",
            expected=", ".join(known),
            found=", ".join(unknown) or "none",
        )
    return tuple(regime for regime in protocol.regimes if regime.name in names)


def _check_seeds(seeds: tuple[int, ...]) -> None:
    if (
        not seeds
        or len(set(seeds)) != len(seeds)
        or not all(0 <= seed <= _MAX_SEED for seed in seeds)
    ):
        raise InputError(
            "these seeds cannot be used",
            expected=f"at least one, distinct, from 0 to {_MAX_SEED}",
            found=", ".join(map(str, seeds)) or "none",
        )


def draw(labels: np.ndarray, shots: int, seed: int) -> np.ndarray:
    """Draw the train rows of one few-shot fit.

    For each class in ascending order, ``min(shots, rows of the class)`` of its positions are
    drawn without replacement, and the classes' draws are joined in that order.

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
        size = min(shots, len(positions))
        chosen.append(generator.choice(positions, size=size, replace=False))
    return np.concatenate(chosen)


def short_classes(labels: np.ndarray, shots: int | None) -> int:
    """Return the number of classes with fewer rows than are drawn; 0 where nothing is drawn."""
    if shots is None:
        return 0
    _, counts = np.unique(labels, return_counts=True)
    return int((counts < shots).sum())

"""A protocol: what is fitted, on how much of the train set, with which seeds; each has an id."""

from __future__ import annotations

import operator
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace

from geneb.errors import InputError
from geneb.probing.catalogue import CATALOGUE
from geneb.probing.converged import ConvergedProbe
from geneb.probing.own import OWN, own_probe, registered, registered_probe
from geneb.probing.probes import LogisticProbe, Probe
from geneb.probing.regimes import Regime, parse_regime

_MAX_SEED = 2**32 - 1  # what numpy.random.RandomState takes
_REGIMES = tuple(map(parse_regime, ("full", "10shot", "1shot")))
_SEEDS = (13, 17, 42, 123, 997)


@dataclass(frozen=True)
class Protocol:
    """A named way to get from embeddings and labels to reported values.

    Attributes
    ----------
    id
        What results are labelled with. Other seeds than the published ones make another id, so
        that such results can never pass for the published protocol's.
    probe
        What is fitted.
    regimes, seeds
        In the order in which they are run and averaged.
    """

    id: str
    probe: Probe
    regimes: tuple[Regime, ...] = _REGIMES
    seeds: tuple[int, ...] = _SEEDS

    def seeds_of(self, regime: Regime) -> tuple[int | None, ...]:
        """Return the seeds that one regime is fitted with.

        Where nothing is drawn and the probe has no randomness, a seed changes nothing: one fit,
        without a seed, stands for all of them.
        """
        return self.seeds if regime.is_drawn or self.probe.seeded else (None,)

    @property
    def fits(self) -> int:
        """Fits of one task."""
        return sum(len(self.seeds_of(regime)) for regime in self.regimes)

    def without(self, names: Container[str]) -> Protocol:
        """Return the same protocol for its other regimes; there may be none left."""
        left = tuple(regime for regime in self.regimes if regime.name not in names)
        return replace(self, regimes=left)


GENEB_LR_1 = Protocol(
    id="geneb-lr-1",
    probe=LogisticProbe({"C": 1.0, "solver": "lbfgs", "max_iter": 1000, "tol": 1e-4}),
)
GENEB_LR_1_CONVERGED = Protocol(
    id="geneb-lr-1-converged",
    probe=ConvergedProbe(
        start=LogisticProbe({"C": 1.0, "solver": "lbfgs", "max_iter": 100, "tol": 1e-4}),
        tolerance=1e-8,
    ),
)
PROTOCOLS = {protocol.id: protocol for protocol in (GENEB_LR_1, GENEB_LR_1_CONVERGED)}
PROTOCOLS |= {name: Protocol(name, probe) for name, probe in CATALOGUE.items()}


def choose_protocol(
    protocol: str | Protocol = GENEB_LR_1.id,
    regimes: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
) -> Protocol:
    """Return a protocol, with other regimes or seeds where they are named.

    Parameters
    ----------
    protocol
        An id of `PROTOCOLS`, or of an installed package's protocol; or what `own_protocol` made.
    regimes
        Names, see `parse_regime`, in any order. Default is the protocol's. Other regimes are
        still the protocol: each of its values is what it would be among the others.
    seeds
        Default is the protocol's; the same ones in another order are the protocol's too.

    Raises
    ------
    InputError
        For an unknown protocol or regime, and for seeds that are repeated or out of range.
    """
    if isinstance(protocol, str):
        protocol = _find(protocol)
    if regimes is not None:
        protocol = replace(protocol, regimes=_order_regimes(protocol, regimes))
    if seeds is None:
        return protocol
    chosen = tuple(operator.index(seed) for seed in seeds)
    if sorted(chosen) == sorted(protocol.seeds):
        return protocol
    _check_seeds(chosen)
    label = f"{protocol.id}+seeds-{'-'.join(map(str, chosen))}"
    return replace(protocol, id=label, seeds=chosen)


def own_protocol(target: str) -> Protocol:
    """Return the protocol of a user's own estimator, with the published regimes and seeds.

    Its id says which estimator it is, and can be no other protocol's.

    Parameters
    ----------
    target
        ``package.module:factory``, see `geneb.probing.own.own_probe`: its code is run.

    Raises
    ------
    InputError
    """
    return Protocol(f"{OWN}:{target}", own_probe(target))


def _find(protocol_id: str) -> Protocol:
    """Return a named protocol; no package can take the name of a built-in one."""
    if protocol_id in PROTOCOLS:
        return PROTOCOLS[protocol_id]
    if protocol_id in registered():
        return Protocol(protocol_id, registered_probe(protocol_id))
    raise InputError(
        "there is no such protocol",
        expected=", ".join([*PROTOCOLS, *registered()]),
        found=protocol_id,
    )


def _order_regimes(protocol: Protocol, names: Sequence[str]) -> tuple[Regime, ...]:
    """Return the named regimes: the protocol's own in its order, then the others as named."""
    chosen = [parse_regime(name) for name in dict.fromkeys(names)]
    if not chosen:
        raise InputError(
            "there is no regime to fit", expected="at least one, such as full", found="none"
        )
    own = [regime for regime in protocol.regimes if regime in chosen]
    return (*own, *(regime for regime in chosen if regime not in own))


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

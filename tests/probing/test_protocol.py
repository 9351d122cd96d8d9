"""The protocol: its probe, seeds and regimes."""

from __future__ import annotations

import pytest
from support.plain_loop import REGIMES, SEEDS

from geneb.benchmark.spec import load_spec
from geneb.errors import InputError
from geneb.probing.protocol import GENEB_LR_1, choose_protocol


def test_the_protocol_is_the_specs():
    """Regimes, seeds and solver settings are those of the benchmark's spec."""
    spec = load_spec()
    protocol = GENEB_LR_1
    assert protocol.id == spec.protocol.id
    assert tuple(regime.name for regime in protocol.regimes) == spec.regimes == tuple(REGIMES)
    assert protocol.seeds == spec.seeds == tuple(SEEDS)
    few_shot = {regime.name: regime.shots for regime in protocol.regimes if regime.shots}
    assert few_shot == spec.protocol.few_shot.shots
    assert protocol.probe.parameters == {
        "C": spec.protocol.estimator.C,
        "solver": "lbfgs",
        "max_iter": spec.protocol.solver.max_iterations,
        "tol": spec.protocol.solver.gradient_tolerance,
    }
    assert protocol.fits == 11


def test_some_regimes_are_still_the_protocol():
    """They come in the protocol's order, under its id."""
    protocol = choose_protocol(regimes=["1shot", "full"])
    assert [regime.name for regime in protocol.regimes] == ["full", "1shot"]
    assert protocol.id == "geneb-lr-1"
    assert protocol.fits == 6


def test_other_seeds_never_pass_for_the_protocol():
    """Other seeds, fewer or more make another id, which names them."""
    assert choose_protocol(seeds=[1, 2]).id == "geneb-lr-1+seeds-1-2"
    assert choose_protocol(seeds=SEEDS[:4]).id != "geneb-lr-1"
    assert choose_protocol(seeds=[*SEEDS, 1]).id != "geneb-lr-1"


def test_the_protocols_seeds_in_another_order_are_the_protocol():
    """And they are averaged in the protocol's order, to the bit."""
    assert choose_protocol(seeds=SEEDS[::-1]) == GENEB_LR_1


@pytest.mark.parametrize("seeds", [[], [1, 1], [-1], [2**32]])
def test_seeds_that_cannot_be_used(seeds):
    """None at all, repeated ones, and ones that RandomState does not take."""
    with pytest.raises(InputError, match="these seeds cannot be used"):
        choose_protocol(seeds=seeds)


def test_other_regimes_are_still_the_protocol():
    """Its own come first and in its order, others as named, none twice; the id stays."""
    protocol = choose_protocol(regimes=["5%", "50shot", "1shot", "full", "50shot"])
    assert [regime.name for regime in protocol.regimes] == ["full", "1shot", "5%", "50shot"]
    assert protocol.id == "geneb-lr-1"
    assert protocol.fits == 16


@pytest.mark.parametrize("regimes", [[], ["0shot"], ["full", "Full"]])
def test_regimes_that_do_not_exist(regimes):
    """The message says how regimes are named."""
    with pytest.raises(InputError, match="full"):
        choose_protocol(regimes=regimes)


def test_an_unknown_protocol():
    """The message lists the known ones."""
    with pytest.raises(InputError, match="geneb-lr-1"):
        choose_protocol("geneb-lr-9")

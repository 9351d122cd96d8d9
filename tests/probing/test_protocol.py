"""The protocol: draws, seeds, regimes, metrics."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.plain_loop import REGIMES, SEEDS, drawn

from geneb.benchmark.spec import load_spec
from geneb.errors import InputError
from geneb.probing.protocol import GENEB_LR_1, choose_protocol, draw, short_classes

LABELS = st.lists(st.integers(0, 4), min_size=1, max_size=60).map(np.array)


@given(LABELS, st.integers(1, 12), st.integers(0, 2**32 - 1))
@settings(deadline=None)  # a busy machine is no failure
def test_a_draw_is_the_plain_loops(labels, shots, seed):
    """The same rows in the same order, for any labels, shots and seed."""
    assert draw(labels, shots, seed).tolist() == drawn(labels, shots, seed).tolist()


@given(LABELS, st.integers(1, 12), st.integers(0, 1000))
@settings(deadline=None)  # a busy machine is no failure
def test_a_draw_takes_shots_of_each_class_and_none_twice(labels, shots, seed):
    """Classes stand in ascending order, each with min(shots, rows) distinct rows of its own."""
    chosen = draw(labels, shots, seed)
    classes, counts = np.unique(labels, return_counts=True)
    sizes = np.minimum(counts, shots)
    assert labels[chosen].tolist() == np.repeat(classes, sizes).tolist()
    assert len(set(chosen.tolist())) == len(chosen)
    assert short_classes(labels, shots) == (counts < shots).sum()


def test_a_known_draw():
    """Frozen: these rows are what RandomState(13) gives for these labels."""
    labels = np.array([1, 0, 1, 0, 1, 0, 1, 0])
    assert draw(labels, 2, 13).tolist() == [3, 7, 2, 6]


def test_the_protocol_is_the_specs():
    """Regimes, seeds and solver settings are those of the benchmark's spec."""
    spec = load_spec()
    protocol = GENEB_LR_1
    assert protocol.id == spec.protocol.id
    assert tuple(regime.name for regime in protocol.regimes) == spec.regimes == tuple(REGIMES)
    assert protocol.seeds == spec.seeds == tuple(SEEDS)
    few_shot = {regime.name: regime.shots for regime in protocol.regimes if regime.shots}
    assert few_shot == spec.protocol.few_shot.shots
    assert protocol.parameters == {
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


@pytest.mark.parametrize("regimes", [[], ["5shot"], ["full", "Full"]])
def test_regimes_that_do_not_exist(regimes):
    """The message lists those that do."""
    with pytest.raises(InputError, match="full, 10shot, 1shot"):
        choose_protocol(regimes=regimes)


def test_an_unknown_protocol():
    """The message lists the known ones."""
    with pytest.raises(InputError, match="geneb-lr-1"):
        choose_protocol("geneb-lr-9")

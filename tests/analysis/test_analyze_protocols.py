"""How far the published protocol is from its optimum: `geneb analyze protocols`."""

from __future__ import annotations

import numpy as np
import pytest
from support.command import check_mistake, geneb
from support.small_stores import Arrays, random_task, write_store

from geneb.analysis.protocols import Distance, distances
from geneb.base.progress import Silent
from geneb.errors import InputError
from geneb.probing.backends import SklearnBackend
from geneb.probing.fit import probe_task
from geneb.probing.protocol import choose_protocol
from geneb.results import METRICS, reported_value
from geneb.stores import open_store


@pytest.fixture(scope="module")
def tasks() -> dict[str, Arrays]:
    """One that lbfgs solves, one on which it stops early, one that cannot be probed."""
    far = random_task(2, classes=3, dim=12, rows=80)
    for split in (far.train, far.test):
        split *= np.logspace(-3, 4, 12, dtype=np.float32)  # noqa: PLW2901 - in place
        split += 1000  # noqa: PLW2901 - in place
    one_class = random_task(3, dim=12)
    one_class.train_labels[:] = 0
    return {"easy": random_task(1, dim=12), "far": far, "one_class": one_class}


@pytest.fixture(scope="module")
def store(tmp_path_factory, tasks):
    return write_store(tmp_path_factory.mktemp("store") / "s.zarr", tasks)


@pytest.fixture(scope="module")
def found(store) -> dict[tuple[str, str], Distance]:
    """Of the two tasks that can be probed."""
    chosen = distances(open_store(store), ["easy", "far"], Silent())
    return {(one.task, one.regime): one for task in chosen for one in task}


def test_it_tells_the_two_probes_apart(found, tasks):
    """Objective, gradient, predictions and reported scores, against probing twice by hand."""
    published, optimum = (
        probe_task(tasks["far"].for_probe(), choose_protocol(name), SklearnBackend())
        for name in ("geneb-lr-1", "geneb-lr-1-converged")
    )
    seeds = choose_protocol().seeds
    for regime in ("full", "10shot", "1shot"):
        here = [
            (one, other)
            for one, other in zip(published, optimum, strict=True)
            if one.fit.regime == regime
        ]
        one = found["far", regime]
        assert one.fits == one.optimal == len(here)
        assert one.converged == sum(pair[0].fit.converged for pair in here)
        assert one.n_iter == max(pair[0].fit.n_iter for pair in here)
        assert one.gradient_norm == max(pair[0].fit.gradient_norm for pair in here)
        assert one.optimum_gradient_norm == max(pair[1].fit.gradient_norm for pair in here)
        assert one.objective_gap == max(a.fit.objective - b.fit.objective for a, b in here)
        assert one.predictions == max((a.predicted != b.predicted).mean() for a, b in here)
        for metric in METRICS:
            values = [
                reported_value([getattr(pair[side].fit, metric) for pair in here], seeds)
                for side in (0, 1)
            ]
            assert getattr(one, metric) == values[1] - values[0]


def test_an_unscaled_task_is_far_from_its_optimum(found):
    """And a plain one is not; the optimum itself is reached on both."""
    assert found["far", "full"].gradient_norm > 1e-3
    assert found["far", "full"].objective_gap > 1e-3
    assert found["easy", "full"].converged == 1
    assert 0 <= found["easy", "full"].objective_gap < 1e-5
    assert all(one.optimum_gradient_norm <= 1e-8 for one in found.values())


def test_a_task_that_cannot_be_probed_is_told_of(store):
    """The others are still done, and the exit code is 1."""
    done = geneb("analyze", "protocols", store, "--json", "--quiet")

    assert done.code == 1
    assert "one class only" in done.err
    assert [one["problem"] for one in done.json["failed"]]
    assert {one["task"] for one in done.json["distances"]} == {"easy", "far"}
    assert {one["regime"] for one in done.json["distances"]} == {"full", "10shot", "1shot"}


def test_the_table(store):
    """A row a task and regime."""
    done = geneb("analyze", "protocols", store, "--tasks", "easy", "--quiet")

    assert done.code == 0, done.err
    assert done.out.count("easy") == 3
    assert "objective gap" in done.out


def test_a_store_without_labels_is_refused(tmp_path):
    """There is nothing to fit."""
    bare = random_task()
    bare = Arrays(bare.train, None, bare.test, None)
    path = write_store(tmp_path / "s.zarr", {"bare": bare})
    with pytest.raises(InputError, match="no complete task with labels"):
        next(distances(open_store(path), [], Silent()))


def test_a_store_that_is_not_there(tmp_path):
    """One message."""
    check_mistake(geneb("analyze", "protocols", tmp_path / "nothing"), "no embedding store")

"""The converged protocol: its optimum is the only one, and nothing but it is called converged."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st
from support.small_stores import random_task

from geneb.probing import newton
from geneb.probing.backends import SklearnBackend
from geneb.probing.convergence import optimality
from geneb.probing.fit import probe_task
from geneb.probing.linear import PlainFit
from geneb.probing.protocol import GENEB_LR_1, GENEB_LR_1_CONVERGED, choose_protocol

TOLERANCE = 1e-8
PROBE = GENEB_LR_1_CONVERGED.probe


def fit(rows, labels):
    return PROBE.fit(rows, labels, None, SklearnBackend())


def rows_of(kind: str, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Embeddings that make fits difficult."""
    task = random_task(5, classes=classes, dim=12, rows=60)
    rows, labels = task.train.astype(np.float64), task.train_labels
    generator = np.random.default_rng(0)
    made = {
        "plain": lambda: rows,
        "huge": lambda: rows * 1e6,
        "tiny": lambda: rows * 1e-6,
        "all scales": lambda: rows * np.logspace(-4, 4, 12) + 100,
        "far from zero": lambda: rows + 1e4,
        "collinear": lambda: np.hstack([rows, rows, rows @ generator.normal(size=(12, 5))]),
        "constant feature": lambda: np.hstack([rows, np.full((60, 1), 3.0)]),
        "all zero": lambda: np.zeros((60, 4)),
        "some rows zero": lambda: rows * (np.arange(60) % 3 > 0)[:, np.newaxis],
        "same rows, other labels": lambda: np.repeat(rows[:6], 10, axis=0),
        "wide": lambda: generator.normal(size=(60, 200)) * 30 + 5,
        "wide and huge": lambda: generator.normal(size=(60, 200)) * 1e6 + 5e6,
    }[kind]()
    return made.astype(np.float32), labels


KINDS = (
    "plain", "huge", "tiny", "all scales", "far from zero", "collinear", "constant feature",
    "all zero", "some rows zero", "same rows, other labels", "wide", "wide and huge",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [2, 4])
def test_the_optimum_is_reached_whatever_the_embeddings(kind, classes):
    """To the stated gradient, as the one judge of all fits measures it."""
    rows, labels = rows_of(kind, classes)

    found = fit(rows, labels)

    assert found.converged
    assert optimality(found, rows, labels, 1.0).gradient_norm <= TOLERANCE
    assert found.coef.dtype == np.float64
    assert np.isin(found.predict(rows), labels).all()


@pytest.mark.parametrize("kind", ["huge", "all scales", "wide", "collinear"])
@pytest.mark.parametrize("classes", [2, 4])
def test_where_it_starts_changes_nothing(kind, classes):
    """From zero, and from where lbfgs stopped."""
    rows, labels = rows_of(kind, classes)
    vectors = 1 if classes == 2 else classes
    nothing = PlainFit(
        np.arange(classes),
        np.zeros((vectors, rows.shape[1])),
        np.zeros(vectors),
        0,
        converged=False,
    )

    from_zero = newton.finish(nothing, rows, labels, 1.0, TOLERANCE)
    from_lbfgs = fit(rows, labels)

    # Steps go on until rounding stops them: of weights it leaves this share, many times over.
    scale = np.abs(from_zero.coef).max()
    assert np.abs(from_zero.coef - from_lbfgs.coef).max() <= 1e-9 * scale


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("strength", [1.0, 0.25])
def test_it_is_the_optimum_that_another_method_finds(classes, strength):
    """A trust region with the exact Hessian, on the objective written out."""
    task = random_task(1, classes=classes, dim=4, rows=30)
    rows, labels = task.train.astype(np.float64), task.train_labels
    truth = np.eye(classes)[labels]
    penalty = np.append(np.full(4, 1 / (strength * 30)), 0.0)
    matrix = np.column_stack([rows, np.ones(30)])
    free = slice(1, None) if classes == 2 else slice(None)

    def parts(flat):
        weights = np.zeros((classes, 5))
        weights[free] = flat.reshape(-1, 5)
        scores = matrix @ weights.T
        shares = np.exp(scores - np.logaddexp.reduce(scores, axis=1)[:, np.newaxis])
        value = -(np.log(shares) * truth).sum() / 30 + (penalty * weights**2).sum() / 2
        slope = (shares - truth).T @ matrix / 30 + penalty * weights
        blocks = shares[:, :, np.newaxis] * (np.eye(classes) - shares[:, np.newaxis, :])
        bend = np.einsum("ikl,id,ie->kdle", blocks[:, free, free], matrix, matrix) / 30
        bend = bend.reshape(flat.size, flat.size) + np.diag(np.tile(penalty, flat.size // 5))
        return value, slope[free].ravel(), bend

    size = 5 * (1 if classes == 2 else classes)
    found = scipy.optimize.minimize(
        lambda flat: parts(flat)[0],
        np.zeros(size),
        jac=lambda flat: parts(flat)[1],
        hess=lambda flat: parts(flat)[2],
        method="trust-exact",
        options={"gtol": 1e-10},
    ).x.reshape(-1, 5)

    start = SklearnBackend().fit(task.train, labels, GENEB_LR_1.probe.parameters)
    ours = newton.finish(start, task.train, labels, strength, TOLERANCE)

    # The other method's gradient is 1e-10, and the objective bends by at least 1 / (C n).
    assert ours.coef == pytest.approx(found[:, :4], abs=1e-7)
    theirs = found[:, 4] - (found[:, 4].mean() if classes > 2 else 0)
    assert ours.intercept == pytest.approx(theirs, abs=1e-7)


@given(seed=st.integers(0, 10_000), classes=st.integers(2, 5), scale=st.floats(1e-6, 1e6))
@settings(max_examples=15, deadline=None)
def test_any_task_of_any_scale(seed, classes, scale):
    """Converged, or as near as doubles can tell, and then nothing else is claimed."""
    task = random_task(seed, classes=classes, dim=3, rows=25)
    rows = (task.train * scale).astype(np.float32)

    found = fit(rows, task.train_labels)

    norm = optimality(found, rows, task.train_labels, 1.0).gradient_norm
    assert found.converged == (norm <= TOLERANCE)
    # The gradient is a mean of rows times residuals, whose rounding is a few hundred eps.
    assert norm <= max(TOLERANCE, 1e-12 * np.abs(rows).max())


@pytest.mark.parametrize("kind", ["plain", "all scales", "wide"])
def test_the_order_of_the_rows_changes_no_score(kind):
    """Where lbfgs ended at another place, the optimum is the same but for rounding."""
    rows, labels = rows_of(kind, 3)
    order = np.random.default_rng(1).permutation(len(rows))

    found = fit(rows, labels)
    shuffled = fit(rows[order], labels[order])

    assert found.predict(rows).tolist() == shuffled.predict(rows).tolist()
    scale = np.abs(found.coef).max()
    assert np.abs(found.coef - shuffled.coef).max() <= 1e-9 * scale  # rounding, see above


def test_what_is_not_there_is_not_claimed(monkeypatch):
    """A fit that ran out of steps says so."""
    monkeypatch.setattr(newton, "_MAX_STEPS", 1)
    rows, labels = rows_of("all scales", 4)

    found = fit(rows, labels)

    assert not found.converged
    assert optimality(found, rows, labels, 1.0).gradient_norm > TOLERANCE


def test_iterations_of_both_parts_count(monkeypatch):
    """Those of the start and the steps after it."""
    rows, labels = rows_of("plain", 2)
    start = PROBE.start.fit(rows, labels, None, SklearnBackend())
    monkeypatch.setattr(newton, "_MAX_STEPS", 2)

    assert start.n_iter + 2 == fit(rows, labels).n_iter


def test_less_memory_gives_the_same(monkeypatch):
    """One factor for all classes, and rows in slabs."""
    rows, labels = rows_of("all scales", 4)
    whole = fit(rows, labels)
    monkeypatch.setattr(newton, "_FACTOR_BYTES", 0)
    monkeypatch.setattr(newton, "_SLAB_BYTES", 7 * 13 * 8)

    found = fit(rows, labels)

    assert found.converged
    assert np.abs(found.coef - whole.coef).max() <= 1e-9 * np.abs(whole.coef).max()


def test_the_protocol_runs_as_the_published_one_does():
    """Regimes, seeds and draws are its own; every fit is at its optimum, and lower than lbfgs's."""
    task = random_task(3, classes=3)
    ours = probe_task(task.for_probe(), choose_protocol("geneb-lr-1-converged"), SklearnBackend())
    theirs = probe_task(task.for_probe(), choose_protocol(), SklearnBackend())

    for one, other in zip(ours, theirs, strict=True):
        assert (one.fit.regime, one.fit.seed) == (other.fit.regime, other.fit.seed)
        assert one.fit.n_train == other.fit.n_train
        assert one.fit.converged
        assert one.fit.objective < other.fit.objective

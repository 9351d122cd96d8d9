"""Each probe beside the published one is what its name says, and looks at train rows only."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import matthews_corrcoef
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from support.small_stores import random_task

from geneb.probing.backends import SklearnBackend
from geneb.probing.catalogue import CATALOGUE
from geneb.probing.fit import probe_task
from geneb.probing.protocol import choose_protocol
from geneb.probing.transforms import projection, standardisation, unit_length

TUNED = CATALOGUE["geneb-tuned-lr-1"]


@pytest.fixture(params=[2, 4])
def task(request):
    """Features of very different scales and means."""
    task = random_task(request.param, dim=12, classes=request.param, rows=120)
    scales = np.logspace(-2, 3, 12, dtype=np.float32)
    shifts = np.arange(12, dtype=np.float32)
    task.train, task.test = task.train * scales + shifts, task.test * scales + shifts
    return task


def predicted(name, task, seed=13):
    fit = CATALOGUE[name].fit(task.train, task.train_labels, seed, SklearnBackend())
    return fit.predict(task.test)


def scaled(*steps):
    return make_pipeline(StandardScaler(), *steps)


@pytest.mark.parametrize(
    ("name", "pipeline"),
    [
        ("geneb-ridge-1", lambda: scaled(RidgeClassifier(alpha=12.0))),
        ("geneb-scaled-lr-1", lambda: scaled(LogisticRegression(max_iter=1000))),
        ("geneb-pca-lr-1", lambda: scaled(PCA(12), LogisticRegression(max_iter=1000))),
        ("geneb-mlp-1", lambda: scaled(MLPClassifier((128,), max_iter=100, random_state=13))),
    ],
)
@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
def test_they_are_scikit_learns_pipelines(task, name, pipeline):
    """In float64, the same predictions as of the plain pipeline."""
    plain = pipeline().fit(task.train.astype(np.float64), task.train_labels)
    expected = plain.predict(task.test.astype(np.float64))
    assert predicted(name, task).tolist() == expected.tolist()


def test_the_nearest_mean(task):
    """By distances in float64, computed one by one."""
    train, test = task.train.astype(np.float64), task.test.astype(np.float64)
    classes = np.unique(task.train_labels)
    means = np.stack([train[task.train_labels == one].mean(axis=0) for one in classes])
    distances = ((test[:, np.newaxis] - means) ** 2).sum(axis=2)
    assert predicted("geneb-centroid-1", task).tolist() == distances.argmin(axis=1).tolist()


def test_the_vote_of_the_nearest(task):
    """The five most similar rows by cosine vote, each with the inverse of its distance."""
    similar = cosine_similarity(task.test.astype(np.float64), task.train.astype(np.float64))
    expected = []
    for row in similar:
        nearest = np.argsort(-row)[:5]
        votes = np.zeros(4)
        for place in nearest:
            votes[task.train_labels[place]] += 1 / np.sqrt(2 - 2 * row[place])
        expected.append(int(votes.argmax()))
    assert predicted("geneb-knn-1", task).tolist() == expected


def test_with_one_row_a_class_the_nearest_wins():
    """Fewer rows than neighbours: all vote, and there is no tie for the first class to win."""
    task = random_task(1, classes=3, rows=3)
    similar = cosine_similarity(task.test, task.train)
    assert predicted("geneb-knn-1", task).tolist() == similar.argmax(axis=1).tolist()


@pytest.mark.parametrize("scale", [1e-30, 1e-6, 1e6, 1e30])
@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_the_scale_of_embeddings_changes_nothing(name, scale):
    """None of these probes knows the scale: float32's range is no trap."""
    task = random_task(3, classes=3)
    before = predicted(name, task)
    task.train *= np.float32(scale)
    task.test *= np.float32(scale)
    # Scaled by no power of two, numbers are rounded: rows on a border may fall to the other side.
    assert (predicted(name, task) == before).mean() >= 0.95


def test_standardised_rows_are_scikit_learns():
    """Mean 0 and variance 1 in train, up to float64's rounding."""
    rows = random_task(5, dim=7).train * np.float32(1e3) + np.float32(500)
    expected = StandardScaler().fit_transform(rows.astype(np.float64))
    np.testing.assert_allclose(standardisation(rows)(rows), expected, atol=1e-12)


@given(st.floats(-(2.0**126), 2.0**126, width=32), st.integers(2, 9))
@settings(deadline=None, max_examples=30)
def test_a_constant_feature_is_zero(value, count):
    """Exactly, whatever its value; it is neither divided by nothing nor blown-up rounding."""
    rows = np.full((count, 2), value, dtype=np.float32)
    rows[:, 1] = np.arange(count)
    moved = standardisation(rows)(rows)
    assert not moved[:, 0].any()
    assert np.isfinite(moved).all()


@pytest.mark.parametrize("rows", [5, 40])
def test_components_are_those_of_pca(rows):
    """With more rows than features and with fewer; the sign of a component means nothing."""
    train = random_task(6, dim=9, rows=rows).train
    kept = min(4, rows)
    found = projection(train, kept)(train)
    expected = PCA(kept).fit_transform(StandardScaler().fit_transform(train.astype(np.float64)))
    order = np.argsort(-found.var(axis=0))
    # Eigenvectors of the covariance lose some of float64's sixteen digits.
    np.testing.assert_allclose(np.abs(found[:, order]), np.abs(expected), atol=1e-9)


def test_rows_of_zeros_have_no_direction():
    """They stay zeros; all others get length 1."""
    lengths = np.linalg.norm(unit_length(np.float32([[0, 0], [3e30, 4e30], [1e-40, 0]])), axis=1)
    np.testing.assert_allclose(lengths, [0, 1, 1], rtol=1e-12)


class TestTheChoiceOfC:
    """The carve, and what is done with it."""

    @given(st.lists(st.integers(0, 4), min_size=2, max_size=60))
    @settings(deadline=None)
    def test_the_carve_is_stratified(self, labels):
        """15 % of each class, rounded up; a class of one row keeps it; none of one class alone."""
        labels = np.array(labels)
        carved = TUNED.carve(labels)
        counts = np.bincount(labels, minlength=5)
        expected = np.where(counts > 1, np.ceil(counts * 15 / 100), 0)
        if (expected > 0).sum() < 2:
            expected[:] = 0
        assert np.bincount(labels[carved], minlength=5).tolist() == expected.tolist()
        assert set(labels[~carved]) == set(labels)

    def test_the_carve_hangs_on_labels_alone(self):
        """So it is the same rows for all models."""
        labels = np.arange(50) % 3
        assert TUNED.carve(labels).tolist() == TUNED.carve(labels.copy()).tolist()

    def test_it_is_the_c_with_the_best_mcc(self):
        """As a plain loop over the grid finds it, which scales by the rest of train alone."""
        task = random_task(11, dim=40, classes=3, rows=120)
        task.train += np.random.default_rng(0).normal(scale=3, size=(120, 40)).astype(np.float32)
        carved = TUNED.carve(task.train_labels)
        kept = (task.train[~carved].astype(np.float64), task.train_labels[~carved])
        values = []
        for strength in TUNED.grid:
            plain = scaled(LogisticRegression(C=strength, max_iter=1000)).fit(*kept)
            found = plain.predict(task.train[carved].astype(np.float64))
            values.append(matthews_corrcoef(task.train_labels[carved], found))
        assert len(set(values)) > 2, "this test tells nothing"
        chosen = TUNED.choose(task.train, task.train_labels, SklearnBackend())
        assert chosen.parameters["C"] == TUNED.grid[int(np.argmax(values))]

    def test_of_equals_it_is_the_smallest(self):
        """Where rows tell nothing, every C does equally badly."""
        labels = np.arange(40) % 2
        chosen = TUNED.choose(np.zeros((40, 3), dtype=np.float32), labels, SklearnBackend())
        assert chosen.parameters["C"] == min(TUNED.grid)

    def test_without_a_carve_it_is_the_published_one(self):
        """One row a class, as in 1shot: nothing is chosen, nothing fails."""
        task = random_task(1, classes=3, rows=3)
        chosen = TUNED.choose(task.train, task.train_labels, SklearnBackend())
        assert chosen.parameters["C"] == 1.0

    def test_all_rows_are_fitted_in_the_end(self):
        """The fit is that of the chosen C on the whole of train, and its optimality too."""
        task = random_task(12, dim=8, classes=2, rows=80)
        backend = SklearnBackend()
        fit = TUNED.fit(task.train, task.train_labels, None, backend)
        chosen = TUNED.choose(task.train, task.train_labels, backend).parameters["C"]
        plain = scaled(LogisticRegression(C=chosen, max_iter=1000))
        plain.fit(task.train.astype(np.float64), task.train_labels)
        assert fit.predict(task.test).tolist() == plain.predict(task.test.astype(float)).tolist()
        told = TUNED.optimality(fit, task.train, task.train_labels)
        assert told.gradient_norm <= 1e-4  # the solver's tolerance


def test_only_seeds_that_matter_are_run():
    """The network is fitted with each seed, everything else once where nothing is drawn."""
    task = random_task(2, rows=24).for_probe()
    for name in CATALOGUE:
        fits = [one.fit for one in probe_task(task, choose_protocol(name), SklearnBackend())]
        seeds = [fit.seed for fit in fits if fit.regime == "full"]
        assert seeds == ([13, 17, 42, 123, 997] if name == "geneb-mlp-1" else [None]), name
        assert len(fits) == 10 + len(seeds)


def test_how_far_the_solvers_came_is_told():
    """Iterations where there are some, an objective where there is one."""
    task = random_task(2, rows=24).for_probe()
    told = {}
    for name in CATALOGUE:
        protocol = choose_protocol(name, ["full"], [13])
        (fit,) = (one.fit for one in probe_task(task, protocol, SklearnBackend()))
        told[name] = (fit.n_iter is not None, fit.converged, fit.objective is not None)
    plain, regression = (False, None, False), (True, True, True)
    assert told == {
        "geneb-knn-1": plain,
        "geneb-centroid-1": plain,
        "geneb-ridge-1": plain,
        "geneb-scaled-lr-1": regression,
        "geneb-tuned-lr-1": regression,
        "geneb-pca-lr-1": regression,
        "geneb-mlp-1": (True, False, False),  # a hundred epochs, and the loss still falls
    }

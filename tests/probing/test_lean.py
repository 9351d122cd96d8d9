"""The solver that stands in for scikit-learn's, against scikit-learn's: bit for bit."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from support.small_stores import kmer_frequencies, random_task

from geneb.probing import lean
from geneb.probing.backends import SklearnBackend
from geneb.probing.linear import PlainFit
from geneb.probing.protocol import GENEB_LR_1
from geneb.probing.regimes import draw, parse_regime

INSTALLED = sklearn.__version__
PUBLISHED = GENEB_LR_1.probe.parameters

compared = pytest.mark.skipif(
    INSTALLED not in lean.COMPARED, reason="not stood in for under this scikit-learn"
)


def bits(*arrays: np.ndarray) -> list[tuple]:
    return [(array.dtype, array.shape, array.tobytes()) for array in map(np.asarray, arrays)]


def check_same(rows, labels, test, parameters=PUBLISHED) -> None:
    """Solution, its layout, iterations, whether it converged, predictions."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        theirs = LogisticRegression(**parameters).fit(rows, labels)
        stopped = any(issubclass(one.category, UserWarning) for one in caught)
        ours = lean.solve(rows, labels, parameters)
        predicted = theirs.predict(test)
    assert bits(ours.coef, ours.intercept, ours.classes) == bits(
        theirs.coef_, theirs.intercept_, theirs.classes_
    )
    assert ours.coef.strides == theirs.coef_.strides
    assert (ours.n_iter, ours.converged) == (theirs.n_iter_[0], not stopped)
    assert bits(ours.predict(test)) == bits(predicted)


@st.composite
def awkward_tasks(draw):
    """Rows of 2 to 9 classes: constant columns, rows of zeros, twins, huge and tiny numbers."""
    classes = draw(st.integers(2, 9))
    count, dim = classes + draw(st.integers(0, 30)), draw(st.integers(1, 40))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = generator.normal(size=(count, dim)) * draw(st.sampled_from([1e-6, 1e-2, 1, 30, 1e6]))
    if draw(st.booleans()):
        rows += draw(st.sampled_from([1, 1e3]))
    if draw(st.booleans()):
        rows[:, 0] = 1
    if draw(st.booleans()):
        rows[generator.integers(count, size=count // 2)] = draw(st.sampled_from([0, rows[0]]))
    labels = generator.permutation(np.arange(count) % classes) * 3 + 1
    return rows.astype(draw(st.sampled_from(["float32", "float64"]))), labels


@compared
@settings(max_examples=60, deadline=None)
@given(awkward_tasks(), st.sampled_from([1, 4, 300]))
def test_awkward_rows(task, most):
    """Converged or stopped before, in both dtypes, whatever the rows are like."""
    rows, labels = task

    check_same(rows, labels, rows[::-1].copy(), {**PUBLISHED, "max_iter": most})


@compared
@pytest.mark.parametrize("regime", ["full", "10shot", "1shot"])
def test_real_sequences(demo_data, regime):
    """Frequencies of 4-mers in a shipped task, by the published protocol."""
    path = min(demo_data.glob("*.csv"))
    task = kmer_frequencies(path, 4)
    regime = parse_regime(regime)
    for seed in (13, 17) if regime.is_drawn else (0,):
        chosen = draw(task.train_labels, regime, seed) if regime.is_drawn else slice(None)

        check_same(task.train[chosen], task.train_labels[chosen], task.test)


@compared
def test_rows_that_are_not_in_c_order():
    """scikit-learn makes a copy in C order; sums are added up in that order."""
    task = random_task(5, dim=30, classes=3)

    check_same(np.asfortranarray(task.train), task.train_labels, task.test)


def test_it_stands_in_for_what_was_compared_only(monkeypatch):
    """Not for other versions, arguments or dtypes: these go to scikit-learn itself."""
    single = np.dtype("float32")
    monkeypatch.setattr(lean.sklearn, "__version__", lean.COMPARED[0])
    assert lean.stands_in(single, PUBLISHED)
    assert not lean.stands_in(np.dtype("float16"), PUBLISHED)
    assert not lean.stands_in(single, {**PUBLISHED, "solver": "newton-cg"})
    assert not lean.stands_in(single, {**PUBLISHED, "fit_intercept": False})
    assert not lean.stands_in(single, {"C": 1.0})
    monkeypatch.setattr(lean.sklearn, "__version__", "1.4.2")
    assert not lean.stands_in(single, PUBLISHED)


@pytest.mark.parametrize("version", [lean.COMPARED[0], "0.0"])
def test_the_backend_gives_the_same_either_way(monkeypatch, version):
    """Whether it is stood in for, or scikit-learn's own class fits."""
    task = random_task(7, dim=20, classes=4)
    theirs = LogisticRegression(**PUBLISHED).fit(task.train, task.train_labels)
    monkeypatch.setattr(lean.sklearn, "__version__", version)

    fit = SklearnBackend().fit(task.train, task.train_labels, PUBLISHED)

    assert isinstance(fit, PlainFit) == (version in lean.COMPARED)
    if INSTALLED in lean.COMPARED or version not in lean.COMPARED:
        assert bits(fit.coef, fit.intercept) == bits(theirs.coef_, theirs.intercept_)
        assert (fit.n_iter, fit.converged) == (theirs.n_iter_[0], True)

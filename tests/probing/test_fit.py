"""One task: the same numbers as a plain loop of the protocol, and what is recorded beside them."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from support.plain_loop import SEEDS, plain_loop, predictions
from support.small_stores import Arrays, kmer_frequencies, random_task

from geneb.errors import InputError
from geneb.probing import backends, fit
from geneb.probing.backends import SklearnBackend, open_backend
from geneb.probing.fit import probe_task
from geneb.probing.probes import LogisticProbe
from geneb.probing.protocol import GENEB_LR_1, choose_protocol
from geneb.results import METRICS, reported_value


def probe(task: Arrays, protocol=GENEB_LR_1):
    return [one.fit for one in probe_task(task.for_probe(), protocol, SklearnBackend())]


def reported(fits):
    return {
        regime.name: {
            metric: reported_value(
                [getattr(one, metric) for one in fits if one.regime == regime.name], SEEDS
            )
            for metric in METRICS
        }
        for regime in GENEB_LR_1.regimes
    }


@pytest.mark.parametrize("name", ["demo_chloroplast_coding", "demo_splice_junctions"])
@pytest.mark.parametrize(("k", "scale", "rows"), [(4, 1, 300), (2, 40, 100)])
def test_the_nine_numbers_of_a_demo_task_are_the_plain_loops(demo_data, name, k, scale, rows):
    """Exactly, on k-mer frequencies of real sequences; scaled up, a fit takes many steps."""
    task = kmer_frequencies(demo_data / f"{name}.csv", k, rows=rows)
    task.train *= np.float32(scale)
    task.test *= np.float32(scale)
    assert reported(probe(task)) == plain_loop(*task.all())


@pytest.mark.parametrize(
    ("name", "k"),
    [
        ("tasks/leannmlindsey_GUE_mouse_3.csv", 4),
        ("extra/gue_splice_reconstructed_devtrain.csv", 3),
        ("extra/uci_promoters.csv", 4),
    ],
)
def test_the_nine_numbers_of_a_real_task_are_the_plain_loops(real_data, name, k):
    """Exactly: two classes, three classes, and a handful of rows."""
    task = kmer_frequencies(real_data / name, k, rows=900)
    assert reported(probe(task)) == plain_loop(*task.all())


@pytest.mark.parametrize("classes", [2, 3, 9])
def test_the_nine_numbers_of_awkward_embeddings_are_the_plain_loops(classes):
    """Zero rows, duplicated rows and columns, and a constant one: ties everywhere."""
    task = random_task(classes, dim=10, classes=classes, rows=90)
    for rows in (task.train, task.test):
        rows[:, 0] = 3
        rows[:, 1] = rows[:, 2]
        rows[::5] = 0
        rows[1::5] = rows[1]
    assert reported(probe(task)) == plain_loop(*task.all())


def test_one_fit_stands_for_all_seeds_of_the_full_regime():
    """One row without a seed there, one row for each seed elsewhere."""
    fits = probe(random_task())
    assert [(one.regime, one.seed) for one in fits] == [
        ("full", None),
        *(("10shot", seed) for seed in SEEDS),
        *(("1shot", seed) for seed in SEEDS),
    ]


def test_what_is_counted():
    """Rows, classes, classes with too few rows, and classes that only the test set has."""
    task = random_task(4, classes=3, rows=60)
    keep = np.flatnonzero((task.train_labels != 2) | (np.arange(60) < 9))
    task.train, task.train_labels = task.train[keep], task.train_labels[keep]
    task.test_labels = np.where(np.arange(60) < 5, 3, task.test_labels)

    full, *few_shot = probe(task)

    assert (full.n_train, full.n_test, full.n_classes) == (43, 60, 3)
    assert (full.short_classes, full.unseen_classes) == (0, 1)
    assert {(one.regime, one.n_train, one.short_classes) for one in few_shot} == {
        ("10shot", 23, 1),
        ("1shot", 3, 0),
    }
    assert reported([full, *few_shot]) == plain_loop(*task.all())


def test_a_fit_that_stops_early_is_recorded_and_not_warned_about():
    """The flag, the iterations and the gradient tell; no warning is left for the user."""
    task = random_task(5, dim=20, rows=30)
    parameters = {**GENEB_LR_1.probe.parameters, "max_iter": 2}
    short = replace(GENEB_LR_1, probe=LogisticProbe(parameters))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        full = probe(task, short)[0]
        done = probe(task)[0]
    assert (full.converged, full.n_iter) == (False, 2)
    assert full.gradient_norm > 1e-4
    assert done.converged
    # The tolerance of the solver, and the rounding of its float32 sums.
    assert done.gradient_norm <= 1e-4 + 1e-5


def test_other_warnings_of_a_fit_are_passed_on(monkeypatch):
    """Only what is recorded as not converged is kept from the user."""

    class Warning_(backends.LogisticRegression):
        def fit(self, rows, labels):
            warnings.warn("something else", RuntimeWarning, stacklevel=1)
            return super().fit(rows, labels)

    monkeypatch.setattr(backends, "LogisticRegression", Warning_)
    task = random_task()
    with pytest.warns(RuntimeWarning, match="something else"):
        SklearnBackend().fit(task.train, task.train_labels, {})


def test_test_labels_play_no_part_in_predictions(monkeypatch):
    """Shuffled test labels: the same predictions, and they are the plain loop's."""
    task = random_task(6, classes=3)
    seen = []
    honest = fit.score

    def spy(truth, predicted):
        seen.append(predicted.tolist())
        return honest(truth, predicted)

    monkeypatch.setattr(fit, "score", spy)
    probe(task)
    before = list(seen)
    seen.clear()
    task.test_labels = np.random.default_rng(0).permutation(task.test_labels)
    probe(task)

    assert seen == before
    train, labels, test, _ = task.all()
    shots = [(None, 13), *((10, seed) for seed in SEEDS), *((1, seed) for seed in SEEDS)]
    assert seen == [predictions(train, labels, test, *each).tolist() for each in shots]


def test_a_regime_alone_gives_what_it_gives_among_the_others():
    """Fewer fits in the product, the same numbers."""
    task = random_task(7, classes=3)
    alone = probe(task, choose_protocol(regimes=["1shot"]))
    among = [one for one in probe(task) if one.regime == "1shot"]
    assert [replace(one, seconds=0.0) for one in alone] == [
        replace(one, seconds=0.0) for one in among
    ]


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda task: setattr(task, "train_labels", np.zeros(40, dtype=np.int64)), "one class"),
        (lambda task: setattr(task, "train_labels", None), "no labels"),
        (lambda task: setattr(task, "test_labels", None), "no labels"),
        (lambda task: task.train.__setitem__((3, 1), np.nan), "train split are not finite"),
        (lambda task: task.test.__setitem__((3, 1), -np.inf), "row 3"),
        (lambda task: setattr(task, "test_labels", np.zeros(39)), "39 labels"),
    ],
)
def test_a_task_that_cannot_be_probed_is_refused(spoil, words):
    """With a message that says why; never a silent number."""
    task = random_task()
    spoil(task)
    with pytest.raises(InputError, match=words):
        probe(task)


def test_finite_sums_of_opposite_infinities_are_not_missed():
    """Both infinities in one split leave NaN in the sum."""
    task = random_task()
    task.test[0, 0], task.test[5, 0] = np.inf, -np.inf
    with pytest.raises(InputError, match="2 such rows, the first at row 0"):
        probe(task)


def test_an_unknown_backend():
    """The message lists the known ones."""
    with pytest.raises(InputError, match="sklearn, torch, cuml"):
        open_backend("jax")

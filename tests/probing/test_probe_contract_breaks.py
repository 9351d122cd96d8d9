"""The probe contract notices a probe that breaks a promise, by the test of that promise."""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from geneb.probing.estimators import CentroidProbe, WithoutObjective
from geneb.testing import ProbeContract

_COUNT = itertools.count()


@dataclass(frozen=True)
class Fit:
    """Predicts by a function of the rows."""

    function: object
    classes: np.ndarray
    n_iter = None
    converged = None

    def predict(self, rows):
        return self.function(rows)


class Honest(CentroidProbe):
    """The base of what follows, which changes one thing each."""

    def changed(self, fit, change):
        return Fit(lambda rows: change(rows, fit.predict(rows)), fit.classes)


class Unstable(Honest):
    def describe(self):
        return f"made {next(_COUNT)}"


class TwoLines(Honest):
    def describe(self):
        return "one\ntwo"


class NoWord(Honest):
    seeded = "no"


class UnknownBackend(Honest):
    backends = ("sklearn", "abacus")


class Unpicklable(Honest):
    def __reduce__(self):
        raise TypeError("not me")


class Guessing(Honest):
    def fit(self, rows, labels, seed, backend):
        fit = super().fit(rows, labels, seed, backend)
        return self.changed(fit, lambda _, found: np.full_like(found, labels[0]))


class OtherLabels(Honest):
    def fit(self, rows, labels, seed, backend):
        places = np.unique(labels, return_inverse=True)[1]
        return super().fit(rows, places, seed, backend)


class Floats(Honest):
    def fit(self, rows, labels, seed, backend):
        fit = super().fit(rows, labels, seed, backend)
        return self.changed(fit, lambda _, found: found.astype(float))


class Random(Honest):
    def fit(self, rows, labels, seed, backend):
        noise = np.random.default_rng(next(_COUNT)).normal(scale=9, size=rows.shape)
        return super().fit((rows + noise).astype(np.float32), labels, seed, backend)


class SecretlySeeded(Honest):
    def fit(self, rows, labels, seed, backend):
        noise = np.random.default_rng(seed or 0).normal(scale=9, size=rows.shape)
        return super().fit((rows + noise).astype(np.float32), labels, seed, backend)


class FirstRowsOnly(Honest):
    def fit(self, rows, labels, seed, backend):
        kept = np.concatenate([np.flatnonzero(labels == one)[:2] for one in np.unique(labels)])
        return super().fit(rows[kept], labels[kept], seed, backend)


class LastFit(Honest):
    fits: ClassVar = deque()

    def fit(self, rows, labels, seed, backend):
        self.fits.append(super().fit(rows, labels, seed, backend))
        return self.changed(self.fits[-1], lambda rows, _: self.fits[-1].predict(rows))


class Transductive(Honest):
    def fit(self, rows, labels, seed, backend):
        fit = super().fit(rows, labels, seed, backend)
        return Fit(lambda rows: fit.predict(rows - rows.mean(axis=0)), fit.classes)


class InPlace(Honest):
    def fit(self, rows, labels, seed, backend):
        rows -= rows.mean(axis=0)
        return super().fit(rows, labels, seed, backend)


class Hungry(Honest):
    def fit(self, rows, labels, seed, backend):
        if len(rows) < 10:
            raise ValueError("more rows")
        return super().fit(rows, labels, seed, backend)


class Strange(Honest):
    def fit(self, rows, labels, seed, backend):
        fit = super().fit(rows, labels, seed, backend)
        return self.changed(fit, lambda rows, found: np.where(rows[:, 0] > 1e6, -1, found))


class NotANumber(Honest):
    def optimality(self, fit, rows, labels):
        return (float("nan"), 0.0)


class Leaky(WithoutObjective):
    """Learns from the labels of the test set, which it finds where it must not look."""

    row_order_matters = True
    test_labels = None

    def describe(self):
        return "leaky"

    def fit(self, rows, labels, seed, backend):
        return Fit(lambda _: Leaky.test_labels, np.unique(labels))


BROKEN = {
    Unstable: "test_it_is_described_in_one_line_that_stays",
    TwoLines: "test_it_is_described_in_one_line_that_stays",
    NoWord: "test_it_declares_what_it_is",
    UnknownBackend: "test_it_declares_what_it_is",
    Unpicklable: "test_it_can_be_sent_to_another_process",
    Guessing: "test_it_tells_classes_that_lie_apart",
    OtherLabels: "test_predictions_are_labels_of_the_rows_fitted",
    Floats: "test_predictions_are_labels_of_the_rows_fitted",
    Random: "test_a_seed_gives_the_same_fit_each_time",
    SecretlySeeded: "test_a_seed_gives_the_same_fit_each_time",
    FirstRowsOnly: "test_the_order_of_rows_does_not_matter_where_it_says_so",
    LastFit: "test_a_fit_is_not_changed_by_later_ones",
    Transductive: "test_a_row_is_predicted_by_itself",
    InPlace: "test_rows_and_labels_are_left_as_they_are",
    Hungry: "test_few_rows_are_fitted",
    Strange: "test_degenerate_rows_are_fitted_or_refused",
    NotANumber: "test_how_near_the_optimum_it_came_is_told_in_numbers",
}


def contract_of(make):
    class Contract(ProbeContract):
        pass

    Contract.make = lambda self: make()
    return Contract()


@pytest.mark.parametrize("broken", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_promise_is_noticed(broken):
    """By the test of that promise."""
    with pytest.raises((AssertionError, TypeError, ValueError)):
        getattr(contract_of(broken), BROKEN[broken])()


def test_labels_that_leak_are_noticed(monkeypatch):
    """A probe that finds the labels of the test set predicts otherwise once they are shuffled."""
    contract = contract_of(Leaky)
    honest = contract._probe

    def peeking(task):
        monkeypatch.setattr(Leaky, "test_labels", task.test_labels)
        return honest(task)

    monkeypatch.setattr(contract, "_probe", peeking)
    with pytest.raises(AssertionError):
        contract.test_labels_of_the_test_set_change_nothing()


def test_every_promise_has_a_probe_that_breaks_it():
    """No test of the contract can go without failing for something."""
    promises = {name for name in dir(ProbeContract) if name.startswith("test_")}
    leaks = "test_labels_of_the_test_set_change_nothing"
    assert {*BROKEN.values(), leaks} == promises


def test_make_must_be_written():
    """The message says what it has to return."""
    with pytest.raises(NotImplementedError, match="write make"):
        ProbeContract().make()

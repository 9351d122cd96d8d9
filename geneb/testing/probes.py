"""What every probe promises, as tests; pytest collects them from a subclass."""

from __future__ import annotations

from multiprocessing.reduction import ForkingPickler
from typing import ClassVar

import numpy as np

from geneb.errors import GenebError
from geneb.probing.backends import BACKENDS, Backend, Fitted, SklearnBackend, family
from geneb.probing.fit import TaskArrays, probe_task
from geneb.probing.probes import Probe
from geneb.probing.protocol import Protocol
from geneb.probing.regimes import parse_regime

_SEED = 13
_REFUSALS = (GenebError, ValueError, ArithmeticError)  # what becomes a failure of the task alone


def clusters(seed: int = 0, *, classes: int = 3, rows: int = 60, dim: int = 8) -> TaskArrays:
    """Return a task whose classes lie apart, so that any probe can tell them.

    Parameters
    ----------
    rows
        Of each split.
    """
    generator = np.random.default_rng(seed)
    centres = 6 * generator.normal(size=(classes, dim))
    labels = np.arange(rows, dtype=np.int64) % classes
    train, test = (
        (centres[labels] + generator.normal(size=(rows, dim))).astype(np.float32) for _ in range(2)
    )
    ids = generator.integers(256, size=(2, rows, 16), dtype=np.uint8)
    return TaskArrays(train, labels, ids[0], test, labels.copy(), ids[1])


def degenerate_rows(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return train rows, their labels and test rows of a kind that a probe can stumble over.

    Parameters
    ----------
    name
        One of `DEGENERATE`.
    """
    task = clusters(7)
    train, labels, test = task.train.copy(), task.train_labels, task.test.copy()
    assert labels is not None
    if name in _SCALES:
        return train * _SCALES[name], labels, test * _SCALES[name]
    if name == "constant features":
        for rows in (train, test):
            rows[:, ::2] = 3.3
    elif name == "constant features that differ in test":
        train[:, 0] = 0.0
        test[:, 0] = np.float32(1e30)
    elif name == "all rows the same":
        train[:], test[:] = 0.1, 0.1
    elif name == "zeros only":
        train[:], test[:] = 0.0, 0.0
    elif name == "some rows of zeros":
        train[::4], test[::4] = 0.0, 0.0
    elif name == "duplicates with other labels":
        train[30:], test[:] = train[:30], train
        labels = np.concatenate([labels[:30], np.roll(labels[:30], 1)])
    elif name == "one feature":
        train, test = train[:, :1], test[:, :1]
    elif name == "more features than rows":
        train, test = np.tile(train[:6], 9), np.tile(test, 9)
        labels = labels[:6]
    elif name == "one row a class":
        train, labels = train[:3], labels[:3]
    elif name == "one class with one row":
        kept = np.flatnonzero((labels > 0) | (np.arange(len(labels)) == 0))
        train, labels = train[kept], labels[kept]
    elif name == "two rows":
        train, labels, test = train[:2], labels[:2], test[:1]
    return np.ascontiguousarray(train), labels, np.ascontiguousarray(test)


_SCALES = {f"scale {scale:g}": np.float32(scale) for scale in (1e6, 1e30, 1e-6, 1e-30, 1e-40)}
DEGENERATE = (
    *_SCALES,
    "constant features",
    "constant features that differ in test",
    "all rows the same",
    "zeros only",
    "some rows of zeros",
    "duplicates with other labels",
    "one feature",
    "more features than rows",
    "one row a class",
    "one class with one row",
    "two rows",
)
"""Kinds of rows that every probe must fit, or refuse in words; see `degenerate_rows`."""


class ProbeContract:
    """The tests that a probe must pass.

    Subclass it in a test file, name the subclass ``Test...`` and write `make`::

        class TestMine(ProbeContract):
            def make(self):
                return MyProbe()

    Attributes
    ----------
    at_least
        Share of the rows of `clusters` that it must tell right.
    """

    at_least: ClassVar[float] = 0.9

    # What a subclass says about its probe.

    def make(self) -> Probe:
        """Return a new probe; always with the same parameters."""
        raise NotImplementedError("write make(): it returns a new instance of your probe")

    def backend(self) -> Backend:
        """Return what it is fitted with."""
        return SklearnBackend()

    # What it declares.

    def test_it_declares_what_it_is(self) -> None:
        """``seeded`` and ``row_order_matters`` are true or false, its backends exist."""
        probe = self.make()

        assert type(probe.seeded) is bool, f"seeded is {probe.seeded!r}"
        assert type(probe.row_order_matters) is bool, (
            f"row_order_matters is {probe.row_order_matters!r}"
        )
        unknown = set(probe.backends) - set(BACKENDS)
        assert not unknown, f"there are no backends {unknown}"
        assert family(self.backend().name) in probe.backends

    def test_it_is_described_in_one_line_that_stays(self) -> None:
        """The description is a part of the run key: it must not change from run to run."""
        probe = self.make()
        before = probe.describe()

        assert before.strip(), "describe() returns nothing"
        assert before.isprintable(), f"describe() is not one printable line: {before!r}"
        self._fit(probe, clusters())
        assert probe.describe() == before, "describe() changes with a fit"
        assert self.make().describe() == before, "describe() differs from one instance to another"

    def test_it_can_be_sent_to_another_process(self) -> None:
        """With ``--jobs`` it is pickled; the copy is the same probe."""
        task = clusters()
        probe = self.make()
        copy = ForkingPickler.loads(ForkingPickler.dumps(probe))

        assert copy.describe() == probe.describe()
        first, second = (self._fit(one, task).predict(task.test) for one in (probe, copy))
        np.testing.assert_array_equal(second, first)

    # What it predicts.

    def test_it_tells_classes_that_lie_apart(self) -> None:
        """Two classes and three."""
        for classes in (2, 3):
            task = clusters(classes=classes)
            right = np.mean(self._fit(self.make(), task).predict(task.test) == task.test_labels)
            assert right >= self.at_least, f"{right:.0%} right with {classes} classes"

    def test_predictions_are_labels_of_the_rows_fitted(self) -> None:
        """Also where these labels are not 0, 1, 2: a class may be missing in train."""
        task = clusters()
        labels = np.array([1, 5, 40])[task.train_labels]
        fit = self.make().fit(task.train, labels, _SEED, self.backend())
        predicted = fit.predict(task.test)

        np.testing.assert_array_equal(fit.classes, [1, 5, 40])
        assert predicted.shape == (len(task.test),)
        assert predicted.dtype == np.int64, f"predictions are {predicted.dtype}"
        assert set(predicted.tolist()) <= {1, 5, 40}

    def test_a_seed_gives_the_same_fit_each_time(self) -> None:
        """A new instance too; and where the probe is not seeded, all seeds give that fit."""
        task = self._close()
        seeds = (_SEED, _SEED) if self.make().seeded else (_SEED, _SEED, 17, None)
        first, *others = (self._fit(self.make(), task, seed).predict(task.test) for seed in seeds)

        for other in others:
            np.testing.assert_array_equal(other, first)

    def test_a_fit_is_not_changed_by_later_ones(self) -> None:
        """All fits of a task are made before the first one predicts."""
        task, other = clusters(), clusters(1)
        probe = self.make()
        fit = self._fit(probe, task)
        before = fit.predict(task.test)
        self._fit(probe, other)

        np.testing.assert_array_equal(fit.predict(task.test), before)

    def test_the_order_of_rows_does_not_matter_where_it_says_so(self) -> None:
        """Nothing but ``row_order_matters`` excuses other predictions."""
        probe = self.make()
        if probe.row_order_matters:
            return
        task = self._close()
        order = np.random.default_rng(0).permutation(len(task.train))
        moved = probe.fit(task.train[order], task.train_labels[order], _SEED, self.backend())

        np.testing.assert_array_equal(
            moved.predict(task.test), self._fit(probe, task).predict(task.test)
        )

    # What it must not look at.

    def test_labels_of_the_test_set_change_nothing(self) -> None:
        """Shuffled, they leave all predictions as they were."""
        task = self._close()
        before = self._probe(task)
        shuffled = np.random.default_rng(0).permutation(task.test_labels)
        after = self._probe(TaskArrays(**{**vars(task), "test_labels": shuffled}))

        for one, other in zip(before, after, strict=True):
            np.testing.assert_array_equal(other, one)

    def test_a_row_is_predicted_by_itself(self) -> None:
        """Whatever other rows are predicted with it."""
        task = clusters()
        fit = self._fit(self.make(), task)
        together = fit.predict(task.test)

        np.testing.assert_array_equal(fit.predict(task.test[::-1])[::-1], together)
        for place in (0, 1, len(task.test) - 1):
            assert fit.predict(task.test[place : place + 1])[0] == together[place], (
                f"row {place} alone is predicted otherwise"
            )

    def test_rows_and_labels_are_left_as_they_are(self) -> None:
        """They are those of the next fit."""
        task = clusters()
        probe = self.make()
        kept = [array.copy() for array in (task.train, task.train_labels, task.test)]
        fit = self._fit(probe, task)
        fit.predict(task.test)
        probe.optimality(fit, task.train, task.train_labels)

        for before, after in zip(kept, (task.train, task.train_labels, task.test), strict=True):
            np.testing.assert_array_equal(after, before)

    # What it must cope with.

    def test_few_rows_are_fitted(self) -> None:
        """One row of each class, and two."""
        for rows in (3, 6):
            task = clusters(rows=rows)
            predicted = self._fit(self.make(), task).predict(task.test)
            assert set(predicted.tolist()) <= {0, 1, 2}

    def test_degenerate_rows_are_fitted_or_refused(self) -> None:
        """See `DEGENERATE`: labels are predicted, or an error says why not."""
        for name in DEGENERATE:
            train, labels, test = degenerate_rows(name)
            try:
                fit = self.make().fit(train, labels, _SEED, self.backend())
                predicted = fit.predict(test)
            except _REFUSALS:
                continue
            assert set(predicted.tolist()) <= set(labels.tolist()), name

    def test_how_near_the_optimum_it_came_is_told_in_numbers(self) -> None:
        """Finite ones; None where the probe has no objective."""
        task = self._close()
        probe = self.make()
        told = probe.optimality(self._fit(probe, task), task.train, task.train_labels)

        assert told is None or np.isfinite(told).all(), f"{told}"

    def _close(self) -> TaskArrays:
        """Return a task whose classes overlap: predictions hang on more than the obvious."""
        task = clusters(2)
        noise = np.random.default_rng(3).normal(scale=4, size=(2, *task.train.shape))
        train, test = (
            (rows + part).astype(np.float32)
            for rows, part in zip((task.train, task.test), noise, strict=True)
        )
        return TaskArrays(**{**vars(task), "train": train, "test": test})

    def _fit(self, probe: Probe, task: TaskArrays, seed: int | None = _SEED) -> Fitted:
        assert task.train_labels is not None
        return probe.fit(task.train, task.train_labels, seed, self.backend())

    def _probe(self, task: TaskArrays) -> list[np.ndarray]:
        regimes = tuple(map(parse_regime, ("full", "10shot")))
        protocol = Protocol("contract", self.make(), regimes, seeds=(_SEED, 17))
        return [one.predicted for one in probe_task(task, protocol, self.backend())]

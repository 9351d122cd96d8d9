"""What no probe must stumble over: every protocol gives a score or refuses in words."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from support.small_stores import Arrays, random_task, write_store

import geneb
from geneb.errors import InputError
from geneb.probing.backends import SklearnBackend
from geneb.probing.fit import probe_task
from geneb.probing.protocol import PROTOCOLS, choose_protocol
from geneb.probing.run import ProbeError
from geneb.testing.probes import DEGENERATE, degenerate_rows

REGIMES = ["full", "1shot"]


def check(fits, classes):
    """Every number is one, within its range; labels are known ones."""
    assert [fit.regime for fit in fits] == REGIMES
    for fit in fits:
        assert -1 <= fit.MCC <= 1
        assert 0 <= fit.Acc <= 1
        assert 0 <= fit.F1 <= 1
        assert 1 <= fit.predicted_classes <= classes
        numbers = [value for value in dataclasses.asdict(fit).values() if isinstance(value, float)]
        assert all(map(math.isfinite, numbers)), fit


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
@pytest.mark.parametrize("kind", DEGENERATE)
def test_degenerate_rows_get_a_score(protocol, kind):
    """No kind of them is refused, nothing warns: warnings are errors here."""
    train, labels, test = degenerate_rows(kind)
    classes = len(np.unique(labels))
    task = Arrays(train, labels, test, np.resize(np.arange(classes), len(test)))
    chosen = choose_protocol(protocol, REGIMES, [13])
    outcomes = probe_task(task.for_probe(), chosen, SklearnBackend())
    check([one.fit for one in outcomes], classes)


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
def test_a_class_may_be_missing_on_either_side(protocol):
    """One of test alone is never predicted, one of train alone never right; both are counted."""
    task = random_task(1, classes=4, rows=40)
    task.train_labels[task.train_labels == 1] = 0
    task.test_labels[task.test_labels == 3] = 2
    chosen = choose_protocol(protocol, REGIMES, [13])
    outcomes = probe_task(task.for_probe(), chosen, SklearnBackend())
    fits = [one.fit for one in outcomes]
    check(fits, 3)
    assert {(fit.unseen_classes, fit.untested_classes) for fit in fits} == {(1, 1)}
    assert all(set(one.predicted.tolist()) <= {0, 2, 3} for one in outcomes)


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
def test_one_class_in_train_is_refused(protocol):
    """There is nothing to tell apart."""
    task = random_task()
    task.train_labels[:] = 1
    with pytest.raises(InputError, match="one class only"):
        probe_task(task.for_probe(), choose_protocol(protocol), SklearnBackend())


def test_a_store_of_them_is_probed_to_the_end(tmp_path):
    """Through the front door: one row a fit for what can be fitted, a message for what cannot."""
    tasks = {}
    for place, kind in enumerate(DEGENERATE):
        train, labels, test = degenerate_rows(kind)
        if train.shape[1] == 8:
            classes = len(np.unique(labels))
            tasks[f"kind_{place}"] = Arrays(
                train, labels, test, np.resize(np.arange(classes), len(test))
            )
    one_class = random_task(dim=8)
    one_class.train_labels[:] = 0
    store = write_store(tmp_path / "s.zarr", {**tasks, "one_class": one_class})
    with pytest.raises(ProbeError, match="one class only") as caught:
        geneb.probe(store, regimes=REGIMES, seeds=[13], protocol="geneb-ridge-1")
    frame = caught.value.results
    assert sorted(set(frame.task)) == sorted(tasks)
    assert len(frame) == 2 * len(tasks)
    assert frame[["MCC", "Acc", "F1"]].notna().all(axis=None)

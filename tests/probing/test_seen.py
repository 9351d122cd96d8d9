"""What train and test share is counted, and scores are given without it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.small_stores import random_task

from geneb.base.canonical import row_ids
from geneb.probing.backends import SklearnBackend
from geneb.probing.fit import probe_task
from geneb.probing.metrics import score
from geneb.probing.protocol import choose_protocol
from geneb.probing.seen import find_overlap

WORDS = st.lists(st.sampled_from(["A", "C", "G", "AC", "GT"]), min_size=1, max_size=20)


def overlap_of(train, test):
    labels = [np.zeros(len(words), dtype=np.int64) for words in (train, test)]
    return find_overlap(*labels, row_ids(train), row_ids(test))


@given(WORDS, WORDS)
@settings(deadline=None)  # a busy machine is no failure
def test_a_row_is_seen_if_its_sequence_stands_in_train(train, test):
    """Whatever the labels are."""
    assert overlap_of(train, test).seen.tolist() == [word in train for word in test]


def test_ids_that_end_in_zeros_are_told_apart():
    """They are bytes, not text that ends at the first zero."""
    ids = np.zeros((2, 16), dtype=np.uint8)
    ids[0, 0], ids[1, 1] = 1, 1
    labels = np.zeros(1, dtype=np.int64)
    assert not find_overlap(labels, labels, ids[:1], ids[1:]).seen[0]
    assert find_overlap(labels, labels, ids[:1], ids[:1]).seen[0]


def test_classes_that_stand_in_one_split_only():
    """Those of the test set can never be predicted, those of train never be tested."""
    ids = row_ids(["A", "C", "G"])
    found = find_overlap(np.array([0, 1, 4]), np.array([0, 2, 3]), ids, ids)
    assert (found.unseen_classes, found.untested_classes) == (2, 2)


def test_scores_without_rows_that_train_has():
    """They are the metrics of the other rows, by the same predictions; the reported stay."""
    task = random_task(3, rows=60)
    plain = probe_task(task.for_probe(), choose_protocol(), SklearnBackend())
    task.test[:20] = task.train[:20]
    outcomes = probe_task(task.for_probe(), choose_protocol(), SklearnBackend())
    for one in outcomes:
        assert one.fit.seen_rows == 20
        expected = score(task.test_labels[20:], one.predicted[20:])
        assert one.fit.MCC_without_seen == expected["MCC"]
        assert one.fit.Acc_without_seen == expected["Acc"]
        assert one.fit.F1_without_seen == expected["F1"]
        assert score(task.test_labels, one.predicted)["MCC"] == one.fit.MCC
    assert {one.fit.MCC_without_seen == one.fit.MCC for one in plain} == {True}


def test_no_row_is_left_without_those_of_train():
    """Then there is no such score, rather than a made-up one."""
    task = random_task(4)
    arrays = replace(task.for_probe(), test=task.train, test_row_ids=task.for_probe().train_row_ids)
    (one,) = probe_task(arrays, choose_protocol(regimes=["full"]), SklearnBackend())
    assert (one.fit.seen_rows, one.fit.MCC_without_seen) == (40, None)


@pytest.mark.parametrize("scale", [0, 1])
def test_constant_predictions_can_be_seen(scale):
    """Rows that are all the same get one class."""
    task = random_task(5)
    task.train *= scale
    task.test *= scale
    (one,) = probe_task(task.for_probe(), choose_protocol(regimes=["full"]), SklearnBackend())
    assert one.fit.predicted_classes == 1 + scale

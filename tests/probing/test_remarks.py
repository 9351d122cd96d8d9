"""What to know of a task beside its scores."""

from __future__ import annotations

import json

import numpy as np
import pytest
from support.command import geneb
from support.results_folders import run_info, write_results
from support.small_stores import random_task, write_store

from geneb.probing.remarks import SUBJECTS, Remark, remarks, tell
from geneb.results import ResultsFolder, TaskResults, reported_value


@pytest.fixture
def plain(tmp_path):
    """Results of three tasks of which there is nothing to know."""
    folder = write_results(tmp_path / "out", run_info(), ["a", "b", "c"])
    return ResultsFolder.open(folder).current()


def changed(results, regimes=("full", "10shot", "1shot"), **fields):
    import dataclasses

    fits = [
        dataclasses.replace(fit, **fields) if fit.regime in regimes else fit for fit in results.fits
    ]
    return TaskResults(results.origin, tuple(fits))


def test_nothing_is_said_where_there_is_nothing(plain):
    """No empty heading either."""
    assert remarks(plain) == []
    assert tell([]) == []


def test_short_classes_are_told_for_each_regime(plain):
    """A class with 4 rows is short of ten, and not of one."""
    found = remarks([plain[0], changed(plain[1], ["10shot"], short_classes=1)])
    assert found == [Remark("short_classes", "b", "10shot", "1 of 2 classes")]


def test_classes_of_one_split_are_told_once_a_task(plain):
    """They are the same in all regimes."""
    found = remarks([changed(plain[0], unseen_classes=2, untested_classes=3)])
    assert found == [
        Remark("unseen_classes", "a", None, "2"),
        Remark("untested_classes", "a", None, "3"),
    ]


def test_rows_that_train_has_come_with_the_score_without_them(plain):
    """Of the first regime: reported, and without."""
    found = remarks([changed(plain[0], seen_rows=7, MCC=0.5, MCC_without_seen=0.25)])
    assert found == [
        Remark("seen_rows", "a", None, "7 of 40; MCC in full 0.500, without them 0.250")
    ]
    found = remarks([changed(plain[0], seen_rows=40, MCC=-0.0001, MCC_without_seen=None)])
    assert found[0].text == "40 of 40; MCC in full 0.000, no others are left"


def test_constant_predictions_are_counted(plain):
    """One class for all rows; of a single row there is nothing to tell."""
    found = remarks([changed(plain[0], ["full", "1shot"], predicted_classes=1)])
    assert found == [
        Remark("constant_predictions", "a", "full", "in its one fit"),
        Remark("constant_predictions", "a", "1shot", "in 5 of 5 fits"),
    ]
    assert remarks([changed(plain[0], predicted_classes=1, n_test=1)]) == []


def test_many_tasks_make_a_short_list():
    """By subject, each with its first tasks and how many more there are."""
    found = [Remark("short_classes", f"t{place}", "10shot", "x") for place in range(9)]
    found.append(Remark("seen_rows", "s", None, "y"))
    assert tell(found) == [
        SUBJECTS["short_classes"],
        *(f"  t{place}, 10shot: x" for place in range(5)),
        "  and 4 more, all of them in --json",
        SUBJECTS["seen_rows"],
        "  s: y",
    ]


def test_the_command_tells_them(tmp_path):
    """A list on stderr, all of it in JSON, nothing of it with --quiet."""
    task = random_task(3, classes=3, rows=60)
    kept = np.flatnonzero((task.train_labels < 2) | (np.arange(60) < 12))
    task.train, task.train_labels = task.train[kept], task.train_labels[kept]
    task.test_labels[:4] = 3
    store = write_store(tmp_path / "s.zarr", {"odd": task, "even": random_task()})
    args = ("probe", store, "--out", tmp_path / "out", "--regimes", "full,10shot")
    done = geneb(*args, "--json")
    assert done.code == 0, done.err
    [model] = json.loads(done.out)["models"]
    assert model["remarks"] == [
        {"subject": "short_classes", "task": "odd", "regime": "10shot", "text": "1 of 3 classes"},
        {"subject": "unseen_classes", "task": "odd", "regime": None, "text": "1"},
    ]
    lines = done.err.splitlines()
    place = lines.index("what to know of these tasks:")
    assert lines[place + 1 : place + 5] == [
        f"  {SUBJECTS['short_classes']}",
        "    odd, 10shot: 1 of 3 classes",
        f"  {SUBJECTS['unseen_classes']}",
        "    odd: 1",
    ]
    assert geneb(*args, "--quiet").err == ""


def test_rows_seen_in_a_real_probe(tmp_path):
    """The stated scores are the means of the columns."""
    from support.small_stores import Arrays

    from geneb.probing.backends import SklearnBackend
    from geneb.probing.fit import probe_task
    from geneb.probing.protocol import choose_protocol
    from geneb.results import Origin

    task = random_task(4)
    task = Arrays(task.train, task.train_labels, task.test.copy(), task.test_labels)
    task.test[:10] = task.train[:10]
    protocol = choose_protocol(regimes=["10shot"])
    fits = [one.fit for one in probe_task(task.for_probe(), protocol, SklearnBackend())]
    origin = Origin("m", "f", "e", "t", "sklearn", protocol.id, "k")
    (remark,) = remarks([TaskResults(origin, tuple(fits))])
    values = [
        reported_value([getattr(fit, name) for fit in fits], protocol.seeds)
        for name in ("MCC", "MCC_without_seen")
    ]
    assert remark.text == "10 of 40; MCC in 10shot {:.3f}, without them {:.3f}".format(*values)

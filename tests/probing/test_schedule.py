"""Order and memory of the work ahead."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geneb.probing.backends import SklearnBackend
from geneb.probing.protocol import PROTOCOLS, choose_protocol
from geneb.probing.schedule import Work, announce, longest_first, plan

MB = 10**6


def make_work(name="a", *, train=1000, test=500, dim=768, classes=2, protocol=None) -> Work:
    return Work(0, name, protocol or choose_protocol(), train, test, dim, classes)


def test_the_longest_come_first():
    """By rows times dim times weight vectors; those alike stay in their order."""
    works = [
        make_work("two classes", classes=2),
        make_work("three", classes=3),
        make_work("wide", dim=2560),
        make_work("forty", classes=40),
        make_work("two again"),
    ]
    order = [work.task_id for work in longest_first(works)]
    assert order == ["forty", "wide", "three", "two classes", "two again"]


def test_all_that_was_asked_for_where_memory_is_plenty():
    """But no more processes than tasks."""
    works = [make_work(name) for name in "abc"]
    for jobs, expected in ((1, 1), (2, 2), (3, 3), (8, 3)):
        way = plan(works, jobs, 10**12)
        assert (way.jobs, way.ahead) == (expected, True)
    assert plan([], 4, 10**12).jobs == 1


def test_less_at_a_time_where_memory_is_short():
    """First no task ahead, then fewer processes; the last way is taken even if it is too much."""
    works = [make_work(name, train=100_000) for name in "abcd"]
    ways = [plan(works, 2, 10**12)]
    while ways[-1].needed > (way := plan(works, 2, ways[-1].needed - 1)).needed:
        ways.append(way)
    assert [(way.jobs, way.ahead) for way in ways] == [(2, True), (2, False), (1, True), (1, False)]
    assert plan(works, 2, 0) == ways[-1]


@given(
    st.lists(st.tuples(st.integers(1, 10**6), st.integers(2, 50)), max_size=8), st.integers(1, 5)
)
def test_what_is_stated_covers_any_tasks_at_a_time(sizes, jobs):
    """Whichever tasks are fitted and loaded together."""
    works = [make_work(train=rows, classes=classes) for rows, classes in sizes]
    needed = plan(works, jobs, 10**15).needed
    fitted, loaded = works[::-1][:jobs], works[::-1][jobs : 2 * jobs]
    assert needed >= sum(one.rows_bytes + one.fit_bytes for one in fitted) + sum(
        one.rows_bytes for one in loaded
    )


def test_rows_that_are_copied_are_counted():
    """A probe that fits float64 rows needs a copy of the train rows, twice as large."""
    published = make_work(train=100_000)
    probe = replace(published.protocol.probe, dtype="float64")
    doubles = replace(published, protocol=replace(published.protocol, probe=probe))
    copy = 8 * published.n_train * published.dim
    assert doubles.fit_bytes >= copy > published.fit_bytes


@pytest.mark.parametrize("train", [100, 5_000])
@pytest.mark.parametrize("classes", [2, 4])
def test_what_the_converged_protocol_takes_is_stated(train, classes):
    """The memory that numpy takes for a fit stays below what was said before it."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(train, 256)).astype(np.float32)
    labels = np.arange(train) % classes
    work = make_work(train=train, classes=classes)
    work = replace(work, dim=256, n_test=1, protocol=PROTOCOLS["geneb-lr-1-converged"])
    tracemalloc.start()
    try:
        work.protocol.probe.fit(rows, labels, None, SklearnBackend())
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert taken < work.fit_bytes < 8 * taken


@pytest.mark.parametrize(
    ("jobs", "free", "words"),
    [
        (1, 10**12, "22 fits of 2 tasks: up to 15 MB of memory, 1,000.0 GB are free"),
        (2, 10**12, "22 fits of 2 tasks in 2 of 2 processes: up to 558 MB of memory"),
        (2, 300 * MB, "in 1 of 2 processes: up to 284 MB of memory, 300 MB are free; more proc"),
        (1, 3 * MB, "3 MB are free; tasks may fail for want of memory"),
    ],
)
def test_what_lies_ahead_is_said(jobs, free, words):
    """Fits, tasks, processes, memory; and where it is short."""
    works = [make_work(name) for name in "ab"]
    assert words in announce(works, plan(works, jobs, free), jobs, free)


def test_nothing_ahead_is_said_too():
    """Everything was done before."""
    assert announce([], plan([], 1, MB), 1, MB) == "there is nothing to fit"

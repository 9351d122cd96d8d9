"""Lists of faults for people."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from geneb.errors import Fault
from geneb.reporting.faults import MISSING_TASK, in_brief, listed


def missing(regime, tasks):
    return [Fault(f"$.results.{regime}{task}", MISSING_TASK, fix="probe") for task in tasks]


def test_missing_tasks_are_told_by_regime():
    """With the first names, also those that stand in brackets."""
    found = [*missing("full", [".a", '["b.c"]', ".d", ".e"]), *missing("1shot", [".a"] * 2)]

    assert in_brief(found) == [
        Fault("$.results.full", "4 tasks are missing: a, b.c, d and 1 more", fix="probe"),
        *missing("1shot", [".a"] * 2),
    ]


def test_files_are_not_mixed():
    """A name before the path stays before it."""
    found = [
        Fault(f"{file}.json, {one.where}", one.problem)
        for file in "xy"
        for one in missing("full", [".a", ".b", ".c", ".d"])
    ]

    assert [one.where for one in in_brief(found)] == [
        "x.json, $.results.full",
        "y.json, $.results.full",
    ]


def test_of_what_is_alike_the_first_is_an_example():
    """Its details, and where the next ones are."""
    found = [Fault(f"$.{name}", "wrong", found=name, fix="mend") for name in "abcdef"]

    assert in_brief(found) == [
        Fault("$.a", "wrong; the same at $.b, $.c and 3 more", found="a", fix="mend")
    ]
    assert in_brief(found[:3]) == found[:3]


def test_what_differs_is_listed_up_to_an_end():
    """In the order of the first of each kind."""
    found = [Fault(f"$.{place}", f"problem {place}") for place in range(500)]
    lines = listed(found).strip().splitlines()

    assert lines[1].strip() == "$.1: problem 1"
    assert (len(lines), lines[-1].strip()) == (201, "and 300 more")


@given(st.lists(st.builds(Fault, st.text(), st.sampled_from(["x", "y", MISSING_TASK]))))
def test_no_kind_is_lost(found):
    """And none is told more than three times; paths may be anything."""
    brief = in_brief(found)

    assert bool(brief) == bool(found)
    for problem in {one.problem for one in found} - {MISSING_TASK}:
        told = sum(one.problem.startswith(problem) for one in brief)
        assert told == (min(3, told) if sum(o.problem == problem for o in found) <= 3 else 1)

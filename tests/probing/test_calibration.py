"""A calibration: what is in it, when it is enough, and what is not one."""

from __future__ import annotations

import json

import pytest
from support.calibrations import SPEC, calibration

from geneb.errors import InputError, NotFoundError
from geneb.probing.calibration import (
    MACRO_TOLERANCE,
    TASK_TOLERANCE,
    calibration_faults,
    calibration_tasks,
    read_calibration,
    shortcomings,
    write_calibration,
)

SUBSET = calibration_tasks(SPEC)
MADE_WITH = {
    "backend": "cuml",
    "store_fingerprint": "a" * 64,
    "versions": {"cuml-cu12": "26.4.0"},
}


def faults(changed, **made_with):
    return [
        fault.where
        for fault in calibration_faults(changed, spec=SPEC, **{**MADE_WITH, **made_with})
    ]


def test_the_subset_has_a_task_of_each_category():
    """The first one, so that it is the same for everybody."""
    categories = [SPEC.find(task_id).category for task_id in SUBSET]
    assert categories == list(SPEC.categories)
    assert SUBSET[0] == SPEC.task_ids[0]


def test_one_within_the_tolerances_is_enough():
    """In all regimes of the whole subset."""
    assert faults(calibration()) == []


@pytest.mark.parametrize("backend", ["sklearn", "torch:cpu", "torch:cuda"])
def test_other_backends_need_none(backend):
    """They stop by scikit-learn's own rule."""
    assert faults(None, backend=backend) == []


def test_without_one_it_says_how_to_make_it():
    """With the command."""
    (fault,) = calibration_faults(None, spec=SPEC, **MADE_WITH)
    assert "geneb analyze backends STORE --backends sklearn,cuml" in fault.fix


@pytest.mark.parametrize("metric", ["MCC", "Acc", "F1"])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_task_beyond_the_tolerance(metric, sign):
    """Either way, in any metric."""
    inside = calibration({(SUBSET[3], "1shot", metric): sign * TASK_TOLERANCE * 0.99})
    beyond = calibration({(SUBSET[3], "1shot", metric): sign * TASK_TOLERANCE * 1.01})
    assert faults(inside) == []
    assert faults(beyond) == [f"calibration.tasks.{SUBSET[3]}.1shot.{metric}"]


def test_a_macro_score_beyond_the_tolerance():
    """Every task within its own, and all to one side."""
    step = MACRO_TOLERANCE * 1.01
    beyond = calibration({(task, "full", "MCC"): step for task in SUBSET})
    assert faults(beyond) == ["calibration.macro.full.MCC"]
    signs = {(task, "full", "MCC"): step * (-1) ** i for i, task in enumerate(SUBSET)}
    assert faults(calibration(signs)) == []


def test_what_is_missing():
    """A task of the subset, or a regime."""
    fewer = calibration()
    tasks = {task: regimes for task, regimes in fewer.tasks.items() if task != SUBSET[2]}
    tasks[SUBSET[0]] = {"full": fewer.tasks[SUBSET[0]]["full"]}
    found = [one.where for one in shortcomings(fewer.model_copy(update={"tasks": tasks}), SPEC)]
    assert found == [f"calibration.tasks.{SUBSET[0]}", f"calibration.tasks.{SUBSET[2]}"]


@pytest.mark.parametrize(
    ("made_with", "place"),
    [
        ({"store_fingerprint": "b" * 64}, "calibration.store_fingerprint"),
        ({"versions": {"cuml-cu12": "26.6.0"}}, "calibration.compared.versions"),
    ],
)
def test_one_of_something_else(made_with, place):
    """Another store, or another version of the library."""
    assert faults(calibration(), **made_with) == [place]


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"protocol": "geneb-lr-1-converged"}, "calibration.protocol"),
        ({"seeds": [1]}, "calibration.seeds"),
    ],
)
def test_one_of_another_protocol(changes, place):
    """There the backends may well agree."""
    assert faults(calibration().model_copy(update=changes)) == [place]


@pytest.mark.parametrize(("side", "name"), [("reference", "torch:cpu"), ("compared", "sklearn")])
def test_one_of_other_backends(side, name):
    """It is scikit-learn that cuML is measured by."""
    other = calibration()
    changed = getattr(other, side).model_copy(update={"backend": name})
    assert faults(other.model_copy(update={side: changed})) == [f"calibration.{side}.backend"]


def test_it_is_read_as_it_was_written(tmp_path):
    """To the last bit."""
    path = tmp_path / "new" / "calibration.json"
    write_calibration(path, calibration())
    assert read_calibration(path) == calibration()


@pytest.mark.parametrize(
    "change",
    [
        lambda one: one.pop("seeds"),
        lambda one: one.update(verdict="fine"),
        lambda one: one.update(format="geneb-calibration-2"),
        lambda one: one["tasks"][SUBSET[0]]["full"].update(coef=-1.0),
        lambda one: one["tasks"][SUBSET[0]]["full"].update(predictions=1.5),
        lambda one: one["tasks"][SUBSET[0]]["full"].update(coef="1"),
        lambda one: one["tasks"][SUBSET[0]]["full"]["compared"].update(MCC=2.0),
        lambda one: one["tasks"][SUBSET[0]]["full"]["compared"].pop("F1"),
        lambda one: one["tasks"][SUBSET[0]]["full"].update(coef=float("nan")),
        lambda one: one["tasks"][SUBSET[0]]["full"]["compared"].update(MCC=float("inf")),
    ],
)
def test_what_is_not_a_calibration(tmp_path, change):
    """Fields that lack, are too many, of another type or out of range, numbers that are none."""
    document = json.loads(calibration().model_dump_json())
    change(document)
    path = tmp_path / "calibration.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(InputError):
        read_calibration(path)


def test_there_is_none(tmp_path):
    """The path is told."""
    with pytest.raises(NotFoundError, match="nowhere"):
        read_calibration(tmp_path / "nowhere.json")

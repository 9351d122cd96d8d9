"""Two backends on the same tasks, and the calibration: `geneb analyze backends`."""

from __future__ import annotations

import json

import numpy as np
import pytest
from support import cuml_stand_in
from support.command import check_mistake, geneb
from support.small_stores import random_task, write_store

from geneb.analysis import backends as analysis
from geneb.analysis.backends import calibrate
from geneb.base.progress import Silent
from geneb.benchmark.spec import load_spec
from geneb.errors import InputError
from geneb.probing.backends import SklearnBackend, open_backend
from geneb.probing.calibration import calibration_tasks, read_calibration, shortcomings
from geneb.probing.fit import probe_task
from geneb.probing.protocol import GENEB_LR_1, choose_protocol
from geneb.results import reported_value
from geneb.stores import open_store

SPEC = load_spec()


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A store with two tasks of no benchmark."""
    tasks = {"two": random_task(1), "three": random_task(2, classes=3)}
    return write_store(tmp_path_factory.mktemp("small") / "s.zarr", tasks)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A store with the fixed subset and a task beyond it."""
    tasks = [*calibration_tasks(SPEC), SPEC.task_ids[1]]
    arrays = {task: random_task(place, rows=20, dim=3) for place, task in enumerate(tasks)}
    return write_store(tmp_path_factory.mktemp("whole") / "s.zarr", arrays)


class Tilted(SklearnBackend):
    """Weights a little off."""

    name = "tilted"

    def fit(self, rows, labels, parameters):
        fit = super().fit(rows, labels, parameters)
        fit.coef[0, 0] += 0.5 * np.abs(fit.coef).max()
        return fit


def test_differences_are_those_of_the_fits(small, monkeypatch):
    """Weights, predictions and reported scores, against fitting by hand."""
    sides = {"sklearn": SklearnBackend(), "tilted": Tilted()}
    monkeypatch.setattr(analysis, "open_backend", sides.get)

    found = calibrate(open_store(small), ["sklearn", "tilted"], ["three"], Silent())

    (task,) = found.tasks
    arrays = random_task(2, classes=3).for_probe()
    plain, tilted = (probe_task(arrays, choose_protocol(), one) for one in sides.values())
    for regime, pair in found.tasks[task].items():
        here = [(a, b) for a, b in zip(plain, tilted, strict=True) if a.fit.regime == regime]
        # Exact but for the rounding of float32.
        assert pair.coef == pytest.approx(0.5, rel=1e-6)
        assert pair.predictions == max((a.predicted != b.predicted).mean() for a, b in here)
        for metric in ("MCC", "Acc", "F1"):
            values = [getattr(b.fit, metric) for _, b in here]
            assert getattr(pair.compared, metric) == reported_value(values, GENEB_LR_1.seeds)
    assert found.tasks[task]["full"].predictions > 0


def test_the_fixed_subset_is_taken_where_nothing_is_named(whole):
    """And is enough for a submission, if the backends agree."""
    found = calibrate(open_store(whole), ["sklearn", "cuml"], [], Silent())

    assert list(found.tasks) == calibration_tasks(SPEC)
    assert not [one for one in shortcomings(found, SPEC) if "lacks" in one.problem]
    assert found.compared.device == "Stand-in GPU"
    assert found.store_fingerprint == open_store(whole).fingerprint_id


@pytest.fixture(autouse=True)
def _cuml(monkeypatch):
    cuml_stand_in.install(monkeypatch)


@pytest.mark.parametrize(
    "names", [["sklearn"], ["sklearn", "sklearn"], ["sklearn", "cuml", "torch"]]
)
def test_two_backends_are_needed(small, names):
    """Not one, not three, not the same twice."""
    with pytest.raises(InputError, match="two backends are compared"):
        calibrate(open_store(small), names, [], Silent())


def test_a_store_without_the_subset_says_what_it_lacks(small):
    """And what can be done about it."""
    with pytest.raises(InputError, match="first task of each category") as caught:
        calibrate(open_store(small), ["sklearn", "cuml"], [], Silent())
    assert "--tasks" in caught.value.fix


def test_the_command_stores_what_it_found(small, tmp_path):
    """With versions, device and BLAS of both sides; torch is switched on by the command itself."""
    path = tmp_path / "calibrations" / "one.json"
    done = geneb(
        "analyze", "backends", small, "--backends", "sklearn,torch:cpu", "--tasks", "three",
        "--out", path, "--json", "--quiet", fresh=True,
    )  # fmt: skip

    assert done.code == 0, done.err
    stored = read_calibration(path)
    assert json.loads(path.read_text(encoding="utf-8")) == done.json
    assert (stored.reference.backend, stored.compared.backend) == ("sklearn", "torch:cpu")
    assert stored.compared.versions["torch"]
    assert stored.compared.device
    assert stored.compared.blas
    assert list(stored.tasks["three"]) == ["full", "10shot", "1shot"]


def test_the_table(small):
    """Differences with their signs; of own tasks there is no macro score."""
    done = geneb(
        "analyze", "backends", small, "--backends", "sklearn,torch:cpu", "--tasks", "two", "-q"
    )

    assert done.code == 0, done.err
    assert done.out.count("two") == 3
    assert "macro" not in done.out


def test_an_unknown_backend_starts_nothing(small):
    """One message with those there are."""
    check_mistake(
        geneb("analyze", "backends", small, "--backends", "sklearn,jax", "--tasks", "two"),
        "no such backend",
        "cuml",
    )


def test_backends_that_do_not_agree_are_said(small, monkeypatch):
    """Exit code 1: a check did not hold."""
    from click.testing import CliRunner

    from geneb.cli.analyze import backends

    monkeypatch.setattr(
        analysis, "open_backend", lambda name: Tilted() if name == "tilted" else open_backend(name)
    )
    done = CliRunner().invoke(
        backends, [str(small), "--backends", "sklearn,tilted", "-q"], standalone_mode=False
    )
    assert isinstance(done.exception, InputError)  # there is no fixed subset in this store
    done = CliRunner().invoke(
        backends,
        [str(small), "--backends", "sklearn,tilted", "--tasks", "three", "-q"],
        standalone_mode=False,
    )
    assert done.return_value == 1
    assert "the two backends do not agree" in done.output

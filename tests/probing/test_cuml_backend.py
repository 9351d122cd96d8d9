"""The cuML backend: what goes in and what is read back, on a stand-in; the real one on a GPU."""

from __future__ import annotations

import sys
from multiprocessing.reduction import ForkingPickler

import numpy as np
import pytest
from support import cuml_stand_in
from support.small_stores import random_task, write_store

from geneb.base import env
from geneb.errors import InputError, MissingExtraError
from geneb.probing.backends import LinearFit, SklearnBackend, open_backend
from geneb.probing.calibration import TASK_TOLERANCE
from geneb.probing.fit import probe_task
from geneb.probing.job import describe_run
from geneb.probing.protocol import GENEB_LR_1, choose_protocol
from geneb.stores import open_store

PARAMETERS = GENEB_LR_1.probe.parameters


@pytest.fixture
def backend(monkeypatch):
    """The backend on the stand-in."""
    cuml_stand_in.install(monkeypatch)
    return open_backend("cuml")


@pytest.mark.parametrize("labels", [(0, 1), (0, 1, 2), (3, 17), (-4, 2, 90)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_labels_go_in_encoded_and_come_back(backend, labels, dtype):
    """Classes that do not count from 0 made old versions fit one too few, or hang."""
    task = random_task(1, classes=len(labels))
    given = np.array(labels)[task.train_labels]

    fit = backend.fit(task.train.astype(dtype), given, PARAMETERS)

    assert np.unique(cuml_stand_in.LogisticRegression.seen[-1]).tolist() == [*range(len(labels))]
    assert isinstance(fit, LinearFit)
    assert fit.classes.tolist() == list(labels)
    vectors = 1 if len(labels) == 2 else len(labels)
    assert (fit.coef.shape, fit.coef.dtype) == ((vectors, 6), dtype)
    assert fit.coef.flags.c_contiguous
    assert fit.intercept.shape == (vectors,)
    assert (fit.predict(task.train) == given).mean() > 0.5


def test_scores_of_a_task(backend):
    """The whole protocol runs on it, at another place than scikit-learn's but near it."""
    arrays = random_task(2, classes=3, dim=20, rows=150).for_probe()
    ours, theirs = (
        probe_task(arrays, choose_protocol(), one) for one in (backend, SklearnBackend())
    )
    for one, other in zip(ours, theirs, strict=True):
        assert one.fit.n_iter > 0
        assert one.fit.objective == pytest.approx(other.fit.objective, rel=1e-2)


@pytest.mark.parametrize(("max_iter", "converged"), [(2, False), (1000, True)])
def test_iterations_that_were_used_up_are_no_convergence(backend, max_iter, converged):
    """cuML does not say why it ended."""
    task = random_task(1)
    parameters = {**PARAMETERS, "max_iter": max_iter}
    fit = backend.fit(task.train, task.train_labels, parameters)
    assert fit.converged is converged
    assert type(fit.n_iter) is int
    assert fit.n_iter <= max_iter


def test_rows_that_do_not_lie_in_a_row(backend):
    """Every other column of an array."""
    task = random_task(1)
    fit = backend.fit(task.train[:, ::2], task.train_labels, PARAMETERS)
    assert fit.coef.shape == (1, 3)


def test_another_solver_is_refused(backend):
    """What is asked for is never ignored."""
    task = random_task(1)
    with pytest.raises(InputError, match="no such solver"):
        backend.fit(task.train, task.train_labels, {**PARAMETERS, "solver": "newton-cg"})


def test_a_gpu_without_memory_is_told_as_such(backend, monkeypatch):
    """As a shortage of memory anywhere else: cuML's own error is one."""

    def run_out(*args, **kwargs):
        raise MemoryError("std::bad_alloc: out_of_memory")

    monkeypatch.setattr(cuml_stand_in.LogisticRegression, "fit", run_out)
    task = random_task(1)
    with pytest.raises(MemoryError):
        backend.fit(task.train, task.train_labels, PARAMETERS)


def test_what_it_ran_on_is_recorded(backend, monkeypatch, tmp_path):
    """Its own version is part of the run key; the GPU, and cuml.accel beside it, are told."""
    monkeypatch.setenv("CUML_ACCEL_ENABLED", "true")
    versions = {"cuml-cu13": "26.4.0"}
    plain = env.version
    monkeypatch.setattr(env, "version", lambda name: versions.get(name) or plain(name))
    store = open_store(write_store(tmp_path / "s.zarr", {"task": random_task()}))

    info = describe_run(store, GENEB_LR_1, open_backend("cuml"), [])

    assert info.backend == "cuml"
    assert info.versions["cuml-cu13"] == "26.4.0"
    assert info.environment["device"] == "Stand-in GPU"
    assert info.environment["cuml_accel"] is True


def test_worker_processes_get_a_copy(backend):
    """It holds nothing that cannot be sent."""
    assert ForkingPickler.loads(ForkingPickler.dumps(backend)).device == "Stand-in GPU"


@pytest.mark.skipif(env.importable("cuml"), reason="cuml is installed")
def test_without_cuml_it_says_what_to_install():
    """One line for pip."""
    with pytest.raises(MissingExtraError, match=r"pip install 'geneb\[cuml\]'"):
        open_backend("cuml")


def test_without_a_gpu_it_says_so(monkeypatch):
    """Whatever CUDA's libraries raise."""
    cuml_stand_in.install(monkeypatch)

    def fail(index):
        raise RuntimeError("cudaErrorInsufficientDriver")

    monkeypatch.setattr(sys.modules["cupy"].cuda.runtime, "getDeviceProperties", fail)
    with pytest.raises(InputError, match="cudaErrorInsufficientDriver"):
        open_backend("cuml")


@pytest.mark.gpu
@pytest.mark.skipif(not env.importable("cuml"), reason="cuml is not installed")
@pytest.mark.parametrize("classes", [2, 4])
def test_the_real_one_is_near_scikit_learn(classes):
    """On embeddings that are no trouble; on others a calibration tells."""
    task = random_task(2, classes=classes, dim=20, rows=400)
    given = task.train_labels * 3 + 1
    fit = open_backend("cuml").fit(task.train, given, PARAMETERS)
    theirs = SklearnBackend().fit(task.train, given, PARAMETERS)

    assert fit.classes.tolist() == theirs.classes.tolist()
    assert fit.coef.shape == theirs.coef.shape
    assert fit.coef.dtype == np.float32
    assert 0 < fit.n_iter < 1000
    differing = (fit.predict(task.test) != theirs.predict(task.test)).mean()
    assert differing <= 2 * TASK_TOLERANCE


@pytest.mark.gpu
@pytest.mark.skipif(not env.importable("cuml"), reason="cuml is not installed")
def test_the_real_one_gives_nearly_the_same_twice():
    """Sums on a GPU need not come out the same to the last bit."""
    task = random_task(2, classes=3, dim=20, rows=400)
    backend = open_backend("cuml")
    one, other = (backend.fit(task.train, task.train_labels, PARAMETERS) for _ in range(2))
    assert np.abs(one.coef - other.coef).max() <= 1e-2 * np.abs(one.coef).max()

"""scikit-learn's lbfgs on torch: within the tolerance of the backend sklearn, and never unasked."""

from __future__ import annotations

from multiprocessing.reduction import ForkingPickler

import numpy as np
import pytest
import sklearn
import torch
from sklearn.linear_model import LogisticRegression
from support.small_stores import Arrays, kmer_frequencies, random_task

from geneb.errors import InputError, MissingExtraError
from geneb.extractors.devices import Device
from geneb.probing import torch_backend
from geneb.probing.backends import LinearFit, SklearnBackend, open_backend
from geneb.probing.calibration import TASK_TOLERANCE
from geneb.probing.fit import probe_task
from geneb.probing.protocol import GENEB_LR_1, choose_protocol
from geneb.results import METRICS, Fit

PARAMETERS = GENEB_LR_1.probe.parameters


@pytest.fixture(autouse=True)
def _array_api(monkeypatch):
    """What the command line sets before anything is imported."""
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")


def load(demo_data, task: str, scale: float) -> Arrays:
    """A task of two to four classes, real or made, with embeddings of a size."""
    arrays = {
        "coding": lambda: kmer_frequencies(demo_data / "demo_chloroplast_coding.csv", 3, 200),
        "junctions": lambda: kmer_frequencies(demo_data / "demo_splice_junctions.csv", 3, 200),
        "made": lambda: random_task(4, classes=4, dim=20, rows=150),
    }[task]()
    arrays.train[:] *= scale
    arrays.test[:] *= scale
    return arrays


def both(arrays: Arrays, name: str = "torch:cpu", **which) -> list[tuple[Fit, Fit]]:
    """What is reported of each fit, on torch and by scikit-learn."""
    outcomes = (
        probe_task(arrays.for_probe(), choose_protocol(**which), backend)
        for backend in (open_backend(name), SklearnBackend())
    )
    return [(one.fit, other.fit) for one, other in zip(*outcomes, strict=True)]


TASKS = [("coding", 64), ("junctions", 64), ("made", 1), ("made", 50)]


@pytest.mark.parametrize(("task", "scale"), TASKS)
def test_scores_are_within_the_tolerance_of_sklearn(demo_data, task, scale):
    """In every regime and seed; sums are added up in another order, in float32."""
    for one, other in both(load(demo_data, task, scale)):
        for metric in METRICS:
            difference = getattr(one, metric) - getattr(other, metric)
            assert abs(difference) <= TASK_TOLERANCE, (one.regime, one.seed, metric)


def test_where_rounding_decides_when_to_stop_both_have_a_right_to(demo_data):
    """Word frequencies are so small that a few iterations reach the tolerance of the gradient.

    Whether it is one more or less then hangs on the last digits, and scores with it; what was
    asked of the solver holds for both.
    """
    pairs = both(load(demo_data, "coding", 1), regimes=["10shot", "1shot"])

    tolerance = PARAMETERS["tol"] * 1.1  # as measured in float64, not in the solver's float32
    assert all(fit.converged and fit.gradient_norm <= tolerance for pair in pairs for fit in pair)
    for one, other in pairs:
        assert one.objective == pytest.approx(other.objective, abs=1e-5)


def test_a_fit_is_plain_arrays_of_the_rows_kind():
    """Labels are any integers, rows may be read-only, and nothing of torch comes back."""
    task = random_task(1, classes=3)
    task.train.setflags(write=False)

    fit = open_backend("torch:cpu").fit(task.train, task.train_labels * 7 + 5, PARAMETERS)

    assert isinstance(fit, LinearFit)
    assert fit.classes.tolist() == [5, 12, 19]
    assert (type(fit.coef), fit.coef.dtype, fit.coef.shape) == (np.ndarray, np.float32, (3, 6))
    assert (type(fit.intercept), fit.intercept.shape) == (np.ndarray, (3,))
    assert type(fit.n_iter) is int
    assert fit.converged is True
    assert set(fit.predict(task.test)) <= {5, 12, 19}


def test_a_fit_that_did_not_converge_says_so():
    """In its result, not by a warning."""
    task = random_task(1)
    fit = open_backend("torch:cpu").fit(
        task.train, task.train_labels, {**PARAMETERS, "max_iter": 1}
    )
    assert fit.converged is False


def test_the_name_says_the_kind_of_device():
    """Scores of a CPU and of a GPU do not lie in one results folder."""
    backend = open_backend("torch:cpu")
    assert backend.name == "torch:cpu"
    assert backend.device
    assert "torch" in backend.packages
    assert open_backend("torch").name == (
        "torch:cuda" if torch.cuda.is_available() else "torch:cpu"
    )


def test_worker_processes_get_a_copy():
    """It holds nothing that cannot be sent."""
    task = random_task(1)
    copy = ForkingPickler.loads(ForkingPickler.dumps(open_backend("torch:cpu")))
    assert copy.fit(task.train, task.train_labels, PARAMETERS).converged


@pytest.mark.parametrize("value", [None, "0", "true"])
def test_without_the_array_api_it_says_what_to_set(monkeypatch, value):
    """Only 1 counts, for scipy and scikit-learn alike."""
    if value is None:
        monkeypatch.delenv("SCIPY_ARRAY_API")
    else:
        monkeypatch.setenv("SCIPY_ARRAY_API", value)
    with pytest.raises(InputError, match="SCIPY_ARRAY_API=1 before Python starts"):
        open_backend("torch")


def test_without_torch_it_says_what_to_install(monkeypatch):
    """One line for pip."""
    monkeypatch.setattr(torch_backend, "importable", lambda module: module != "torch")
    with pytest.raises(MissingExtraError, match=r"pip install 'geneb\[models\]'"):
        open_backend("torch")


def test_a_torch_without_its_libraries_is_told(monkeypatch):
    """A GPU build on a machine that lacks them."""

    def fail():
        raise OSError("libcudart.so: cannot open shared object")

    monkeypatch.setattr(torch_backend, "available_devices", fail)
    with pytest.raises(InputError, match="libcudart"):
        open_backend("torch")


def test_a_gpu_is_taken_where_there_is_one(monkeypatch):
    """Without a device named, or by its kind; another one by its number."""
    found = [Device("cpu", "CPU"), Device("cuda:0", "first"), Device("cuda:1", "second")]
    monkeypatch.setattr(torch_backend, "available_devices", lambda: found)
    chosen = {
        name: (open_backend(name).name, open_backend(name).device)
        for name in ("torch", "torch:cuda", "torch:cuda:1", "torch:cpu")
    }
    assert chosen == {
        "torch": ("torch:cuda", "first"),
        "torch:cuda": ("torch:cuda", "first"),
        "torch:cuda:1": ("torch:cuda", "second"),
        "torch:cpu": ("torch:cpu", "CPU"),
    }


def test_an_old_scikit_learn_is_refused(monkeypatch):
    """Before 1.9 its logistic regression took no torch."""
    monkeypatch.setattr(sklearn, "__version__", "1.8.0")
    with pytest.raises(InputError, match="newer scikit-learn"):
        open_backend("torch")


@pytest.mark.parametrize("name", ["torch:", "torch:mps", "torch:tpu", "torch:cuda:99"])
def test_a_device_that_is_not_there(name):
    """Or on which there are no doubles."""
    with pytest.raises(InputError, match="such device"):
        open_backend(name)


@pytest.mark.parametrize("name", ["sklearn:cpu", "cuml:0"])
def test_other_backends_take_no_device(name):
    """What is asked for is never ignored."""
    with pytest.raises(InputError, match="no such backend"):
        open_backend(name)


def test_it_does_not_bear_the_name_of_cuml_accel(monkeypatch):
    """That would solve in scikit-learn's place."""
    monkeypatch.setenv("CUML_ACCEL_ENABLED", "1")
    with pytest.raises(InputError, match=r"cuml\.accel"):
        open_backend("torch:cpu")


def test_a_device_without_memory_is_told_as_such(monkeypatch):
    """As a shortage of memory anywhere else; what was set is set back."""

    def run_out(*args, **kwargs):
        assert torch.backends.cuda.matmul.allow_tf32 is False
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(LogisticRegression, "fit", run_out)
    task = random_task(1)
    backend = open_backend("torch:cpu")
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        with pytest.raises(MemoryError, match="torch:cpu"):
            backend.fit(task.train, task.train_labels, PARAMETERS)
        assert torch.backends.cuda.matmul.allow_tf32 is True
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@pytest.mark.parametrize(("task", "scale"), TASKS)
def test_on_cuda_scores_are_within_the_tolerance(demo_data, task, scale):
    """As on the CPU; what is measured of a fit is measured the same way."""
    for one, other in both(load(demo_data, task, scale), "torch:cuda"):
        for metric in METRICS:
            difference = getattr(one, metric) - getattr(other, metric)
            assert abs(difference) <= TASK_TOLERANCE, (one.regime, one.seed, metric)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_on_cuda_the_converged_protocol_gives_the_same_answer():
    """The start is another; the optimum is not."""
    arrays = random_task(2, classes=3).for_probe()
    protocol = choose_protocol("geneb-lr-1-converged")
    ours, theirs = (
        probe_task(arrays, protocol, one) for one in (open_backend("torch"), SklearnBackend())
    )
    for one, other in zip(ours, theirs, strict=True):
        assert one.predicted.tolist() == other.predicted.tolist()

"""Processes that probe, and what they are refused for."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support.small_stores import random_task, write_store

import geneb
from geneb.base import env
from geneb.errors import InputError
from geneb.probing import workers
from geneb.probing.backends import BACKENDS, SklearnBackend
from geneb.probing.workers import threads_per_worker


@pytest.fixture
def store(tmp_path):
    return write_store(tmp_path / "s.zarr", {"a": random_task()})


@pytest.mark.parametrize(
    ("cores", "allowed", "jobs", "expected"),
    [(8, 8, 2, 4), (8, 8, 3, 2), (2, 2, 5, 1), (8, 1, 2, 1), (4, 64, 1, 4)],
)
def test_threads_do_not_outnumber_cores(monkeypatch, cores, allowed, jobs, expected):
    """Nor the threads that the environment allows, which OpenMP's are not among."""
    libraries = [
        {"user_api": "openmp", "num_threads": 1},
        {"user_api": "blas", "num_threads": allowed},
    ]
    monkeypatch.setattr(env, "cores", lambda: cores)
    monkeypatch.setattr(env, "blas", lambda: libraries)
    assert threads_per_worker(jobs) == expected


def test_what_cannot_be_sent_is_refused(store, tmp_path, monkeypatch):
    """Before anything is started or written."""

    class Local(SklearnBackend):
        pass

    monkeypatch.setitem(BACKENDS, "local", Local)
    monkeypatch.setattr(workers, "_Worker", None)
    with pytest.raises(InputError, match="cannot be sent") as caught:
        geneb.probe(store, out=tmp_path / "out", backend="local", jobs=2)
    assert "Local" in caught.value.found
    assert not (tmp_path / "out").exists()


def test_no_jobs_are_refused(store):
    """There must be somebody to do the work."""
    with pytest.raises(InputError, match="job"):
        geneb.probe(store, jobs=0)


def test_a_script_without_a_guard_is_told(store, tmp_path):
    """Workers import the script that started them; that must not start others."""
    script = tmp_path / "script.py"
    script.write_text(f"import geneb\ngeneb.probe({str(store)!r}, jobs=2)\n")
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 1
    assert "worker processes cannot be started" in done.stderr
    assert "__main__" in done.stderr

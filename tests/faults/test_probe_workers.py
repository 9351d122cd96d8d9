"""``geneb probe`` whose processes are killed or told to stop: what is done stays, none is left.

The backend sends the signal itself, in the fit of one task: no moment is guessed.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.fork_server import KILLED, ForkServer, Run
from support.small_stores import random_task, write_store

# Two processes begin with "odd", which has three classes, and "big". See support/odd_backends.py.
ROWS = {"a": 20, "big": 60, "c": 24, "odd": 46}


@pytest.fixture
def store(tmp_path) -> Path:
    tasks = {
        name: random_task(rows=rows, classes=3 if name == "odd" else 2)
        for name, rows in ROWS.items()
    }
    return write_store(tmp_path / "s.zarr", tasks)


@pytest.fixture(scope="module")
def processes(tmp_path_factory) -> Iterator[Path]:
    """Where each process that fits leaves its number."""
    folder = tmp_path_factory.mktemp("processes")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ODD_BACKENDS_FOLDER", str(folder))
        yield folder


@pytest.fixture(scope="module")
def odd_server(processes, tmp_path_factory) -> Iterator[ForkServer]:
    """Runs the command line where the odd backends can be asked for."""
    with ForkServer(tmp_path_factory.mktemp("server"), "odd_backends") as server:
        yield server


@pytest.fixture
def probe(store, odd_server, tmp_path):
    """Run ``geneb probe`` with one of the odd backends."""

    def run(backend: str, *args: object) -> Run:
        out = ("--out", tmp_path / "out", "--backend", backend)
        return odd_server.run("probe", store, *out, *args, trouble=None)

    return run


def runs(process: str) -> bool:
    """Whether a process is there, and not one that has ended and waits to be asked how."""
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="ascii")
    except OSError:
        return False
    return state.rpartition(")")[2].split()[0] != "Z"


def check_none_left(processes: Path) -> None:
    """No process that has fitted is left; one whose parent was killed has a moment to end."""
    fitted = [path.name for path in processes.iterdir()]
    assert fitted
    end = time.monotonic() + 60
    while left := [process for process in fitted if runs(process)]:
        assert time.monotonic() < end, f"{left} still run"
        time.sleep(0.05)


def test_a_killed_worker_fails_its_task_alone(probe, processes, tmp_path):
    """As where memory runs out: the others are done, and the same command tries it again."""
    run = probe("dies", "--jobs", 2, "--json")

    assert run.code == 1
    assert "Traceback" not in run.err
    for words in ("task odd", "was killed", "signal 9", "memory", "--jobs", "--tasks odd"):
        assert words in run.err
    (model,) = json.loads(run.out)["models"]
    assert [fault["problem"] for fault in model["failed"]] == [
        "the process that probed this task was killed"
    ]
    assert list(model["results"]["full"]) == ["a", "big", "c"]
    check_none_left(processes)
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*.csv")}
    assert sorted(path.stem for path in before) == ["a", "big", "c"]

    again = probe("sklearn")

    assert again.code == 0
    assert "11 fits of 1 tasks" in again.err
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize(
    ("backend", "jobs", "number"),
    [
        ("is-terminated", 1, signal.SIGTERM),
        ("is-interrupted", 1, signal.SIGINT),
        ("terminates", 2, signal.SIGTERM),
    ],
)
def test_a_signal_ends_the_run_at_once(probe, processes, tmp_path, backend, jobs, number):
    """In the middle of a fit: what is done shows, and can be gone on from."""
    run = probe(backend, "--jobs", jobs, "--tasks", "odd", "--tasks", "a", "--tasks", "c")

    assert run.code == 128 + number
    assert "Traceback" not in run.err
    assert "run the same command again" in run.err
    check_none_left(processes)
    folder = tmp_path / "out/small-model"
    done = sorted(path.stem for path in (folder / "tasks").iterdir())
    assert "odd" not in done
    assert sorted(json.loads((folder / "results.json").read_text())["results"].get("full", [])) == (
        done
    )
    again = probe("sklearn", "--json")
    assert again.code == 0
    assert f"{11 * (4 - len(done))} fits of {4 - len(done)} tasks" in again.err
    (model,) = json.loads(again.out)["models"]
    assert sorted(model["results"]["full"]) == sorted(ROWS)


def test_workers_end_with_a_caller_that_is_killed(probe, processes, tmp_path):
    """Even in a fit that would take minutes; nothing half-written is left."""
    run = probe("kills", "--jobs", 2, "--tasks", "odd")

    assert run.code == KILLED
    check_none_left(processes)
    assert not list((tmp_path / "out").rglob("*.partial"))

"""Running the command line in forked processes, which may be made to fail at a chosen moment.

Run as a script this is the server: it imports the program once, and forks a real process for
each run that is asked for, so that hundreds of them end in the time that starting interpreters
would take. It never uses the program itself, hence has no threads to lose in a fork.
A run may be killed after so many seconds, or right before its n-th change to the file system; may
have blocks of a few kilobytes, so that small data makes many of them; and may find its disk full
or its folders read-only.
"""

from __future__ import annotations

import ctypes
import importlib
import itertools
import json
import os
import resource
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn, Self

MODULES = (
    "geneb.cli.console",
    "geneb.cli.embed",
    "geneb.cli.store",
    "geneb.diagnosis",
    "geneb.embedding.reproduce",
    "geneb.embedding.run",
    "geneb.extractors.kmer",
    "geneb.extractors.published",
    "geneb.probing.run",
    "geneb.reporting.build",
    "geneb.reporting.reproduce",
    "geneb.stores.verify",
    "numpy.ma",
    "rich.progress",
    "rich.table",
    "threadpoolctl",
)
# Called once beforehand: their results are kept, and take a good part of a short run's time.
WARM = ("geneb.benchmark.spec:load_spec", "geneb.embedding.record:installed_versions")
KILLED = -signal.SIGKILL
_CHANGES = frozenset({"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", "os.link"})
_POLL_SECONDS = 0.0005
_LONGEST_SECONDS = 300
_CAPABILITY_VERSION = 0x20080522
_OVERRIDES_OF_PERMISSIONS = 0b110  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH


@dataclass(frozen=True)
class Trouble:
    """What a run is to meet.

    Attributes
    ----------
    block_bytes
        Largest size of a block; None for that of the format.
    kill_after, kill_at
        SIGKILL after so many seconds; right before the change of this number, counted from 1.
    file_size_limit
        No file may grow beyond so many bytes: a full disk, as far as a program can tell.
    heed_permissions
        Permissions count, also if the tests are run by root.
    """

    block_bytes: int | None = None
    kill_after: float | None = None
    kill_at: int | None = None
    file_size_limit: int | None = None
    heed_permissions: bool = False


@dataclass(frozen=True)
class Place:
    """Where a run takes place; otherwise where the server stands.

    Attributes
    ----------
    folder
        The working directory.
    variables
        The whole environment. One that is read when a library is imported comes too late.
    script
        Path of a script that takes the arguments, in the place of ``geneb``.
    """

    folder: str
    variables: dict[str, str]
    script: str | None = None


@dataclass(frozen=True)
class Run:
    """How a run ended.

    Attributes
    ----------
    code
        Its exit code, or minus the signal that ended it.
    changes
        What it did to the file system: kind of change and path, in order; empty where a limit
        was set on the size of files.
    """

    code: int
    seconds: float
    out: str
    err: str
    changes: list[str]

    def check(self) -> Self:
        assert self.code == 0, self.err
        return self


class ForkServer:
    """Runs geneb in forked processes; the server is started by the first run.

    Parameters
    ----------
    folder
        For what the processes print.
    modules
        Imported before the forks, besides the program.
    """

    def __init__(self, folder: Path, *modules: str) -> None:
        self._folder = folder
        self._modules = modules
        self._started: subprocess.Popen[str] | None = None

    @property
    def _process(self) -> subprocess.Popen[str]:
        if self._started is None:
            self._started = subprocess.Popen(
                [sys.executable, __file__, *MODULES, *self._modules],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                # A pool of threads would not survive the fork, and is slow beside other tests.
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
            )
        return self._started

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._started is not None:
            self._started.stdin.close()
            self._started.wait(timeout=60)
            self._started.stdout.close()

    def run(
        self, *args: object, trouble: Trouble | None = Trouble(), place: Place | None = None
    ) -> Run:
        """Run ``geneb`` with arguments."""
        return self.run_all([args], trouble, place)[0]

    def run_all(
        self,
        commands: Sequence[Sequence[object]],
        trouble: Trouble | None = Trouble(),
        place: Place | None = None,
    ) -> list[Run]:
        """Run several commands at once, and wait for all.

        Without even an empty `trouble` a run is left wholly alone, and its changes are not known.
        """
        runs = [
            {
                "args": [str(arg) for arg in args],
                **{name: str(self._folder / f"{name}-{i}.txt") for name in ("out", "err", "log")},
            }
            for i, args in enumerate(commands)
        ]
        request = {
            "runs": runs,
            "trouble": trouble and asdict(trouble),
            "place": place and asdict(place),
        }
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        replies = json.loads(self._process.stdout.readline())
        return [_finished(run, reply) for run, reply in zip(runs, replies, strict=True)]


def _finished(run: dict[str, Any], reply: dict[str, Any]) -> Run:
    out, err, log = (Path(run[name]).read_text(encoding="utf-8") for name in ("out", "err", "log"))
    return Run(**reply, out=out, err=err, changes=log.splitlines())


def serve(modules: Sequence[str]) -> None:
    """Answer requests until there are no more."""
    for module in modules:
        importlib.import_module(module)
    for place in WARM:
        module, _, name = place.partition(":")
        getattr(importlib.import_module(module), name)()
    for line in sys.stdin:
        request = json.loads(line)
        trouble = request["trouble"] and Trouble(**request["trouble"])
        place = request["place"] and Place(**request["place"])
        began = time.monotonic()
        children = [_fork(run, trouble, place) for run in request["runs"]]
        kill_after = trouble and trouble.kill_after
        replies = []
        for child in children:
            status = _wait(child, kill_after and began + kill_after)
            code = os.waitstatus_to_exitcode(status)
            replies.append({"code": code, "seconds": time.monotonic() - began})
        print(json.dumps(replies), flush=True)  # noqa: T201 - the answer


def _fork(run: dict[str, Any], trouble: Trouble | None, place: Place | None) -> int:
    child = os.fork()
    if child == 0:
        _be_the_child(run, trouble, place)
    return child


def _wait(child: int, end: float | None) -> int:
    if end is None:
        return os.waitpid(child, 0)[1]
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        if time.monotonic() >= end:
            os.kill(child, signal.SIGKILL)
            return os.waitpid(child, 0)[1]
        time.sleep(_POLL_SECONDS)


def _be_the_child(run: dict[str, Any], trouble: Trouble | None, place: Place | None) -> NoReturn:
    code = 70
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number, name in ((1, "out"), (2, "err")):
            os.dup2(_open_new(run[name]), number)
        log = _open_new(run["log"])
        if place is not None:
            _go_to(place)
        if trouble is not None:
            _meet(trouble, log)
        if place is not None and place.script is not None:
            sys.argv = [place.script, *run["args"]]
            runpy.run_path(place.script, run_name="__main__")
        else:
            importlib.import_module("geneb.cli").main(run["args"])
        code = 0
    except SystemExit as stop:
        code = _exit_code(stop)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _exit_code(stop: SystemExit) -> int:
    """Do with a status what an interpreter does at its end."""
    if stop.code is None or isinstance(stop.code, int):
        return stop.code or 0
    sys.stderr.write(f"{stop.code}\n")
    return 1


def _open_new(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)


def _go_to(place: Place) -> None:
    """Stand where ``python -m geneb`` would, as far as a process can that runs already."""
    signal.alarm(_LONGEST_SECONDS)
    os.chdir(place.folder)
    os.environ.clear()
    os.environ.update(place.variables)
    paths = filter(None, place.variables.get("PYTHONPATH", "").split(os.pathsep))
    sys.path[0] = place.folder  # was that of this file
    sys.path[1:1] = paths
    importlib.invalidate_caches()


def _meet(trouble: Trouble, log: int) -> None:
    if trouble.block_bytes is not None:
        importlib.import_module("geneb.stores.layout").BLOCK_BYTES = trouble.block_bytes
    # What was written before SIGKILL stays written; syncing is against power cuts, and slow.
    os.fsync = lambda handle: None
    if trouble.heed_permissions:
        _give_up_root()
    if trouble.file_size_limit is not None:
        limits = (trouble.file_size_limit, trouble.file_size_limit)
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    else:  # the limit would strike the log as well
        sys.addaudithook(_logging_hook(log, trouble.kill_at))


def _logging_hook(log: int, kill_at: int | None) -> Callable[[str, tuple], None]:
    """Write down changes to the file system; with ``kill_at``, die before that one."""
    numbers = itertools.count(1)

    def hook(event: str, args: tuple) -> None:
        writes = event == "open" and isinstance(args[2], int) and args[2] & os.O_ACCMODE
        if not writes and event not in _CHANGES:
            return
        if next(numbers) == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        path = args[1] if event == "os.rename" else args[0]
        os.write(log, f"{event} {path}\n".encode())

    return hook


def _give_up_root() -> None:
    if os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; twice
    if libc.capget(header, sets) != 0:
        raise OSError(ctypes.get_errno(), "capget")
    sets[0] &= ~_OVERRIDES_OF_PERMISSIONS
    if libc.capset(header, sets) != 0:
        raise OSError(ctypes.get_errno(), "capset")


if __name__ == "__main__":
    serve(sys.argv[1:])

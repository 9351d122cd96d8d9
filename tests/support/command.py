"""Running the real command line in a real process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.fork_server import ForkServer, Place


class Started:
    """What runs the forked commands of this test process; set by the fixture ``server``."""

    server: ForkServer


@dataclass(frozen=True)
class Outcome:
    """What a finished command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def geneb(
    *args: object,
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
    fresh: bool = False,
) -> Outcome:
    """Run ``geneb`` with arguments in a process of its own, and wait for it.

    It is forked from one that has imported the program, which takes most of a short run's time.
    An interpreter of its own, ``python -m geneb``, is for what asks for it by `fresh`, and for
    variables that an interpreter or a library of threads reads when it starts.
    """
    variables = {**os.environ, **(env or {})}
    if fresh or any(_read_at_start(name) for name in env or {}):
        return _run_fresh(args, cwd, variables)
    place = Place(str(cwd or Path.cwd()), variables)
    run = Started.server.run(*args, trouble=None, place=place)
    return Outcome(run.code, run.out, run.err)


def run_script(path: Path, *args: object) -> Outcome:
    """Run a script with arguments in a process of its own, forked as `geneb` does."""
    place = Place(str(Path.cwd()), dict(os.environ), str(path))
    run = Started.server.run(*args, trouble=None, place=place)
    return Outcome(run.code, run.out, run.err)


def _read_at_start(name: str) -> bool:
    return name.endswith("_NUM_THREADS") or (name.startswith("PYTHON") and name != "PYTHONPATH")


def _run_fresh(args: tuple[object, ...], cwd: Path | None, variables: dict[str, str]) -> Outcome:
    done = subprocess.run(
        [sys.executable, "-m", "geneb", *map(str, args)],
        cwd=cwd,
        env=variables,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def check_mistake(outcome: Outcome, *words: str, code: int = 2) -> None:
    """A user's mistake: the right code, one clear message with these words, no traceback."""
    assert outcome.code == code, outcome.err
    assert "Traceback" not in outcome.err, outcome.err
    missing = [word for word in words if word not in outcome.err]
    assert not missing, f"{missing} not in: {outcome.err}"

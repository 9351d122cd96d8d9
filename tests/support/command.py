"""Running the real command line in a real subprocess."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any


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
    timeout: float = 300,
) -> Outcome:
    """Run ``python -m geneb`` with arguments and wait for it."""
    done = subprocess.run(
        [sys.executable, "-m", "geneb", *map(str, args)],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=timeout,
        check=False,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def check_mistake(outcome: Outcome, *words: str, code: int = 2) -> None:
    """A user's mistake: the right code, one clear message with these words, no traceback."""
    assert outcome.code == code, outcome.err
    assert "Traceback" not in outcome.err, outcome.err
    missing = [word for word in words if word not in outcome.err]
    assert not missing, f"{missing} not in: {outcome.err}"

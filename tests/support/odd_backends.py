"""Backends that meet trouble, for processes that import this; no test process does.

They fit as scikit-learn does, but for 30 rows: of the tasks that are probed, one alone has three
classes, and with ten of each its second fit. Each fit leaves a file named by its process in the
folder ``ODD_BACKENDS_FOLDER``.
"""

from __future__ import annotations

import functools
import os
import signal
import time
from pathlib import Path

from geneb.probing.backends import BACKENDS, SklearnBackend

_TROUBLED_ROWS = 30
_LONGEST_SECONDS = 300


class OddBackend(SklearnBackend):
    """Sends a signal to its process or to the one that started it, and goes on for long."""

    def __init__(self, number: int, *, to_parent: bool) -> None:
        super().__init__()
        self._number = number
        self._to_parent = to_parent

    def fit(self, rows, labels, parameters):
        (Path(os.environ["ODD_BACKENDS_FOLDER"]) / str(os.getpid())).touch()
        if len(rows) == _TROUBLED_ROWS:
            os.kill(os.getppid() if self._to_parent else os.getpid(), self._number)
            time.sleep(_LONGEST_SECONDS)
        return super().fit(rows, labels, parameters)


for _name, _number, _to_parent in (
    ("dies", signal.SIGKILL, False),
    ("is-interrupted", signal.SIGINT, False),
    ("is-terminated", signal.SIGTERM, False),
    ("terminates", signal.SIGTERM, True),
    ("kills", signal.SIGKILL, True),
):
    BACKENDS[_name] = functools.partial(OddBackend, _number, to_parent=_to_parent)

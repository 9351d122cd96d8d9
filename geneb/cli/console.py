"""What a person sees: tables, progress and complaints. The only module that imports rich.

It does so only where something is drawn: a command that says one line does not wait for it.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from geneb.base.canonical import pretty_json
from geneb.base.progress import Progress
from geneb.base.text import json_text, plain

_LINE_EVERY_SECONDS = 30.0


def complain(message: str) -> None:
    """Print an error to stderr, with whatever a stranger put into it made harmless."""
    lines = [plain(line, limit=2000) for line in message.split("\n")]
    sys.stderr.write("geneb: " + "\n".join(lines) + "\n")


def status(message: str) -> None:
    """Print one line about what is going on to stderr."""
    sys.stderr.write(plain(message, limit=2000) + "\n")


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numeric: Sequence[str] = (),
    title: str | None = None,
) -> None:
    """Print a table to stdout; without a terminal it is as wide as its content."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console = Console(
            file=sys.stdout, highlight=False, markup=False, emoji=False, width=100_000
        )
    grid = Table(
        show_header=any(columns),
        title=title and Text(plain(title)),
        title_justify="left",
        box=None,
        pad_edge=False,
    )
    for column in columns:
        grid.add_column(
            Text(column),
            justify="right" if column in numeric else "left",
            no_wrap=column in numeric,
            overflow="fold",
        )
    for row in rows:
        grid.add_row(*(Text(plain(cell)) for cell in row))
    console.print(grid)


def named_values(values: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """Yield each value of nested mappings with its name, such as ``letters, N``: a table's rows."""
    for key, value in values.items():
        name = f"{path}{key}"
        if isinstance(value, Mapping) and value:
            yield from named_values(value, f"{name}, ")
        elif isinstance(value, list | tuple):
            yield name, " ".join(map(str, value)) or "none"
        else:
            yield name, "none" if value is None or value == {} else str(value)


def terminal_width() -> int | None:
    """Return how many columns a table on stdout has room for; None where there is no terminal."""
    from rich.console import Console

    console = Console(file=sys.stdout)
    return console.width if console.is_terminal else None


class _TerminalProgress:
    def __init__(self, *, show_rate: bool) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        columns = [
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[unit]}"),
        ]
        if show_rate:
            columns.append(TextColumn("{task.fields[rate]}"))
        self._bar = Bar(*columns, TimeRemainingColumn(), console=Console(stderr=True))
        self._task = self._bar.add_task("", total=None, unit="", rate="")

    def start(self, total: int, unit: str) -> None:
        self._bar.update(self._task, total=total, unit=unit)
        self._bar.start()

    def advance(self, steps: int, what: str = "") -> None:
        self._bar.update(self._task, advance=steps, description=plain(what, limit=60))
        speed = self._bar.tasks[0].speed
        if speed:
            self._bar.update(self._task, rate=f"{speed:,.0f}/s")

    def say(self, message: str) -> None:
        from rich.text import Text

        self._bar.console.print(Text(plain(message, limit=2000)))

    def finish(self) -> None:
        self._bar.stop()


class _LineProgress:
    """One line every 30 seconds, for logs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._total, self._done, self._unit = 0, 0, ""
        self._began = self._last = time.monotonic()

    def start(self, total: int, unit: str) -> None:
        self._total, self._unit = total, unit
        self._began = self._last = time.monotonic()

    def advance(self, steps: int, what: str = "") -> None:
        with self._lock:
            self._done += steps
            now = time.monotonic()
            if now - self._last < _LINE_EVERY_SECONDS:
                return
            self._last = now
        rate = self._done / max(now - self._began, 1e-9)
        left = (self._total - self._done) / rate if rate else float("nan")
        status(
            f"{self._done:,} of {self._total:,} {self._unit}, {rate:,.0f}/s, "
            f"about {left:,.0f} s left, at {what}"
        )

    def say(self, message: str) -> None:
        status(message)

    def finish(self) -> None:
        """Nothing stays open."""


def progress(*, quiet: bool = False) -> Progress:
    """Return a display on stderr: a bar on a terminal, else a line every 30 seconds."""
    if quiet:
        from geneb.base.progress import Silent

        return Silent()
    return _TerminalProgress(show_rate=True) if sys.stderr.isatty() else _LineProgress()


def report(value: Any, rows: Sequence[tuple[str, str]], *, as_json: bool) -> None:
    """Print a result on stdout: as JSON, or as names and values."""
    if as_json:
        print_json(value)
    else:
        table(["", ""], rows)


def print_json(value: Any) -> None:
    """Print a value as JSON on stdout."""
    sys.stdout.write(json_text(pretty_json(value)))

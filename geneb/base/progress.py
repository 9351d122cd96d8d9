"""How long work tells how far it is; what is shown, and where, is decided by the command line."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Receives news of a run. All methods may be called from any thread."""

    def start(self, total: int, unit: str) -> None:
        """Begin: ``total`` steps of one ``unit`` (rows, fits) lie ahead."""

    def advance(self, steps: int, what: str = "") -> None:
        """``steps`` more are done; ``what`` is being worked on."""

    def say(self, message: str) -> None:
        """Pass on one sentence for the user."""

    def finish(self) -> None:
        """End the display."""


class Silent:
    """Shows nothing: for the library."""

    def start(self, total: int, unit: str) -> None:
        """Ignore."""

    def advance(self, steps: int, what: str = "") -> None:
        """Ignore."""

    def say(self, message: str) -> None:
        """Ignore."""

    def finish(self) -> None:
        """Ignore."""

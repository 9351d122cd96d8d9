"""Where the leaderboard's data lie: with the program, and in a checkout where they are edited."""

from __future__ import annotations

from pathlib import Path

import geneb.leaderboard
from geneb.errors import InputError


def shipped_folder(name: str) -> Path:
    """Return a folder of the leaderboard's data, such as ``submissions``; it may be absent."""
    return _room() / name


def shipped_sources() -> tuple[Path, Path | None]:
    """Return the folder of submissions and that of verification records.

    The latter is None where there is no such folder: an installation holds records only, and
    folders with nothing in them are not installed.
    """
    verifications = shipped_folder("verifications")
    return shipped_folder("submissions"), verifications if verifications.is_dir() else None


def checkout_folder(what: str) -> Path:
    """Return the leaderboard's folder in the checkout that the program runs from.

    Parameters
    ----------
    what
        What is to be written there, for the message.

    Raises
    ------
    InputError
        If the program is installed: then the folder belongs to the installation.
    """
    room = _room()
    if room.name != "leaderboard" or not (room.parent / "pyproject.toml").is_file():
        raise InputError(
            f"{what} cannot be written into an installed geneb",
            where=str(room),
            expected="a checkout, installed with `pip install -e .`",
            fix="give --out DIR",
        )
    return room


def _room() -> Path:
    # Resolved, because editable installations may reach the checkout by links.
    return Path(geneb.leaderboard.__file__).resolve().parent

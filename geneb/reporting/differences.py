"""Comparing built files with those that are there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from geneb.base.text import plain
from geneb.errors import Fault

_CONTEXT = 40


def file_differences(
    folder: Path, content: Mapping[str, bytes], *, exhaustive: bool = True
) -> list[Fault]:
    """Return one fault for each file that is missing, differs, or does not belong there.

    Parameters
    ----------
    content
        Path below the folder -> what must be there.
    exhaustive
        Whether nothing else may lie in the folder (hidden files aside).
    """
    faults = []
    for name, expected in content.items():
        path = folder / name
        try:
            found = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            faults.append(Fault(str(path), "this file is missing"))
            continue
        except OSError as error:  # a folder in its place, say: the other files are compared still
            faults.append(Fault(str(path), "this file cannot be read", found=error.strerror))
            continue
        if found != expected:
            faults.append(_first_difference(path, expected, found))
    if exhaustive and folder.is_dir():
        faults += [
            Fault(str(path), "no build writes this file")
            for path in sorted(folder.rglob("*"))
            if path.is_file()
            and not path.name.startswith(".")
            and path.relative_to(folder).as_posix() not in content
        ]
    return faults


def _first_difference(path: Path, expected: bytes, found: bytes) -> Fault:
    place = next(
        (at for at, pair in enumerate(zip(expected, found, strict=False)) if pair[0] != pair[1]),
        min(len(expected), len(found)),
    )
    line = expected.count(b"\n", 0, place) + 1
    return Fault(
        f"{path}, line {line}, byte {place}",
        "this file differs from what is built",
        expected=_around(expected, place),
        found=_around(found, place),
    )


def _around(data: bytes, place: int) -> str:
    """Return what stands about a byte; the end of the file where there is no more."""
    part = data[max(0, place - _CONTEXT) : place + _CONTEXT]
    text = plain(part.decode("utf-8", errors="replace"))
    return text if place < len(data) else f"{text} (the file ends)"

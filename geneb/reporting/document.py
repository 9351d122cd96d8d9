"""A stranger's JSON document, read so that all that is wrong with it can be listed at once."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from geneb.base.files import check_json_size
from geneb.base.text import plain
from geneb.errors import Fault

# Python refuses integers of very many digits with an error of its own; nothing here needs more
# than what a 64-bit integer holds, so longer ones become floats, and are out of range as such.
_INTEGER_DIGITS = 18
_SHOWN = 80
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SURROGATES = re.compile("[\ud800-\udfff]")


def json_path(parts: Sequence[str | int]) -> str:
    """Return a JSON path; keys that are not plain words stand in brackets, made harmless.

    Examples
    --------
    >>> json_path(["results", "full", "a.b", 0])
    '$.results.full["a.b"][0]'
    """
    path = "$"
    for part in parts:
        if isinstance(part, int):
            path += f"[{part}]"
        elif len(part) <= _SHOWN * 2 and _PLAIN_KEY.fullmatch(part):
            path += f".{part}"
        else:
            path += f"[{show(part)}]"
    return path


def show(value: Any) -> str:
    """Return a value of any kind as one short line of printable characters."""
    if isinstance(value, str):
        return '"' + plain(value, limit=_SHOWN) + '"'
    if isinstance(value, dict):
        return f"an object with {len(value):,} keys"
    if isinstance(value, list):
        return f"an array of {len(value):,}"
    return json.dumps(value)


def parse_document(data: bytes) -> tuple[Any, list[Fault]]:
    """Parse a document as far as that goes.

    Returns
    -------
    value
        None if it cannot be parsed. NaN, infinities and numbers too large for a float are kept
        as floats that are not finite, so that whoever knows what belongs there refuses them. Of
        a key that stands several times the last value is kept. Halves of surrogate pairs are
        replaced by their escapes.
    faults
        With JSON paths: what `geneb.base.files.parse_json` refuses, but for such numbers.
    """
    try:
        check_json_size(data)
        value = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_Pairs,
            parse_constant=float,
            parse_int=_parse_integer,
        )
    except UnicodeDecodeError as error:
        return None, [_unreadable(f"not UTF-8 at byte {error.start:,}")]
    except (ValueError, RecursionError) as error:
        return None, [_unreadable(plain(str(error), limit=200))]
    faults: list[Fault] = []
    return _settle(value, (), faults), faults


class _Pairs(list):
    """An object's keys and values as they stand, so that repeated keys can be seen."""


def _parse_integer(text: str) -> int | float:
    return int(text) if len(text) <= _INTEGER_DIGITS else float(text)


def _unreadable(found: str) -> Fault:
    return Fault(
        "$",
        "this is not JSON that can be used",
        expected="JSON in UTF-8, without a byte-order mark",
        found=found,
        fix="write the file with `geneb submission pack`, or save it again as plain UTF-8",
    )


def _settle(value: Any, path: tuple[str | int, ...], faults: list[Fault]) -> Any:
    """Return a value with plain dicts and encodable text; what was wrong goes to the faults."""
    if isinstance(value, _Pairs):
        found: dict[str, Any] = {}
        for key, inner in value:
            name = _settle_text(key, (*path, key), faults)
            if name in found:
                faults.append(_repeated((*path, name)))
            # Nearly all values are numbers, which have nothing to settle.
            number = isinstance(inner, float)
            found[name] = inner if number else _settle(inner, (*path, name), faults)
        return found
    if isinstance(value, list):
        return [_settle(inner, (*path, place), faults) for place, inner in enumerate(value)]
    return _settle_text(value, path, faults) if isinstance(value, str) else value


def _settle_text(text: str, path: tuple[str | int, ...], faults: list[Fault]) -> str:
    if not _SURROGATES.search(text):
        return text
    faults.append(
        Fault(
            json_path(path),
            "half of a surrogate pair is no character",
            found=show(text),
            fix="write the character itself, or both halves",
        )
    )
    return _SURROGATES.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


def _repeated(path: tuple[str | int, ...]) -> Fault:
    return Fault(
        json_path(path),
        "this key stands more than once",
        fix="keep the one that is meant: readers differ in which they take",
    )

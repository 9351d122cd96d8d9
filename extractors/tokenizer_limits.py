"""What a stranger's ``tokenizer.json`` must not do: choose at random, swell, never end."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from geneb.base.text import plain
from geneb.errors import InputError

MOST_GROWTH = 100
"""Letters that normalisation may make of one."""

_LONGEST_PATTERN = 10_000
_ESCAPED = re.compile(r"\\.", re.DOTALL)
_CLASS = re.compile(r"\[\^?\]?[^\]]*\]")
_INNERMOST = re.compile(r"\(([^()]*)\)([*+{]?)")
_REFERENCE = re.compile(r"\\[1-9kg]")


def check_tokenizer(backend: Any, where: str) -> None:
    """Refuse what no published tokenizer does and what would harm.

    Parameters
    ----------
    backend
        A ``tokenizers.Tokenizer``.
    where
        For messages: its file.

    Raises
    ------
    InputError
        If it leaves out merges at random, makes a text much longer, or has a regular expression
        that may take a time without bounds.
    """
    if getattr(backend.model, "dropout", None):
        raise InputError(
            "this tokenizer chooses at random, so that no vector could be made again",
            where=f"{where}, model, dropout",
            fix="set it to null, which is what models are run with",
        )
    parts = [
        part
        for step in (backend.normalizer, backend.pre_tokenizer)
        if step is not None
        for part in _parts(json.loads(step.__getstate__()))
    ]
    inserted = (part.get("content", part.get("prepend", "")) for part in parts)
    growth = math.prod(1 + len(text) for text in inserted)
    if growth > MOST_GROWTH:
        raise InputError(
            "this tokenizer makes a text much longer before it is cut into tokens",
            where=f"{where}, normalizer",
            expected=f"at most {MOST_GROWTH} letters for one",
            found=f"up to {growth:,}" if growth < 1e12 else "more than memory holds",
        )
    for part in parts:
        pattern = part.get("pattern")
        if isinstance(pattern, dict) and _may_not_end(pattern.get("Regex", "")):
            raise InputError(
                "this tokenizer has a regular expression that may take a time without bounds",
                where=where,
                expected=f"at most {_LONGEST_PATTERN:,} characters, no repetition or choice within "
                "a repeated group, and no back-reference",
                found=plain(pattern["Regex"]),
            )


def _parts(step: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Go through a normalizer or pre-tokenizer and what it is a sequence of."""
    yield step
    for inner in step.get("normalizers", step.get("pretokenizers", ())):
        yield from _parts(inner)


def _may_not_end(pattern: str) -> bool:
    """Return whether a pattern is of those whose time grows exponentially with the text.

    It may be wrong about a harmless one; what is published has none of this kind.
    """
    if len(pattern) > _LONGEST_PATTERN or _REFERENCE.search(pattern.replace(r"\\", "")):
        return True
    rest = _CLASS.sub("x", _ESCAPED.sub("x", pattern))
    while group := _INNERMOST.search(rest):
        body, repeated = group.groups()
        varies = re.search(r"[*+{|]", body) is not None
        if repeated and varies:
            return True
        # A group that is itself repeated, or holds something that is, is so for those around it.
        mark = "x*" if varies else "x"
        rest = rest[: group.start()] + mark + repeated + rest[group.end() :]
    return False

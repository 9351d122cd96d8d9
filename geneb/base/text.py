"""A stranger's text, made safe for the place where it is shown."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

# Control, format (direction marks), surrogate, private-use and unassigned characters, and the
# two line separators: none of them may reach a terminal or a table cell.
_BAD_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    # In braces, because at the start of a row they are taken for an argument of the row before.
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    **{char: f"\\{char}" for char in "{}$&#_%"},
}
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+!|<>~&-])")


def plain(text: str, limit: int = 200) -> str:
    """Return one line of printable characters; everything else is shown as an escape.

    Parameters
    ----------
    limit
        Longer text is cut and ends in an ellipsis.
    """
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    return "".join(
        char.encode("unicode_escape").decode("ascii")
        if unicodedata.category(char) in _BAD_CATEGORIES
        else char
        for char in cut
    )


def json_text(text: str) -> str:
    """Return JSON text with escapes for all that `plain` escapes; its value stays the same."""
    return "".join(
        _json_escape(char)
        if char != "\n" and unicodedata.category(char) in _BAD_CATEGORIES
        else char
        for char in text
    )


def _json_escape(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[first : first + 2].hex()}" for first in range(0, len(units), 2))


def name_some(names: Sequence[str], shown: int = 8) -> str:
    """Return the first names, and how many more there are."""
    more = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {more:,} more" if more > 0 else "")


def markdown(text: str, limit: int = 200) -> str:
    """Return text that Markdown shows letter by letter, also inside a table cell."""
    return _MARKDOWN.sub(r"\\\1", plain(text, limit))


def latex(text: str, limit: int = 200) -> str:
    """Return text that LaTeX shows letter by letter, also inside a table's cell."""
    return "".join(_LATEX.get(char, char) for char in plain(text, limit))


def csv_cell(text: str) -> str:
    """Return text that a spreadsheet does not take for a formula."""
    return "'" + text if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text

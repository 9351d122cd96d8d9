"""A stranger's text, made safe for where it is shown."""

from __future__ import annotations

import json
import re
import sys
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geneb.base.text import csv_cell, json_text, markdown, plain

ANY = st.text(st.characters(codec=None), max_size=60)
HARMFUL = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def is_harmless(text: str) -> bool:
    return not any(unicodedata.category(char) in HARMFUL for char in text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("kmer4 (k = 4), é ß 漢 🧬", "kmer4 (k = 4), é ß 漢 🧬"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("a\nb\rc\td", "a\\nb\\rc\\td"),
        ("\x9b2J\x7f\x00", "\\x9b2J\\x7f\\x00"),
        ("\u202eabc\u2066", "\\u202eabc\\u2066"),
        ("a\u200bb\ufeffc\u00ad", "a\\u200bb\\ufeffc\\xad"),
        ("\u2028\u2029", "\\u2028\\u2029"),
        ("\ud800\udcff", "\\ud800\\udcff"),
        ("\U000e0041\ue000", "\\U000e0041\\ue000"),
        ("", ""),
    ],
)
def test_plain_text_shows_what_is_there(text, shown):
    """Letters stay; control characters, direction marks, halves of characters are escapes."""
    assert shown == plain(text)


@settings(deadline=None)
@given(ANY)
def test_plain_text_is_one_harmless_line(text):
    """Whatever came in; doing it twice changes nothing; it can be written in UTF-8."""
    shown = plain(text, limit=10_000)

    assert is_harmless(shown)
    assert shown == plain(shown, limit=10_000)
    assert len(shown.splitlines()) <= 1
    shown.encode("utf-8")


def test_every_harmful_character_is_escaped():
    """All that Unicode defines: nothing that moves a cursor or turns text around gets by."""
    hidden = "".join(
        chr(code)
        for code in range(sys.maxunicode + 1)
        if not chr(code).isprintable()
        and unicodedata.category(chr(code)) not in {"Zs", "Cn", "Co"}  # nothing shown, not defined
    )

    assert len(hidden) > 2000
    assert plain(hidden, limit=len(hidden)).isascii()


def test_long_text_is_cut():
    """At its limit, before escapes make it longer; an ellipsis says so."""
    assert plain("x" * 200) == "x" * 200
    assert plain("x" * 201) == "x" * 199 + "…"
    assert plain("abcdef", limit=3) == "ab…"


@settings(deadline=None)
@given(ANY)
def test_json_text_keeps_the_value_and_hides_nothing(text):
    """For terminals: the same JSON, with escapes where `plain` has them."""
    value = {text: [text, 1]}

    shown = json_text(json.dumps(value, indent=2, ensure_ascii=False))

    assert is_harmless(shown.replace("\n", ""))
    assert value == json.loads(shown) or json.dumps(value) == json.dumps(json.loads(shown))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a|b", "a\\|b"),
        ("[x](javascript:alert)", "\\[x\\]\\(javascript:alert\\)"),
        ("<script>", "\\<script\\>"),
        ("*_`#~", "\\*\\_\\`\\#\\~"),
        ("a\nb", "a\\\\nb"),
    ],
)
def test_markdown_shows_letters(text, shown):
    """No link, no table cell, no tag and no heading comes out of a name."""
    assert shown == markdown(text).replace("\\\\n", "\\\\n")


@settings(deadline=None)
@given(ANY)
def test_markdown_escapes_every_mark(text):
    """Each mark has a backslash of its own before it."""
    bare = re.sub(r"\\[\\`*_{}\[\]()#+!|<>~&-]", "", markdown(text, limit=10_000))

    assert not re.search(r"[\\`*_{}\[\]()#+!|<>~&-]", bare)


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM", "'@SUM"),
        ("\t=1", "'\t=1"),
        ("\r=1", "'\r=1"),
        ("a=1", "a=1"),
        ("", ""),
    ],
)
def test_a_csv_cell_is_no_formula(text, cell):
    """What a spreadsheet would compute becomes text."""
    assert cell == csv_cell(text)

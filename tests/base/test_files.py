"""Names, files written whole, and a stranger's JSON."""

from __future__ import annotations

import json
import math
import os
import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from geneb.base import files
from geneb.base.files import (
    MAX_JSON_DEPTH,
    MAX_NAME,
    atomic_write,
    check_name,
    parse_json,
    read_bytes,
    read_json,
)
from geneb.errors import GenebError, InputError, NotFoundError

# -- names -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a", "9", "demo_1.v2+x-y", "x" * MAX_NAME, "a..b", "con", "a.b"])
def test_ordinary_names_are_taken(name):
    """Unchanged."""
    assert name == check_name(name, "task")


@pytest.mark.parametrize(
    "name",
    [
        "", ".", "..", "../x", "a/b", "a\\b", "/a", ".a", "-a", "_a", "a.", "a b", "a\n", "\na",
        "a\x00", "\x1b[31m", "é", "a\u202eb", "\ud800", "x" * (MAX_NAME + 1), "a.partial", "٣",
    ],
)  # fmt: skip
def test_other_names_are_refused(name):
    """What could leave a folder, hide, deceive a terminal or differ between file systems."""
    with pytest.raises(InputError, match="cannot be the name of a task") as caught:
        check_name(name, "task")

    assert str(caught.value).replace("\n", "").isprintable()


@settings(deadline=None)
@given(st.text(max_size=200))
@example("a/../b")
def test_a_name_is_one_harmless_part_of_a_path(name):
    """Whatever passes stays below its folder and shows as it is."""
    try:
        check_name(name, "task")
    except InputError:
        return
    assert name.isascii()
    assert name.isprintable()
    assert os.path.normpath(f"folder/{name}") == f"folder/{name}"


# -- files written whole -----------------------------------------------------------------------


@pytest.mark.parametrize("data", ["é\n", b"\x00\xff", "", b""])
def test_a_file_is_written_whole(tmp_path, data):
    """Text in UTF-8, bytes as they are; what was there is replaced; nothing is left over."""
    path = tmp_path / "file"
    path.write_text("old and longer")

    atomic_write(path, data)

    assert (data.encode("utf-8") if isinstance(data, str) else data) == path.read_bytes()
    assert [path] == list(tmp_path.iterdir())


@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_a_write_that_fails_changes_nothing(tmp_path, monkeypatch, moment):
    """A full disk, or an interrupt: the old file stays, the new one goes away."""
    path = tmp_path / "file"
    path.write_text("old")

    def fail(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(os if moment == "fsync" else Path, moment, fail)
    with pytest.raises(KeyboardInterrupt):
        atomic_write(path, "new")

    assert path.read_text() == "old"
    assert [path] == list(tmp_path.iterdir())


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    """Content first, then the name, then the folder: else a power cut leaves an empty file."""
    steps = []
    fsync, replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (steps.append("fsync"), fsync(handle)))
    monkeypatch.setattr(Path, "replace", lambda one, two: (steps.append("name"), replace(one, two)))

    atomic_write(tmp_path / "file", "new")

    assert steps == ["fsync", "name", "fsync"]


# -- files of strangers ------------------------------------------------------------------------


def test_a_file_is_read_up_to_its_limit(tmp_path):
    """Exactly as long as allowed is allowed; one byte more is not."""
    path = tmp_path / "file"
    path.write_bytes(b"12345")

    assert read_bytes(path, 5) == b"12345"
    with pytest.raises(InputError, match="too large") as caught:
        read_bytes(path, 4)
    assert "5 bytes" in str(caught.value)


def test_a_huge_file_is_refused_unread(tmp_path):
    """A sparse file of 1 TB."""
    with (tmp_path / "file").open("wb") as stream:
        stream.truncate(1 << 40)

    with pytest.raises(InputError, match="too large"):
        read_bytes(tmp_path / "file", (1 << 40) - 1)


def test_what_is_no_file_is_refused(tmp_path):
    """Folders, links, pipes, devices and nothing; none of them makes anybody wait."""
    (tmp_path / "target").write_text("{}")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    os.mkfifo(tmp_path / "pipe")

    for name in ("link", "dangling", "pipe", "target/below", "."):
        with pytest.raises(InputError):
            read_bytes(tmp_path / name, 100)
    with pytest.raises(InputError, match="not a regular file"):
        read_bytes(Path("/dev/zero"), 100)
    with pytest.raises(NotFoundError):
        read_bytes(tmp_path / "nothing", 100)


def test_no_file_stays_open(tmp_path):
    """Refused or read, its handle is closed."""
    (tmp_path / "file").write_text("{}")
    handles = Path("/proc/self/fd")
    if not handles.is_dir():
        pytest.skip("this system does not tell which files are open")
    before = len(list(handles.iterdir()))

    for _ in range(5):
        read_bytes(tmp_path / "file", 100)
        for path, limit in ((tmp_path, 100), (tmp_path / "file", 1)):
            with pytest.raises(InputError):
                read_bytes(path, limit)

    assert before == len(list(handles.iterdir()))


# -- JSON of strangers -------------------------------------------------------------------------

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(deadline=None)
@given(JSON, st.booleans())
@example({"\\": '\\"', '"[[[': "]]]\\\\"}, False)
@example(["\U0001f9ec"], True)
def test_good_json_is_read_as_it_is(value, escaped):
    """Also strings full of brackets, quotes and backslashes, and escaped pairs of surrogates."""
    data = json.dumps(value, ensure_ascii=escaped).encode("utf-8")

    assert value == parse_json(data, "here")


@settings(deadline=None)
@given(st.binary(max_size=60) | st.text(alphabet='[]{}",:\\u0d8 1eE.-tfn', max_size=40))
@example('"\\"')
@example("[" * 33)
def test_anything_else_is_one_error_or_plain_json(data):
    """No bytes do more than be refused; what is read can be written in UTF-8 again."""
    data = data if isinstance(data, bytes) else data.encode("utf-8")
    try:
        value = parse_json(data, "here")
    except InputError as error:
        assert str(error).startswith("here: ")
        assert str(error).replace("\n", "").isprintable()
    else:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": 1, "a": 1}', "the key 'a' stands twice"),
        ('[{"b": {"a": 1, "c": 2, "a": 3}}]', "the key 'a' stands twice"),
        ("[NaN]", "NaN is not a number"),
        ("[Infinity]", "Infinity is not a number"),
        ("[-Infinity]", "-Infinity is not a number"),
        ("[1e999]", "1e999 is too large"),
        ("[-1e999]", "-1e999 is too large"),
        ("[" + "9" * 5000 + "]", "Exceeds the limit"),
        ('["\\ud800"]', "surrogates not allowed"),
        ('{"\\udfff": 1}', "surrogates not allowed"),
        ("\ufeff{}", "BOM"),
        ("{} {}", "Extra data"),
        ("", "Expecting value"),
        ('{"\x1b": 1}', "Invalid control character"),
        ("{'a': 1}", "double quotes"),
    ],
)
def test_json_with_traps_is_refused(text, words):
    """Each for its own reason."""
    with pytest.raises(InputError, match=re.escape(words)):
        parse_json(text.encode("utf-8"), "here")


def test_json_is_utf_8():
    """No other encoding is guessed."""
    for encoding in ("utf-16", "utf-32", "latin-1"):
        with pytest.raises(InputError):
            parse_json('{"é": 1}'.encode(encoding), "here")


@pytest.mark.parametrize("pair", ["[]", "{}"])
def test_depth_is_counted_outside_strings(pair):
    """To the level: in lists, in objects, and never in strings."""
    before, after = pair if pair == "[]" else ('{"a":', "}")

    parse_json((before * MAX_JSON_DEPTH + "1" + after * MAX_JSON_DEPTH).encode(), "here")
    parse_json(json.dumps(['\\"' + pair[0] * 100 + "\\"]).encode(), "here")
    with pytest.raises(InputError, match="nested deeper"):
        parse_json((before * (MAX_JSON_DEPTH + 1) + "1").encode(), "here")
    with pytest.raises(InputError, match="nested deeper"):
        parse_json(b'["\\\\",' + before.encode() * MAX_JSON_DEPTH, "here")


@pytest.mark.parametrize(
    "data",
    [b'"' + b'\\"' * (1 << 20), b'"' * (1 << 20), b"\\" * (1 << 20), b'"\\' * (1 << 20)],
    ids=["quotes escaped", "quotes", "backslashes", "both"],
)
def test_unclosed_strings_take_no_longer_than_closed_ones(data):
    """Looking for each string's end anew would take hours."""
    with pytest.raises(InputError):
        parse_json(data, "here")


def test_very_many_values_are_refused(monkeypatch):
    """Counted outside of escapes: what a value costs has nothing to do with its bytes."""
    monkeypatch.setattr(files, "MAX_JSON_TOKENS", 10)
    assert parse_json(b"[[],[],[0]]", "here") == [[], [], [0]]
    assert parse_json(b'["\\"\\"\\"\\"\\"\\"\\"\\"\\"\\""]', "here") == ['"' * 10]

    for data in (b"[[],[],[],[]]", b"[0,0,0,0,0,0,0,0,0,0,0]", b'["","","","",""]'):
        with pytest.raises(InputError, match="more than 10 quotes"):
            parse_json(data, "here")


def test_read_json_reads_files(tmp_path):
    """With the cap of its caller."""
    path = tmp_path / "file.json"
    path.write_text('{"a": [1.5, null]}')

    assert read_json(path) == {"a": [1.5, None]}
    with pytest.raises(GenebError, match="too large"):
        read_json(path, limit=3)


def test_numbers_keep_their_kinds():
    """1 and 1.0 differ, small numbers may vanish, none becomes infinite."""
    one, real, tiny = parse_json(b"[1, 1.0, 1e-999]", "here")

    assert (int, float) == (type(one), type(real))
    assert math.copysign(1, tiny) == 1
    assert tiny == 0

"""Digests of large files, remembered; whatever is in the file of digests, they are right."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from geneb.base import cache
from geneb.base.cache import DIGESTS_FILE, SMALLEST_REMEMBERED, cache_folder, remembered_sha256

CONTENT = b"x" * SMALLEST_REMEMBERED
RIGHT = hashlib.sha256(CONTENT).hexdigest()
MARK = "f" * 64


@pytest.fixture(autouse=True)
def digests(tmp_path, monkeypatch) -> Path:
    """The file of digests, where files need not be two seconds old."""
    monkeypatch.setenv("GENEB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_SETTLED_NS", -(10**12))
    return tmp_path / "cache" / DIGESTS_FILE


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "weights.bin"
    path.write_bytes(CONTENT)
    return path


def mark(digests: Path) -> None:
    """Put another digest into every entry: whoever returns it has not read the file."""
    entries = json.loads(digests.read_bytes())
    digests.write_text(json.dumps({key: [*value[:-1], MARK] for key, value in entries.items()}))


def test_a_file_is_read_once(digests, file):
    """The second time its digest is the one that was written down."""
    assert remembered_sha256(file) == RIGHT
    mark(digests)

    assert remembered_sha256(file) == MARK


def test_a_link_is_the_file_behind_it(digests, file, tmp_path):
    """As in the hub's cache, where every name is a link."""
    (tmp_path / "link").symlink_to(file)
    remembered_sha256(file)
    mark(digests)

    assert remembered_sha256(tmp_path / "link") == MARK


def test_changed_content_is_read_again(digests, file):
    """Of the same size, and with its time of change set back."""
    before = file.stat()
    remembered_sha256(file)
    mark(digests)
    file.write_bytes(b"y" * len(CONTENT))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert hashlib.sha256(file.read_bytes()).hexdigest() == remembered_sha256(file)


def test_a_file_in_another_s_place_is_read(digests, file, tmp_path):
    """A rename leaves size and time as they are."""
    remembered_sha256(file)
    mark(digests)
    other = tmp_path / "other"
    other.write_bytes(b"z" * len(CONTENT))
    other.replace(file)

    assert hashlib.sha256(file.read_bytes()).hexdigest() == remembered_sha256(file)


def test_a_file_that_changed_just_now_is_not_remembered(digests, file, monkeypatch):
    """It may change once more within one tick of the clock."""
    monkeypatch.setattr(cache, "_SETTLED_NS", 10**15)

    assert remembered_sha256(file) == RIGHT
    assert not digests.exists()


def test_a_small_file_is_not_remembered(digests, file):
    """It is read faster than it is looked up."""
    file.write_bytes(CONTENT[1:])

    assert hashlib.sha256(CONTENT[1:]).hexdigest() == remembered_sha256(file)
    assert not digests.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[]", b"null", b'{"a": NaN}', b"[" * 100_000, b"\xff\xfe", b'{"a": 1, "a": 2}',
    ],
)  # fmt: skip
def test_a_damaged_file_of_digests_is_written_anew(digests, file, content):
    """And breaks nothing."""
    digests.parent.mkdir()
    digests.write_bytes(content)
    digests.chmod(0o600)

    assert remembered_sha256(file) == RIGHT
    assert json.loads(digests.read_bytes())[str(file)][-1] == RIGHT


@pytest.mark.parametrize(
    "entry", [None, 7, [], [1, 2], [0] * 6, [None] * 5 + ["short"], [{}] * 5 + ["g" * 64], "a" * 6]
)
def test_a_damaged_entry_is_made_again(digests, file, entry):
    """Whatever stands in the place of a digest."""
    digests.parent.mkdir()
    digests.write_text(json.dumps({str(file): entry}))
    digests.chmod(0o600)

    assert remembered_sha256(file) == RIGHT


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_what_others_could_write_is_not_believed(digests, file, mode):
    """A digest that somebody else wrote could hide that weights were exchanged."""
    remembered_sha256(file)
    mark(digests)
    digests.chmod(mode)

    assert remembered_sha256(file) == RIGHT


def test_a_link_is_no_file_of_digests(digests, file, tmp_path):
    """Nor is a folder: both are left, and nothing is remembered."""
    remembered_sha256(file)
    mark(digests)
    digests.rename(tmp_path / "elsewhere")
    digests.symlink_to(tmp_path / "elsewhere")

    assert remembered_sha256(file) == RIGHT

    digests.unlink()
    digests.mkdir()

    assert remembered_sha256(file) == RIGHT


def test_a_cache_that_cannot_be_made_is_no_matter(file, monkeypatch):
    """A file stands where the folder would be."""
    monkeypatch.setenv("GENEB_CACHE", str(file / "cache"))

    assert remembered_sha256(file) == RIGHT


def test_old_entries_give_way(digests, tmp_path, monkeypatch):
    """The file never grows without end."""
    monkeypatch.setattr(cache, "_MOST_REMEMBERED", 2)
    for name in "abc":
        (tmp_path / name).write_bytes(CONTENT)
        remembered_sha256(tmp_path / name)

    assert [str(tmp_path / name) for name in "bc"] == list(json.loads(digests.read_bytes()))


def test_a_file_that_is_not_there_is_said_so(tmp_path):
    with pytest.raises(FileNotFoundError):
        remembered_sha256(tmp_path / "nothing")


def test_the_folder_is_the_user_s_unless_one_is_named(monkeypatch, tmp_path):
    """``GENEB_CACHE``, else the platform's."""
    assert cache_folder() == tmp_path / "cache"

    monkeypatch.delenv("GENEB_CACHE")
    monkeypatch.setattr(cache.sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert cache_folder() == Path("/caches/geneb")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/somebody")
    assert cache_folder() == Path("/home/somebody/.cache/geneb")
    monkeypatch.setattr(cache.sys, "platform", "darwin")
    assert cache_folder() == Path("/home/somebody/Library/Caches/geneb")

"""The hub: which files are needed, where its cache is, and comparing what was fetched."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fake_hub import serve_hub

from geneb.errors import MissingExtraError, WorkError
from geneb.extractors.hub import (
    cached_snapshot,
    check_file,
    fetch_snapshot,
    hub_cache,
    needed_files,
)
from geneb.extractors.weights import PublishedFile

COMMIT = "0123456789abcdef0123456789abcdef01234567"

# Fetches what stands in the first argument, and prints where each file is.
FETCH = """
import json, sys
from geneb.extractors.hub import fetch_snapshot
from geneb.extractors.weights import PublishedFile
stated = {name: PublishedFile(**file) for name, file in json.loads(sys.argv[2]).items()}
found = fetch_snapshot("some/model", sys.argv[1], stated, lambda line: print(line, file=sys.stderr))
print(json.dumps({name: str(path) for name, path in found.items()}))
"""


def stated(content: bytes) -> PublishedFile:
    return PublishedFile(bytes=len(content), sha256=hashlib.sha256(content).hexdigest())


@pytest.mark.parametrize(
    ("names", "needed"),
    [
        (
            ["model.safetensors", "pytorch_model.bin", "config.json", "README", "tokenizer.json"],
            ["config.json", "model.safetensors", "tokenizer.json"],
        ),
        (
            ["pytorch_model.bin", "optimizer.bin", "training_args.bin", "tf_model.h5", "vocab.txt"],
            ["pytorch_model.bin", "vocab.txt"],
        ),
        (
            ["pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin",
             "pytorch_model.bin.index.json", "modeling.py", "scheduler.pt"],
            ["pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin",
             "pytorch_model.bin.index.json"],
        ),
        (["config.json", "sub/model.safetensors"], ["config.json"]),
        ([], []),
    ],
)  # fmt: skip
def test_what_a_model_is_run_from(names, needed):
    """Safetensors before torch files; no code, no other pickle, nothing from folders below."""
    assert needed == needed_files(names)


@given(st.lists(st.text(max_size=40)))
def test_no_name_leads_out_of_the_folder(names):
    """Whatever a repository's files are called."""
    for name in needed_files([*names, *(f"../{name}" for name in names)]):
        assert "/" not in name
        assert not name.startswith(".")
        assert not name.endswith((".py", ".pt", ".pkl"))


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"HF_HOME": "/somewhere/hf"},
        {"XDG_CACHE_HOME": "/somewhere/cache"},
        {"HF_HUB_CACHE": "/somewhere/hub", "HF_HOME": "/somewhere/hf"},
        {"HF_HOME": "~/hf"},
    ],
)
def test_the_cache_is_where_the_library_looks(monkeypatch, variables):
    """Without the library; held to what it says itself."""
    names = ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    done = subprocess.run(
        [sys.executable, "-c", "from huggingface_hub.constants import *; print(HF_HUB_CACHE)"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert Path(done.stdout.strip()) == hub_cache()


def test_files_that_hold_are_kept(tmp_path):
    """Digests are compared on the way; what was there is found again without asking."""
    files = {"config.json": b"{}", "model.safetensors": b"weights"}
    known = {name: stated(content).model_dump() for name, content in files.items()}
    with serve_hub("some/model", COMMIT, files) as hub:

        def fetch():
            return subprocess.run(
                [sys.executable, "-c", FETCH, COMMIT, json.dumps(known)],
                env={
                    **os.environ,
                    "HF_ENDPOINT": hub.url,
                    "HF_HOME": str(tmp_path),
                    "HF_HUB_CACHE": str(tmp_path / "hub"),
                    "HF_HUB_OFFLINE": "0",
                },
                capture_output=True,
                text=True,
                check=False,
            )

        done = fetch()
    again = fetch()  # nothing answers any more

    assert done.returncode == 0, done.stderr
    assert (again.returncode, again.stdout) == (0, done.stdout), again.stderr
    found = {name: Path(path) for name, path in json.loads(done.stdout).items()}
    assert files == {name: path.read_bytes() for name, path in found.items()}
    assert "file 2 of 2: model.safetensors" in done.stderr
    assert found["config.json"].parent == (
        tmp_path / "hub" / "models--some--model" / "snapshots" / COMMIT
    )


def test_the_library_is_an_extra(monkeypatch):
    """Its absence is one message, with the command that brings it."""
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)

    with pytest.raises(MissingExtraError, match="to fetch weights") as caught:
        fetch_snapshot("some/model", COMMIT, {}, print)

    assert "geneb[hub]" in caught.value.fix


def test_a_snapshot_that_is_not_there_is_none(tmp_path, monkeypatch):
    """No folder is made by looking."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))

    assert cached_snapshot("some/model", COMMIT) is None
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("content", "size"), [(b"other bytes", 11), (b"another size", 12)])
def test_a_file_that_is_another_is_removed(tmp_path, content, size):
    """The content behind a link of the cache too, so that the next fetch brings it anew."""
    blob, link = tmp_path / "blob", tmp_path / "config.json"
    blob.write_bytes(content)
    link.symlink_to(blob)

    with pytest.raises(WorkError, match=r"config\.json is not the file") as caught:
        check_file(link, stated(b"right bytes"), "some/model")

    assert f"{size} bytes" in caught.value.found
    assert list(tmp_path.iterdir()) == []

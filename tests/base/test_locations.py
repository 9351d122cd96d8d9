"""What is told to others of where something lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from geneb.base.locations import shareable


@pytest.mark.parametrize(
    ("location", "told"),
    [
        (Path("/home/somebody/secret project/weights.safetensors"), "weights.safetensors"),
        (Path("folder/store.zarr/"), "store.zarr"),
        (Path("dir/mine.py:MyModel"), "mine.py:MyModel"),
        ("/home/somebody/weights", "weights"),
        ("~/weights", "weights"),
        ("../weights", "weights"),
        ("a/b/c.bin", "c.bin"),
        ("organisation/model-500m", "organisation/model-500m"),
        ("model", "model"),
        ("https://user:word@host.example:8080/a/b?token=1#x", "https://host.example:8080/a/b"),
        ("s3://bucket/key", "s3://bucket/key"),
        ("s3://key:secret@bucket/model", "s3://bucket/model"),
        ("file:///home/somebody/weights.bin", "weights.bin"),
        ("https://[user:word@host/a", "https://"),
        ("hf://datasets/owner/name", "hf://datasets/owner/name"),
    ],
)
def test_only_names_are_told(location, told):
    """Base names of paths; addresses without user, password, query and fragment; hub ids whole."""
    assert shareable(location) == told


def test_a_file_that_looks_like_a_hub_id_is_a_file(tmp_path, monkeypatch):
    """``folder/model``, and it is there."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "model").touch()

    assert shareable("folder/model") == "model"


def test_here_has_a_name(tmp_path, monkeypatch):
    """``.`` is called what its folder is called."""
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path / "data")

    assert shareable(Path()) == "data"

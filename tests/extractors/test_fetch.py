"""Fetching weights that a package brings: through pip, from a folder, compared with a digest."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from geneb.errors import InputError, NotFoundError, WorkError
from geneb.extractors import fetch, weights
from geneb.extractors.fetch import fetch_weights
from geneb.extractors.weights import PublishedFile, locate, published_weights

WHEEL = "cispliceai-1.2.2-py3-none-any.whl"


@pytest.fixture
def wheel(tmp_path, monkeypatch) -> Path:
    """A wheel of that name in the only folder that pip looks into; caches are empty."""
    path = tmp_path / "index" / WHEEL
    path.parent.mkdir()
    info = "cispliceai-1.2.2.dist-info"
    with zipfile.ZipFile(path, "w") as content:
        content.writestr("cispliceai/data/CI-SpliceAI.pb", b"graph")
        content.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: cispliceai\nVersion: 1.2.2\n"
        )
        content.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        content.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(path.parent))
    monkeypatch.setenv("GENEB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    return path


def test_a_package_with_the_right_digest_is_kept(wheel, monkeypatch):
    """Where `locate` finds it; pip is told nothing else."""
    content = wheel.read_bytes()
    file = PublishedFile(bytes=len(content), sha256=hashlib.sha256(content).hexdigest())
    known = published_weights("ci-spliceai").model_copy(update={"files": {WHEEL: file}})
    for module in (fetch, weights):
        monkeypatch.setattr(module, "published_weights", lambda _: known)
    said: list[str] = []

    found = fetch_weights("ci-spliceai", say=said.append)

    assert found.folder == locate("ci-spliceai")
    assert (found.folder / WHEEL).read_bytes() == content
    assert (found.source, found.files, found.compared) == ("cispliceai==1.2.2", [WHEEL], 1)
    assert said == ["python -m pip download --no-deps cispliceai==1.2.2"]


def test_a_package_with_another_digest_is_removed(wheel):
    """The name alone says nothing."""
    with pytest.raises(WorkError, match="is not the file that was published") as caught:
        fetch_weights("ci-spliceai")

    assert "def1db5358848a19533fd387e0620fc0df79784b9e6e1cba1a045ad6678e1da7" in (
        caught.value.expected
    )
    with pytest.raises(NotFoundError):
        locate("ci-spliceai")


def test_a_package_that_cannot_be_had_is_one_message(wheel):
    """With what pip says, and what to do without it."""
    wheel.unlink()

    with pytest.raises(WorkError, match="could not be downloaded") as caught:
        fetch_weights("ci-spliceai")

    assert "cispliceai==1.2.2" in caught.value.found
    assert f"{WHEEL} (" in caught.value.fix


def test_a_package_has_no_commit(wheel):
    with pytest.raises(InputError, match="no commits"):
        fetch_weights("ci-spliceai", revision="0" * 40)


def test_too_little_room_is_said_first(wheel, monkeypatch):
    """Before anything is asked of the hub."""
    monkeypatch.setattr(fetch.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 10**9}))

    with pytest.raises(InputError, match="not enough room") as caught:
        fetch_weights("METAGENE-1")

    assert caught.value.expected == "25.9 GB"


@pytest.mark.parametrize("weights", ["model", "a/b/c", "../x", "/etc/passwd"])
def test_only_a_hub_id_is_fetched(wheel, weights):
    with pytest.raises(InputError, match="this is not a hub id"):
        fetch_weights("hf", weights=weights, revision="0" * 40)

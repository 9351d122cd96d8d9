"""Finding weights, and what is written down about those that are published."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.tiny_esm import write_tiny_esm

from geneb.benchmark.spec import load_model_meta
from geneb.errors import InputError, NotFoundError
from geneb.extractors.checkpoints import Checkpoint
from geneb.extractors.hub import needed_files
from geneb.extractors.registry import load, models
from geneb.extractors.weights import (
    content_sha256,
    locate,
    package_folder,
    published_ids,
    published_weights,
)

MODEL = "agro-nucleotide-transformer-1b"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Path:
    return write_tiny_esm(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    """Empty caches; the hub's."""
    monkeypatch.setenv("GENEB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def snapshot(cache: Path, repository: str, commit: str, files: Path) -> Path:
    """Lay files into the hub's cache as its library does: links to where the content lies."""
    repository_folder = cache / f"models--{repository.replace('/', '--')}"
    folder = repository_folder / "snapshots" / commit
    for place in (folder, repository_folder / "blobs"):
        place.mkdir(parents=True, exist_ok=True)
    for number, file in enumerate(sorted(files.iterdir())):
        blob = repository_folder / "blobs" / str(number)
        blob.write_bytes(file.read_bytes())
        (folder / file.name).symlink_to(Path("..") / ".." / "blobs" / blob.name)
    return folder


def test_every_published_model_says_where_its_weights_are():
    """On the hub at a commit, in a package, or in words; and where known, of which files."""
    assert {facts.id for facts in load_model_meta().models} <= set(published_ids())
    for name in published_ids():
        known = published_weights(name)
        places = (known.repository, known.package, known.elsewhere)
        assert sum(place is not None for place in places) == 1, name
        assert (known.repository is None) == (known.revision is None), name
        if known.repository is not None:
            # Nothing among them that `geneb model fetch` would not fetch by name either.
            assert needed_files(known.files) == list(known.files), name
            assert any("model" in file for file in known.files), name


def test_registry_and_published_weights_are_of_one_commit():
    """Digests are those of the files that are run."""
    for name, model in models().items():
        known = published_weights(name)
        if known.repository is not None and model.hub_id is not None:
            assert (model.hub_id, model.revision) == (known.repository, known.revision), name


def test_a_path_goes_before_everything(tiny):
    """As it was named, file or folder."""
    assert locate(MODEL, weights=str(tiny)) == tiny
    assert locate(MODEL, weights=str(tiny / "vocab.txt")) == tiny / "vocab.txt"


def test_the_own_weights_are_found_at_the_pinned_commit(cache, tiny):
    """In the hub's cache, and only all of them."""
    known = published_weights(MODEL)
    with pytest.raises(NotFoundError, match="not on this machine") as nothing:
        locate(MODEL)
    folder = snapshot(cache, known.repository, known.revision, tiny)
    with pytest.raises(NotFoundError, match="only a part") as part:
        locate(MODEL)
    for name in known.files:
        (folder / name).touch()

    assert locate(MODEL) == folder
    assert f"geneb model fetch {MODEL}," in nothing.value.fix
    assert "pytorch_model.bin" in part.value.expected


def test_another_commit_is_asked_for(cache, tiny):
    """Its files are not known, so that whatever is there is taken; the fix says the commit."""
    with pytest.raises(NotFoundError) as caught:
        locate(MODEL, revision=COMMIT)
    folder = snapshot(cache, published_weights(MODEL).repository, COMMIT, tiny)

    assert locate(MODEL, revision=COMMIT) == folder
    assert f"geneb model fetch {MODEL} --revision {COMMIT}," in caught.value.fix


def test_a_hub_id_needs_a_commit(cache, tiny):
    """Unless it is the model's own."""
    with pytest.raises(InputError, match="need the commit"):
        locate(MODEL, weights="some/model")
    with pytest.raises(InputError, match="need the commit") as short:
        locate(MODEL, weights="some/model", revision="main")
    with pytest.raises(NotFoundError) as missing:
        locate(MODEL, weights="some/model", revision=COMMIT)
    folder = snapshot(cache, "some/model", COMMIT, tiny)

    assert locate(MODEL, weights="some/model", revision=COMMIT) == folder
    assert short.value.found == "main"
    assert f"--weights some/model --revision {COMMIT}" in missing.value.fix


@pytest.mark.parametrize("weights", ["nothing/here/at.all", "../x", "a\x1b[2J/b", "x"])
def test_what_is_neither_path_nor_hub_id_is_not_found(weights):
    """And a stranger's text is shown harmless."""
    with pytest.raises(NotFoundError) as caught:
        locate(MODEL, weights=weights)

    assert "\x1b" not in str(caught.value)


def test_weights_in_a_package_lie_in_geneb_s_cache():
    """The wheel as it was published."""
    with pytest.raises(NotFoundError, match="not on this machine") as caught:
        locate("ci-spliceai")
    folder = package_folder("ci-spliceai")
    folder.mkdir(parents=True)
    for name in published_weights("ci-spliceai").files:
        (folder / name).touch()

    assert locate("ci-spliceai") == folder
    assert "geneb model fetch ci-spliceai" in caught.value.fix


def test_weights_that_lie_elsewhere_are_named():
    """With what to do."""
    with pytest.raises(NotFoundError) as caught:
        locate("genomics-fm")

    assert "Google Drive" in caught.value.expected
    assert "--weights" in caught.value.fix


def test_a_folder_of_links_is_the_files_behind_them(cache, tiny):
    """The same digest and the same vectors as from files."""
    folder = snapshot(cache, "some/model", COMMIT, tiny)
    named = {"weights": "some/model", "revision": COMMIT}

    assert Checkpoint(folder).sha256() == Checkpoint(tiny).sha256()
    assert content_sha256(folder) == content_sha256(tiny)
    linked = load(MODEL, **named).extractor
    assert linked.describe() == load(MODEL, weights=str(tiny)).extractor.describe()

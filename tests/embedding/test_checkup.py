"""Examining a model: what a sound one shows, and each way of being unsound."""

from __future__ import annotations

import numpy as np
import pytest

from geneb.embedding import checkup
from geneb.embedding.canary import canary_sequences
from geneb.embedding.checkup import Checkup, check_model
from geneb.embedding.run import embed
from geneb.errors import InputError, NotFoundError
from geneb.extractors.registry import RecordedCanary, load, models

HEAD = """
import numpy as np
from geneb.extractors.base import SimpleExtractor

class Mine(SimpleExtractor):
    name = "mine"
"""
BODIES = {
    "sound": """
    def embed(self, sequences):
        return np.array([[len(s), s.count("G")] for s in sequences], dtype=np.float32)
""",
    "random": """
    def __init__(self):
        self.start = np.random.default_rng().random()
    def embed(self, sequences):
        return np.array([[len(s), self.start] for s in sequences], dtype=np.float32)
""",
    "sociable": """
    def embed(self, sequences):
        return np.array([[len(s), len(sequences)] for s in sequences], dtype=np.float32)
""",
    "constant": """
    def embed(self, sequences):
        return np.ones((len(sequences), 3), dtype=np.float32)
""",
    "broken": """
    def embed(self, sequences):
        return np.full((len(sequences), 3), np.nan, dtype=np.float32)
""",
}


@pytest.fixture
def examine(tmp_path):
    """Examine an extractor in a file."""

    def examine(kind: str) -> Checkup:
        path = tmp_path / "mine.py"
        path.write_text(HEAD + BODIES[kind], encoding="utf-8")
        return check_model(f"{path}:Mine")

    return examine


def failing(found: Checkup) -> list[str]:
    return [finding.what for finding in found.findings if not finding.holds]


def test_a_sound_model_is_said_to_be_sound(examine):
    """Everything that people compare is told."""
    found = examine("sound")

    assert found.sound, failing(found)
    assert (found.model, found.device, found.dim) == ("Mine", "cpu", 2)
    assert found.compute_dtype == "float32"
    assert found.tolerance == 1e-4
    assert found.tokens_per_second > 0
    assert len(found.canary_sha256) == 64
    assert found.as_json()["sound"] is True


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        ("random", "a fresh load gives the same vectors"),
        ("sociable", "a vector does not depend on what else is in the batch"),
        ("constant", "different sequences have different vectors"),
        ("broken", "the canary's vectors are finite"),
    ],
)
def test_each_way_of_being_unsound_is_found(examine, kind, what):
    """That, and nothing else."""
    found = examine(kind)

    assert failing(found) == [what]
    assert not found.sound


def test_the_rounded_digest_is_of_the_vectors(examine):
    """Another model has another one; the same model the same."""
    assert check_model("kmer3").canary_sha256 == check_model("kmer3").canary_sha256
    assert check_model("kmer3").canary_sha256 != check_model("kmer2").canary_sha256


@pytest.mark.parametrize("store_dtype", ["float32", "float16"])
def test_a_store_of_the_model_is_known_again(demo_data, tmp_path, store_dtype):
    """Its fingerprint and its canary, as it stores them; another model's are not."""
    store = tmp_path / "s.zarr"
    embed("kmer3", data=demo_data, store=store, available=True, store_dtype=store_dtype)

    own, other = check_model("kmer3", store=store), check_model("kmer2", store=store)

    assert own.sound, own.findings
    assert failing(other) == ["the store has this model's fingerprint", "the canary is the store's"]
    (fields,) = (f.found for f in other.findings if "fingerprint" in f.what)
    assert "parameters.k: 3 in the store, 2 here" in fields


def test_a_store_that_is_not_there_is_said_first(tmp_path):
    """Before a model is loaded."""
    with pytest.raises(NotFoundError, match="no embedding store"):
        check_model("no-such-model", store=tmp_path / "nothing")
    with pytest.raises(InputError, match="no such model"):
        check_model("no-such-model")


def known_of(monkeypatch, **changes) -> None:
    """Let the registry say something else of kmer2."""
    changed = models()["kmer2"].model_copy(update=changes)
    monkeypatch.setattr(checkup, "models", lambda: {**models(), "kmer2": changed})


def test_the_published_dimension_is_held_to(monkeypatch):
    """The registry's figure and the model's are one."""
    known_of(monkeypatch, dim=17)

    assert failing(check_model("kmer2")) == ["vectors have the 17 numbers that are stated"]


def test_a_recorded_canary_is_held_to(monkeypatch):
    """Lengths that were written down; one of them a thousandth longer is found."""
    vectors = load("kmer2").extractor.embed(canary_sequences())
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1).tolist()
    known_of(monkeypatch, canary=RecordedCanary(weights=None, lengths=lengths))
    assert check_model("kmer2").sound

    lengths[7] *= 1.001
    known_of(monkeypatch, canary=RecordedCanary(weights=None, lengths=lengths))
    assert failing(check_model("kmer2")) == [
        "the canary's vectors are as long as recorded for these weights"
    ]


def test_a_canary_of_other_weights_says_nothing(monkeypatch):
    """It was recorded for those of one digest."""
    known_of(monkeypatch, canary=RecordedCanary(weights="0" * 64, lengths=[1.0] * 16))

    assert check_model("kmer2").sound


@pytest.mark.parametrize(
    "model_id", [name for name, one in models().items() if "k" in one.parameters]
)
def test_the_baselines_have_the_dimension_that_is_stated(model_id):
    """Of models without weights it can be looked at here."""
    found = check_model(model_id)

    assert found.sound, found.findings
    assert found.dim == models()[model_id].dim

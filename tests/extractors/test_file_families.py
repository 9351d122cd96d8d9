"""A family of one's own in a file, constructed as the built-in ones are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.tiny_esm import write_tiny_esm

from geneb.embedding.engine import Engine
from geneb.errors import InputError, NotFoundError
from geneb.extractors.registry import load

FAMILY = """
from geneb.extractors.esm import EsmExtractor

class Mine(EsmExtractor):
    name = "mine"

    def __init__(self, folder, options, *, limit{default}):
        super().__init__(folder, options, limit=limit)
"""
BUILT_IN = "agro-nucleotide-transformer-1b"


def family(folder: Path, default: str = "=1024") -> str:
    (folder / "mine.py").write_text(FAMILY.format(default=default), encoding="utf-8")
    return f"{folder / 'mine.py'}:Mine"


@pytest.fixture(scope="module")
def weights(tmp_path_factory) -> Path:
    return write_tiny_esm(tmp_path_factory.mktemp("weights"))


def test_it_runs_the_weights_that_are_named(weights, tmp_path):
    """As the built-in family does, with the file's digest and the user's options."""
    told = {"weights": str(weights), "layer": "1"}
    own = load(family(tmp_path), **told).extractor
    built_in = load(BUILT_IN, **told).extractor

    sequences = ["ACGTACGTACGTA", "GGGG"]
    made, expected = (
        engine.embed(engine.prepare(sequences))
        for engine in (Engine(own, 1000), Engine(built_in, 1000))
    )

    np.testing.assert_array_equal(made, expected)
    assert own.describe().file is not None
    assert own.describe().weights == built_in.describe().weights


def test_weights_must_be_named_and_be_there(weights, tmp_path):
    """Neither is the class's fault."""
    with pytest.raises(InputError, match="none of its own"):
        load(family(tmp_path))
    with pytest.raises(NotFoundError, match="these weights are not on this machine"):
        load(family(tmp_path), weights=str(weights / "nowhere"))


def test_another_argument_needs_a_default(weights, tmp_path):
    """What it lacks is said."""
    with pytest.raises(InputError, match="folder= and options=") as caught:
        load(family(tmp_path, default=""), weights=str(weights))

    assert "limit" in str(caught.value)


@pytest.mark.parametrize("weights_of", ["folder", "file"])
def test_a_commit_of_what_has_none_is_refused(weights, tmp_path, weights_of):
    """It would be ignored in silence."""
    place = weights if weights_of == "folder" else weights / "model.safetensors"
    for spec in (family(tmp_path), BUILT_IN):
        with pytest.raises(InputError, match="a commit can be named for a hub repository alone"):
            load(spec, weights=str(place), revision="0" * 40)
    with pytest.raises(InputError, match="cispliceai"):
        load("ci-spliceai", revision="0" * 40)

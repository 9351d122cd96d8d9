"""What an extractor says of itself: into the store, or refused in one message."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.small_tasks import write_small_tasks

import geneb
from geneb.benchmark.spec import load_model_meta
from geneb.embedding import descriptions
from geneb.errors import InputError
from geneb.extractors import registry

EXTRACTOR = """
import numpy as np
from geneb.extractors.base import Description, SimpleExtractor

class Mine(SimpleExtractor):
    name = "mine"

    def embed(self, sequences):
        return np.array([[len(text), 1] for text in sequences], dtype=np.float32)

    def describe(self):
        return Description({fields})
"""


@pytest.fixture
def embed(demo_data, tmp_path):
    """Embed with an extractor that describes itself in such fields; return the store."""
    data = write_small_tasks(demo_data, tmp_path / "data", rows=10)

    def embed(fields: str, **options: str) -> Path:
        file = tmp_path / "mine.py"
        file.write_text(EXTRACTOR.replace("{fields}", fields), encoding="utf-8")
        store = tmp_path / "mine.zarr"
        geneb.embed(f"{file}:Mine", data=data, store=store, tasks=["three"], **options)
        return store

    return embed


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ("{}, weights='0123'", "weights"),
        ("{}, weights=b'0'", "weights"),
        ("{}, tokenizer=7", "tokenizer"),
        ("{}, compute_dtype=np.float32", "compute_dtype"),
        ("{}, compute_dtype=['float16']", "compute_dtype"),
        ("{}, matmul_precision=None", "matmul_precision"),
        ("{1: 2}", "parameters"),
    ],
)
def test_a_field_of_another_kind_is_named(embed, tmp_path, fields, field):
    """With the extractor; before anything is made."""
    with pytest.raises(InputError, match="extractor mine describes itself") as caught:
        embed(fields)

    assert field in caught.value.found
    assert not (tmp_path / "mine.zarr").exists()


def test_a_model_that_is_known_is_told_of(embed, monkeypatch):
    """Whoever names an extractor after a model of the benchmark gets its published facts.

    If it is not a built-in one, that is: those keep their names.
    """
    for module in (registry, descriptions):
        monkeypatch.setattr(module, "models", dict)
    facts = next(model for model in load_model_meta().models if model.licence and model.hub_id)

    model = geneb.open_store(embed("{}", model_id=facts.id)).model

    assert (model.id, model.display) == (facts.id, facts.display)
    assert (model.params, model.licence) == (facts.params, facts.licence)
    assert model.source == facts.hub_id


def test_of_a_model_of_one_s_own_only_the_name_is_known(embed):
    """Nothing is made up."""
    model = geneb.open_store(embed("{}")).model

    assert model.as_read() == {
        "id": "Mine", "display": "Mine", "params": None, "licence": None, "source": None,
    }  # fmt: skip


def test_a_store_belongs_to_one_name(embed):
    """The same extractor under another name is another model."""
    embed("{}", model_id="one")

    with pytest.raises(InputError, match="a model of another name") as caught:
        embed("{}", model_id="other")

    assert (caught.value.expected, caught.value.found) == ("one", "other")

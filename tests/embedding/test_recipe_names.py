"""What is run otherwise than by default is known under a name of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.layered_extractors import LAYERS
from support.small_tasks import write_small_tasks
from support.tiny_esm import write_tiny_esm

import geneb
from geneb.embedding.naming import load_model, recipe_name
from geneb.errors import InputError

ESM = "agro-nucleotide-transformer-1b"
STORES = [f"layer_{number:02}.zarr" for number in range(LAYERS)]


@pytest.fixture(scope="module")
def weights(tmp_path_factory) -> str:
    return str(write_tiny_esm(tmp_path_factory.mktemp("weights")))


@pytest.fixture(scope="module")
def data(demo_data, tmp_path_factory) -> Path:
    return write_small_tasks(demo_data, tmp_path_factory.mktemp("data"), rows=30)


@pytest.fixture
def layered(root) -> str:
    return f"{root / 'tests' / 'support' / 'layered_extractors.py'}:Layered"


@pytest.mark.parametrize(
    ("told", "ending"),
    [
        ({}, ""),
        ({"layer": "last"}, ""),
        ({"layer": "2"}, ""),
        ({"layer": "1"}, "+layer_01"),
        ({"pooling": "mean"}, ""),
        ({"pooling": "max"}, "+max"),
        ({"long_input": "windows", "preset": "masked"}, "+windows"),
        ({"layer": "0", "pooling": "cls"}, "+layer_00+cls"),
        ({"dtype": "bfloat16"}, ""),
    ],
)
def test_a_name_says_what_is_other_than_by_default(weights, told, ending):
    """Asking for the default is no other recipe, and precision is none."""
    told = {**told, "weights": weights, "device": "cpu"}

    name = recipe_name(load_model(ESM, told), None, told)

    assert name == ESM + ending


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ({}, "Layered"),
        ({"layer": "1"}, "Layered+layer_01"),
        ({"layer": "last"}, "Layered+layer_02"),
    ],
)
def test_where_the_default_is_not_known_it_is_what_was_asked_for(layered, told, name):
    """An extractor of somebody's own does not say how it is run by default."""
    loaded = load_model(layered, told)

    assert recipe_name(loaded, None, told) == name
    assert recipe_name(loaded, "mine", told) == name.replace("Layered", "mine")


def test_the_layers_of_a_model_are_probed_together(weights, data, tmp_path):
    """One command, one results folder; the model's own layer has the model's own name."""
    options = {"data": data, "tasks": ["three"], "weights": weights, "device": "cpu"}
    geneb.embed(ESM, store=tmp_path / "layers", layer="all", **options)
    stores = [tmp_path / "layers" / name for name in STORES]

    frame = geneb.probe(stores, out=tmp_path / "results", regimes=["1shot"])

    names = [f"{ESM}+layer_00", f"{ESM}+layer_01", ESM]
    assert list(frame["model"].unique()) == names
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == sorted(names)
    model = geneb.open_store(stores[0]).model
    known = geneb.open_store(stores[2]).model
    assert model.display == f"{known.display}+layer_00"
    assert model.licence == known.licence


def test_a_layers_store_is_added_to_by_a_run_for_that_layer(layered, data, tmp_path):
    """It has the name that such a run would give it."""
    options = {"data": data, "store_dtype": "float32"}
    geneb.embed(layered, store=tmp_path / "layers", layer="all", tasks=["three"], **options)

    more = geneb.embed(
        layered, store=tmp_path / "layers" / STORES[1], layer="1", tasks=["mixed"], **options
    )

    assert more.embedded == ["mixed"]
    assert more.model == geneb.open_store(tmp_path / "layers" / STORES[1]).model_id


def test_nobody_takes_the_name_of_a_built_in_models_recipe(layered, data, tmp_path):
    """It would pass for that model."""
    with pytest.raises(InputError, match="name of a built-in model"):
        geneb.embed(
            layered, data=data, tasks=["three"], store=tmp_path / "s.zarr", model_id="grover+cls"
        )


def test_every_layer_is_for_a_run_that_writes_stores(layered):
    """Whatever looks at one store looks at one layer."""
    with pytest.raises(InputError, match="one layer is looked at here"):
        load_model(layered, {"layer": "all"})


@pytest.mark.parametrize("device", ["cuda:7", "cudaX", "nonsense", ""])
def test_no_device_is_made_up(tmp_path, device):
    """An extractor of somebody's own may take any word; the record would repeat it."""
    file = tmp_path / "mine.py"
    file.write_text(
        "import numpy as np\n"
        "from geneb.extractors.base import SimpleExtractor\n"
        "class Mine(SimpleExtractor):\n"
        "    name = 'mine'\n"
        "    def __init__(self, device): pass\n"
        "    def embed(self, sequences): return np.ones((len(sequences), 1), np.float32)\n",
        encoding="utf-8",
    )

    with pytest.raises(InputError, match="no such device on this machine"):
        load_model(f"{file}:Mine", {"device": device})
    assert load_model(f"{file}:Mine", {"device": "cpu"}).device == "cpu"

"""Where stores must not be made, and what an extractor must say to have one for each layer."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.layered_extractors import LAYERS
from support.small_tasks import content, differing, write_small_tasks

import geneb
from geneb.errors import InputError, NotFoundError


@pytest.fixture(scope="module")
def data(demo_data, tmp_path_factory) -> Path:
    return write_small_tasks(demo_data, tmp_path_factory.mktemp("data"), rows=30)


@pytest.fixture
def embed(root, data):
    file = root / "tests" / "support" / "layered_extractors.py"

    def run(store: Path, **options):
        return geneb.embed(f"{file}:Layered", data=data, tasks=["three"], store=store, **options)

    return run


@pytest.mark.parametrize("inner", ["inner.zarr", "tasks/three", "tasks/inner/deeper"])
@pytest.mark.parametrize("layer", [None, "all"])
def test_no_store_lies_in_a_store(embed, tmp_path, inner, layer):
    """It would count as a task that is never complete: the outer one could not be sealed."""
    outer = tmp_path / "outer.zarr"
    embed(outer)
    before = content(outer)

    with pytest.raises(InputError, match="lies in an embedding store"):
        embed(outer / inner, layer=layer)

    assert differing(before, content(outer)) == []
    assert geneb.open_store(outer).sealed
    assert embed(tmp_path / "outer.zarr" / ".." / "beside.zarr").embedded == ["three"]


def test_the_folder_of_the_layers_names_its_stores(embed, tmp_path):
    """Whoever opens it is told what to open."""
    embed(tmp_path / "layers", layer="all")

    with pytest.raises(NotFoundError, match="not an embedding store") as caught:
        geneb.open_store(tmp_path / "layers")

    assert caught.value.fix.endswith("layer_00.zarr, layer_01.zarr, layer_02.zarr")


@pytest.mark.parametrize("stated", ["{}", "{'layer': 'two'}", "{'layer': 3}", "{'layer': True}"])
def test_an_extractor_with_layers_states_its_own(root, data, tmp_path, stated):
    """Before anything is made: a number among those that it has."""
    file = tmp_path / "mine.py"
    file.write_text(
        f"import sys\nsys.path.append({str(root / 'tests')!r})\n"
        "from geneb.extractors.base import Description\n"
        "from support.layered_extractors import Layered\n"
        "class Mine(Layered):\n"
        f"    def describe(self): return Description({stated})\n",
        encoding="utf-8",
    )

    with pytest.raises(InputError, match="does not state which of its layers") as caught:
        geneb.embed(f"{file}:Mine", data=data, tasks=["three"], store=tmp_path / "s", layer="all")

    assert f"from 0 to {LAYERS - 1}" in caught.value.expected
    assert not (tmp_path / "s").exists()

"""Recipes other than a model's own, from the command line."""

from __future__ import annotations

import pytest
from support.command import check_mistake, geneb
from support.small_tasks import write_small_tasks

from geneb.cli.options import MODEL_ARGUMENTS
from geneb.cli.run import _known_as


@pytest.fixture
def layers(root) -> str:
    return str(root / "tests" / "support" / "layered_extractors.py")


def test_a_submission_is_named_after_its_recipe(layers):
    """The model's own name where nothing else is asked for; nothing is loaded then."""
    told = {**dict.fromkeys(MODEL_ARGUMENTS), "device": "cpu"}
    told |= {"compile": False, "deterministic": False, "tf32": False}

    assert _known_as("nowhere.py:Mine", told) == "Mine"
    assert _known_as(f"{layers}:Layered", {**told, "layer": "1"}) == "Layered+layer_01"
    assert _known_as(f"{layers}:Layered", {**told, "long_input": "windows"}) == "Layered+windows"


def test_a_store_tells_what_its_runs_met(layers, demo_data, tmp_path):
    """Where they ran, with which switches, what was halved and what was run again."""
    data = write_small_tasks(demo_data, tmp_path / "data", rows=20)
    made = geneb(
        "embed", "--extractor", f"{layers}:Overflowing", "--data", data, "--tasks", "three",
        "--store", tmp_path / "layers", "--layer", "all", "--json",
    )  # fmt: skip
    assert made.code == 0, made.err
    assert f"geneb probe {tmp_path / 'layers' / 'layer_*.zarr'}" in made.err

    shown = geneb("store", "info", tmp_path / "layers" / "layer_01.zarr")

    rows = {line[:28].strip(): line[28:].split() for line in shown.out.splitlines()}
    assert rows["on"] == ["cpu"]
    assert rows["rows run again in float32"] == [str(made.json["float32_retries"])]
    assert rows["batches halved for memory"] == ["0"]
    assert rows["model"] == ["Overflowing+layer_01"]
    check_mistake(geneb("store", "info", tmp_path / "layers"), "name one that lies in it")

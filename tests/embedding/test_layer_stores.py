"""``layer="all"``: one pass, and a store for each layer as if it had been made alone."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from support.layered_extractors import LAYERS
from support.small_tasks import blocks_of, content, differing, write_small_tasks

import geneb
from geneb.errors import InputError, WorkError
from geneb.stores.verify import verify_store

NAMES = [f"layer_{number:02}.zarr" for number in range(LAYERS)]


@pytest.fixture(scope="module")
def data(demo_data, tmp_path_factory) -> Path:
    """Three small tasks that share rows."""
    return write_small_tasks(demo_data, tmp_path_factory.mktemp("data"), rows=30)


@pytest.fixture(autouse=True)
def many_blocks():
    """Several blocks a split."""
    with blocks_of(400):
        yield


@pytest.fixture
def embed(root, data):
    """Embed with an extractor of tests/support/layered_extractors.py."""
    file = root / "tests" / "support" / "layered_extractors.py"

    def run(store: Path, name: str = "Layered", **options):
        options = {"available": True, **options}
        return geneb.embed(f"{file}:{name}", data=data, store=store, **options)

    return run


def test_each_layer_is_a_store_of_its_own(embed, tmp_path):
    """With the fingerprint, the canary and the bytes of a run for that layer alone."""
    summary = embed(tmp_path / "layers", layer="all")
    for number, name in enumerate(NAMES):
        embed(tmp_path / "alone" / name, layer=str(number))

    assert [path.name for path in sorted((tmp_path / "layers").glob("*.zarr"))] == NAMES
    for number, name in enumerate(NAMES):
        store, alone = (geneb.open_store(tmp_path / place / name) for place in ("layers", "alone"))
        assert store.sealed
        assert verify_store(store.path).holds
        assert store.fingerprint_id == alone.fingerprint_id == summary.layers[name]
        assert store.fingerprint.parameters["layer"] == number
        assert differing(content(alone.path), content(store.path)) == []
        assert store.runs()[0].options["layer"] == "all"
    assert summary.fingerprint == summary.layers[NAMES[-1]]
    assert len(set(summary.layers.values())) == LAYERS


def test_a_sequence_meets_the_model_once_for_all_layers(embed, tmp_path):
    """Rows computed and copied are those of one layer; so are the tokens."""
    one = embed(tmp_path / "one.zarr")
    every = embed(tmp_path / "layers", layer="all")

    assert (every.rows_computed, every.rows_copied) == (one.rows_computed, one.rows_copied)
    assert every.tokens == one.tokens
    assert every.blocks == one.blocks
    assert one.layers == {}


@pytest.mark.parametrize("number", [1, 2, 3])
def test_stopped_and_resumed_it_is_the_same(embed, tmp_path, number):
    """After any block all layers' stores are at the same place, and go on from there."""
    asked = itertools.count()
    options = {"layer": "all", "tasks": ["mixed"]}
    embed(tmp_path / "whole", **options)

    stopped = embed(tmp_path / "stopped", stop=lambda: next(asked) == number, **options)
    assert stopped.unsealed == "the run was stopped"
    assert stopped.blocks == number - 1
    embed(tmp_path / "stopped", **options)

    for name in NAMES:
        store = tmp_path / "stopped" / name
        assert geneb.open_store(store).sealed
        assert differing(content(tmp_path / "whole" / name), content(store)) == []


def test_what_one_layer_lacks_is_made_and_the_others_are_kept(embed, tmp_path):
    """Whether a block, a task or a whole store is missing."""
    folder = tmp_path / "layers"
    embed(folder, layer="all")
    before = {name: content(folder / name) for name in NAMES}
    kept = (folder / NAMES[0] / "tasks" / "mixed" / "train" / "embeddings" / "c.0.0").stat()
    embed(tmp_path / "other.zarr", layer="1", tasks=["mixed"])
    (folder / NAMES[1]).rename(tmp_path / "away")
    (tmp_path / "other.zarr").rename(folder / NAMES[1])

    summary = embed(folder, layer="all")

    assert summary.complete == ["mixed"]
    assert summary.embedded == ["shared", "three"]
    for name in NAMES:
        assert differing(before[name], content(folder / name)) == []
        assert verify_store(folder / name).holds
    block = folder / NAMES[0] / "tasks" / "mixed" / "train" / "embeddings" / "c.0.0"
    assert block.stat().st_mtime_ns == kept.st_mtime_ns


def test_a_layer_that_was_there_sets_the_token_budget(embed, tmp_path):
    """All layers' stores have one, so that one pass serves them."""
    embed(tmp_path / "layers" / NAMES[1], layer="1", batch_tokens=777, tasks=["three"])

    embed(tmp_path / "layers", layer="all", tasks=["three"])

    budgets = {geneb.open_store(tmp_path / "layers" / name).root.token_budget for name in NAMES}
    assert budgets == {777}


def test_a_replaced_task_is_replaced_in_every_layer(embed, tmp_path):
    """And what the others hold stays."""
    options = {"layer": "all", "tasks": ["mixed", "three"]}
    embed(tmp_path / "layers", **options)
    before = {name: content(tmp_path / "layers" / name) for name in NAMES}

    summary = embed(tmp_path / "layers", replace_tasks=["three"], **options)

    assert summary.embedded == ["three"]
    for name in NAMES:
        assert set(differing(before[name], content(tmp_path / "layers" / name))) <= {
            "tasks/three/zarr.json"
        }


def test_layers_of_several_widths_are_refused(embed, tmp_path):
    """Their blocks would not be the same rows; nothing is made."""
    with pytest.raises(WorkError, match="several widths") as caught:
        embed(tmp_path / "layers", "Uneven", layer="all")

    assert caught.value.found == "3, 4, 5"
    assert not (tmp_path / "layers").exists()


def test_an_extractor_of_one_layer_has_no_others(data, tmp_path):
    """Before anything is made."""
    with pytest.raises(InputError, match="has one layer"):
        geneb.embed("kmer3", data=data, store=tmp_path / "k", available=True, layer="all")

    assert not (tmp_path / "k").exists()


@pytest.mark.parametrize("made", ["store", "file"])
def test_a_folder_of_layers_is_no_store(embed, tmp_path, made):
    """And no store becomes one."""
    place = tmp_path / "layers"
    if made == "store":
        embed(place)
        before = content(place)
    else:
        place.write_text("notes", encoding="utf-8")

    with pytest.raises(InputError, match="a folder that gets a store for each layer") as caught:
        embed(place, layer="all")

    assert caught.value.found == f"a {made}"
    if made == "store":
        assert differing(before, content(place)) == []
    else:
        assert place.read_text(encoding="utf-8") == "notes"


def test_windows_and_overflows_are_counted_in_the_record(embed, tmp_path):
    """What was run again in float32 stands in the summary and in the run's record."""
    summary = embed(tmp_path / "o.zarr", "Overflowing")

    store = geneb.open_store(tmp_path / "o.zarr")
    assert summary.float32_retries > 0
    assert store.runs()[0].float32_retries == summary.float32_retries
    assert store.fingerprint.compute_dtype == "float16"
    embed(tmp_path / "w.zarr", long_input="windows")
    parameters = geneb.open_store(tmp_path / "w.zarr").fingerprint.parameters
    assert parameters["long input"] == "windows"
    assert np.isfinite(store.task("three").embeddings("train")).all()

"""Embedding rows of a store again: which stores pass, and what is found in those that do not."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from support.small_tasks import write_small_tasks, write_task
from support.tiny_esm import write_tiny_esm

from geneb.embedding.reproduce import RowReproduction, reproduce_rows
from geneb.embedding.run import embed
from geneb.errors import InputError, NotFoundError
from geneb.stores.arrays import BlockArray
from geneb.stores.reader import open_store

ESM = "agro-nucleotide-transformer-1b"
ALL = 1_000_000


@pytest.fixture(scope="module")
def data(tmp_path_factory, demo_data) -> Path:
    return write_small_tasks(demo_data, tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def weights(tmp_path_factory) -> Path:
    return write_tiny_esm(tmp_path_factory.mktemp("weights"))


@pytest.fixture(scope="module")
def stores(tmp_path_factory, data, weights) -> dict[str, Path]:
    """A store of 3-mers, and one of a tiny network in float32 and in float16."""
    folder = tmp_path_factory.mktemp("stores")
    embed("kmer3", data=data, store=folder / "kmer", available=True)
    told = {"data": data, "available": True, "weights": str(weights), "device": "cpu"}
    embed(ESM, store=folder / "esm", **told)
    embed(ESM, store=folder / "half", store_dtype="float16", **told)
    return {path.name: path for path in folder.iterdir()}


@pytest.fixture
def changed(tmp_path, stores, monkeypatch):
    """Return a copy of the 3-mers' store that reads as if one row of a task were another one."""

    def changed(row: int, factor: float) -> Path:
        store = Path(shutil.copytree(stores["kmer"], tmp_path / "changed"))
        read = BlockArray.read_block

        def forged(self: BlockArray, index: int) -> np.ndarray:
            block = read(self, index).copy()
            if self.files.root == store and self.path == "tasks/mixed/test/embeddings":
                block[row] *= np.linspace(1, factor, block.shape[1], dtype=np.float32)
            return block

        monkeypatch.setattr(BlockArray, "read_block", forged)
        return store

    return changed


def rows_of(store: Path) -> int:
    opened = open_store(store)
    return sum(
        split.rows
        for name in opened.task_ids()
        for split in opened.task(name).manifest.splits.values()
    )


def test_the_model_that_made_it_makes_it_again(stores, data):
    """Every row, and the record says what it rests on."""
    found = reproduce_rows(stores["kmer"], "kmer3", data=data, sample=ALL)

    opened = open_store(stores["kmer"])
    assert found.reproduced
    assert found.rows == found.sample == rows_of(stores["kmer"])
    assert found.largest_relative == found.largest_absolute == found.canary_difference == 0
    assert found.smallest_cosine == pytest.approx(1, abs=1e-12)  # float64 rounding
    assert found.fingerprint_id == opened.fingerprint_id
    assert found.manifests == {
        name: opened.task(name).manifest.digest for name in opened.task_ids()
    }
    assert found.differences == found.faults == found.left_out == []


def test_the_record_is_read_as_it_was_written(stores, data):
    """JSON out, the same record in; an unknown field is refused."""
    found = reproduce_rows(stores["kmer"], "kmer4", data=data, sample=5)
    text = found.model_dump_json()

    assert RowReproduction.model_validate_json(text) == found
    with pytest.raises(ValueError, match="extra"):
        RowReproduction.model_validate_json(text.replace('"format"', '"extra": 1, "format"', 1))


def test_other_words_are_another_model(stores, data):
    """Vectors of another width; both widths and the parameter are named."""
    found = reproduce_rows(stores["kmer"], "kmer4", data=data, sample=7)

    assert not found.reproduced
    assert found.failing == len(found.faults) == 7
    assert "256 numbers from the model, 64 stored" in found.faults[0].reason
    assert {(one.field, one.store, one.model) for one in found.differences} == {
        ("dim", 64, 256),
        ("parameters.k", 3, 4),
    }


def test_rows_are_drawn_from_the_seed(stores, data):
    """The same seed draws the same rows, another one others; which it was is told."""

    def drawn(seed: int | None) -> tuple[int, list[tuple[str, str, int]]]:
        found = reproduce_rows(stores["kmer"], "kmer4", data=data, sample=10, seed=seed)
        return found.seed, [(fault.task, fault.split, fault.row) for fault in found.faults]

    seed, rows = drawn(None)

    assert drawn(seed) == (seed, rows)
    assert drawn(seed + 1)[1] != rows
    assert len(set(rows)) == 10
    assert drawn(None)[0] != seed


@pytest.mark.parametrize("store", ["esm", "half"])
def test_a_network_s_store_is_reproduced(stores, data, weights, store):
    """In batches that are not those of the run: within the tolerance, float16 within its own."""
    found = reproduce_rows(stores[store], ESM, data=data, weights=str(weights), device="cpu")

    assert found.reproduced, found.faults
    assert found.differences == []
    assert found.sample == 64
    assert found.tolerance == (1e-4 if store == "esm" else 1e-4 + 2e-3)


@pytest.mark.parametrize("store", ["esm", "half"])
def test_other_weights_are_another_model(stores, data, store, tmp_path):
    """Of the same shape and under the same name."""
    other = str(write_tiny_esm(tmp_path / "other", seed=1))

    found = reproduce_rows(stores[store], ESM, data=data, weights=other, device="cpu", sample=20)

    assert not found.reproduced
    assert found.failing == 20
    assert found.canary_difference > found.tolerance
    assert [one.field for one in found.differences] == ["weights"]


def test_half_precision_has_its_tolerance(stores, data, weights):
    """A store of float32 and a model run in bfloat16: near, and said to be another kind."""
    found = reproduce_rows(
        stores["esm"], ESM, data=data, weights=str(weights), device="cpu", dtype="bfloat16"
    )

    assert found.tolerance == 5e-2
    assert 1e-4 < found.largest_relative < 5e-2
    assert [one.field for one in found.differences] == ["compute_dtype"]


def test_what_a_store_claims_does_not_widen_the_tolerance(data, weights, tmp_path):
    """Made in bfloat16, and examined in float32, its vectors are others."""
    store = tmp_path / "s"
    told = {"weights": str(weights), "device": "cpu"}
    embed(ESM, data=data, store=store, available=True, dtype="bfloat16", **told)

    assert reproduce_rows(store, ESM, data=data, dtype="bfloat16", **told).reproduced
    assert not reproduce_rows(store, ESM, data=data, **told).reproduced


def test_a_changed_row_is_found_once_it_is_drawn(changed, data):
    """Named with task, split and row; the others hold."""
    store = changed(row=3, factor=1.01)

    found = reproduce_rows(store, "kmer3", data=data, sample=ALL)

    assert not found.reproduced
    (fault,) = found.faults
    assert (fault.task, fault.split, fault.row) == ("mixed", "test", 3)
    assert fault.difference == found.largest_relative > 1e-4
    assert found.canary_difference == 0


def test_rows_are_found_by_their_ids(stores, data, tmp_path):
    """A CSV in another order is as good; one without the row is not."""
    lines = (data / "mixed.csv").read_text(encoding="utf-8").splitlines()
    rows = [tuple(line.split(",")) for line in lines[1:]]
    write_task(tmp_path / "mixed.csv", rows[::-1])

    turned = reproduce_rows(stores["kmer"], "kmer3", data=tmp_path, sample=ALL)
    write_task(tmp_path / "mixed.csv", [(text + "A", *rest) for text, *rest in rows])
    other = reproduce_rows(stores["kmer"], "kmer3", data=tmp_path, sample=ALL)

    assert turned.reproduced
    assert turned.left_out == ["shared", "three"]
    assert not other.reproduced
    assert other.faults[0].reason == "no sequence with this row's id is in the CSV"
    assert other.faults[0].difference is None


def test_batches_in_file_order_are_made_again(data, tmp_path):
    """Where a row's vector depends on its batch, it is embedded in that batch."""
    extractor = tmp_path / "sociable.py"
    extractor.write_text(
        "import numpy as np\n"
        "from geneb.extractors.base import SimpleExtractor\n\n\n"
        "class Sociable(SimpleExtractor):\n"
        "    name = 'sociable'\n"
        "    batching = 'file-order'\n"
        "    batch_size = 4\n\n"
        "    def embed(self, sequences):\n"
        "        longest = max(map(len, sequences))\n"
        "        rows = [[len(s), longest, s.count('G')] for s in sequences]\n"
        "        return np.array(rows, dtype=np.float32)\n",
        encoding="utf-8",
    )
    spec = f"{extractor}:Sociable"
    embed(spec, data=data, store=tmp_path / "s", available=True)

    found = reproduce_rows(tmp_path / "s", spec, data=data, sample=ALL)

    assert found.reproduced, found.faults
    assert found.largest_relative == 0


@pytest.mark.parametrize("sample", [0, -1])
def test_a_row_must_be_drawn(stores, data, sample):
    with pytest.raises(InputError, match="a row must be drawn"):
        reproduce_rows(stores["kmer"], "kmer3", data=data, sample=sample)


def test_data_without_the_store_s_tasks_is_refused(stores, tmp_path):
    """Before the model is loaded."""
    write_task(tmp_path / "another.csv", [("ACGT", "0", "train"), ("ACGT", "1", "test")])

    with pytest.raises(NotFoundError, match="no CSV of any complete task"):
        reproduce_rows(stores["kmer"], "no-such-model", data=tmp_path)

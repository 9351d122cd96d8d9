"""``geneb store reproduce`` and ``geneb doctor --model``, run as a user runs them."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command import check_mistake, geneb

from geneb.embedding.reproduce import RowReproduction
from geneb.embedding.run import embed

EXTRACTOR = """
import numpy as np
from geneb.extractors.base import SimpleExtractor

print("noise")

class Mine(SimpleExtractor):
    name = "mine"

    def embed(self, sequences):
        print("more noise")
        return np.array([[len(s), s.count("G")] for s in sequences], dtype=np.float32)
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory, demo_data) -> Path:
    path = tmp_path_factory.mktemp("made") / "s.zarr"
    embed("kmer3", data=demo_data, store=path, available=True)
    return path


@pytest.fixture(scope="module")
def extractor(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("mine") / "mine.py"
    path.write_text(EXTRACTOR, encoding="utf-8")
    return path


def test_the_model_that_made_a_store_is_said_to_have_made_it(store, demo_data):
    """Exit 0; figures on stdout."""
    done = geneb("store", "reproduce", store, "--model", "kmer3", "--data", demo_data)

    assert done.code == 0, done.err
    assert "the 64 rows that were drawn are those that kmer3 makes" in done.err
    assert ["rows", "drawn", "64"] in [line.split() for line in done.out.splitlines()]


def test_another_model_is_found_out(store, demo_data):
    """Exit 1; the record on stdout, the rows and one message on stderr."""
    done = geneb(
        "store", "reproduce", store, "--model", "kmer2", "--data", demo_data,
        "--sample", "3", "--seed", "7", "--json",
    )  # fmt: skip

    check_mistake(
        done, "was not made by kmer2", "3 of 3 rows", "parameters.k: 3 in the store", code=1
    )
    record = RowReproduction.model_validate_json(done.out)
    assert (record.reproduced, record.sample, record.seed) == (False, 3, 7)


def test_an_extractor_in_a_file_reproduces_its_store(extractor, demo_data, tmp_path):
    """Whatever it prints, stdout is JSON."""
    spec = f"{extractor}:Mine"
    made = geneb(
        "embed", "--extractor", spec, "--data", demo_data, "--store", "s", "--available",
        cwd=tmp_path,
    )  # fmt: skip
    assert made.code == 0, made.err

    done = geneb(
        "store", "reproduce", tmp_path / "s", "--extractor", spec, "--data", demo_data, "--json"
    )

    assert done.code == 0, done.err
    assert done.json["reproduced"]


def test_what_is_missing_is_one_message(store, demo_data, tmp_path):
    """No model, no such model, no store, no data."""
    check_mistake(geneb("store", "reproduce", store, "--data", demo_data), "--model")
    check_mistake(
        geneb("store", "reproduce", store, "--model", "kmer33", "--data", demo_data), "kmer3"
    )
    check_mistake(
        geneb("store", "reproduce", tmp_path, "--model", "kmer3", "--data", demo_data),
        "not an embedding store",
    )
    check_mistake(geneb("store", "reproduce", store, "--model", "kmer3", "--data", tmp_path), "CSV")


def test_doctor_examines_a_model(extractor):
    """Whatever the extractor prints, stdout is JSON."""
    done = geneb("doctor", "--extractor", f"{extractor}:Mine", "--json")

    assert done.code == 0, done.err
    assert done.json["sound"] is True
    assert done.json["dim"] == 2


def test_doctor_compares_a_model_with_a_store(store):
    """Exit 0 for its own; exit 1 for another model's, with what differs."""
    own = geneb("doctor", "--model", "kmer3", "--store", store)
    other = geneb("doctor", "--model", "kmer4", "--store", store)

    assert own.code == 0, own.err
    assert "The model is sound" in own.out
    assert other.code == 1, other.err
    assert "2 of" in other.out
    assert "parameters.k: 3 in the store, 4 here" in other.out


def test_doctor_needs_a_model_for_what_is_about_one():
    """Such an option alone would be ignored in silence."""
    check_mistake(geneb("doctor", "--dtype", "bfloat16"), "--dtype needs --model")
    check_mistake(geneb("doctor", "--model", "kmer33"), "did you mean kmer3")

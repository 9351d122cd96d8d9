"""The small transformer that other tests use as a masked model keeps the contract."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from support.tiny_torch_encoder import DIM, LIMIT, TinyTorchEncoder

from geneb.embedding.engine import Engine
from geneb.extractors.base import LAST, Batch
from geneb.extractors.registry import load
from geneb.testing import ExtractorContract
from geneb.testing.extractors import bases


class TestTinyTorchEncoder(ExtractorContract):
    def make(self):
        return TinyTorchEncoder()


def test_it_loads_by_its_file(root):
    """Workers and scripts name it by path; it then tells its file's digest."""
    spec = f"{root / 'tests' / 'support' / 'tiny_torch_encoder.py'}:TinyTorchEncoder"

    loaded = load(spec)

    assert loaded.model_id == "TinyTorchEncoder"
    assert len(loaded.extractor.describe().file) == 64
    np.testing.assert_array_equal(
        TinyTorchEncoder().embed(["ACGT"]), loaded.extractor.embed(["ACGT"])
    )


def test_padding_follows_the_batch():
    """Its numbers come from the padded length that the engine chose: resume relies on it."""
    model = TinyTorchEncoder()
    widths = []
    model._encoder.register_forward_pre_hook(lambda _, inputs: widths.append(inputs[0].shape[1]))
    items = model.prepare([bases(30, seed=1)])

    for padded in (30, 64, LIMIT):
        model.forward(Batch(items, padded), (LAST,))

    assert widths == [30, 64, LIMIT]


@pytest.mark.parametrize("length", [LIMIT - 1, LIMIT, LIMIT + 1])
def test_the_engine_pads_no_further_than_it_can_take(length):
    """It has no positions beyond its limit; the ladder's next step would be there."""
    engine = Engine(TinyTorchEncoder(), 4096)
    items = engine.prepare([bases(length, seed=1), "ACGT"])

    together, batches = engine.embed_together(items)[LAST], engine.embed(items)

    # Float32 sums in another order: about 1e-6 of numbers of about 1.
    np.testing.assert_allclose(together, batches, atol=1e-4)


def test_sequences_tell_apart():
    """A constant would keep the contract, and be of no use to the tests that rely on it."""
    vectors = TinyTorchEncoder().embed([bases(50, seed) for seed in range(5)])

    assert vectors.shape == (5, DIM)
    assert len(np.unique(vectors, axis=0)) == 5

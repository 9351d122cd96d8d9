"""The contract looks at windows, limits in tokens, layers, file order and half precision."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.layered_extractors import FileOrder, Layered, Overflowing

from geneb.extractors.base import LAST, Description, Item
from geneb.testing import ExtractorContract


class TestLayered(ExtractorContract):
    layers = ("0", "1", "2", LAST)

    def make(self):
        return Layered()

    def variants(self):
        return [Layered(layer="0"), Layered(long_input="windows")]


class TestInWindows(ExtractorContract):
    def make(self):
        return Layered(long_input="windows")


class TestFileOrder(ExtractorContract):
    """Vectors depend on the batch, and are stable all the same."""

    def make(self):
        return FileOrder()


class TestHalf(ExtractorContract):
    """Close enough for half precision, not for float32."""

    def make(self):
        return InHalf()


class InHalf(Layered):
    """Rounds more in company than alone."""

    def forward(self, batch, layers):
        found = super().forward(batch, layers)
        scale = np.float32(1 + 1e-3 * (len(batch.items) > 1))
        return {layer: vectors * scale for layer, vectors in found.items()}

    def forward_in_float32(self, batch, layers):
        return super().forward(batch, layers)

    def describe(self):
        return Description({"layer": self._layer}, compute_dtype="bfloat16")


class FarFromFull(InHalf):
    def forward_in_float32(self, batch, layers):
        found = super().forward_in_float32(batch, layers)
        return {layer: 2 * vectors for layer, vectors in found.items()}


class SaysFloat32(InHalf):
    def describe(self):
        return replace(super().describe(), compute_dtype="float32")


class TakesMore(Layered):
    """Passes on more tokens than there are positions for."""

    def _item(self, sequence):
        return Item(sequence, len(sequence), truncated=len(sequence) > self.max_length)


class WindowsBeyond(Layered):
    def _item(self, sequence):
        item = super()._item(sequence)
        if not item.windows:
            return item
        whole = Item(sequence, len(sequence))
        return Item(None, len(sequence), windows=(whole,))


class WindowsMiscounted(Layered):
    def _item(self, sequence):
        item = super()._item(sequence)
        return replace(item, length=len(sequence) - 1) if item.windows else item


class WindowsOfNoWeight(Layered):
    def _item(self, sequence):
        item = super()._item(sequence)
        return replace(item, windows=tuple(replace(w, weight=0.0) for w in item.windows))


class WindowsInWindows(Layered):
    def _item(self, sequence):
        item = super()._item(sequence)
        windows = tuple(Item(None, w.length, windows=(w,)) for w in item.windows)
        return replace(item, windows=windows)


class OtherLast(Layered):
    """Says one layer, and gives another."""

    def describe(self):
        return Description({"layer": 0})


class LayerByName(Layered):
    def describe(self):
        return Description({"layer": "last"})


class LayerBeyond(Layered):
    def __init__(self, **options):
        super().__init__(**options)
        self.layer_count = 2


class InTraining(Layered):
    """Never the same twice, as with dropout left on."""

    calls = 0

    def forward(self, batch, layers):
        self.calls += 1
        found = super().forward(batch, layers)
        return {layer: vectors * np.float32(1 + self.calls) for layer, vectors in found.items()}


class NoWeights(Layered):
    needs_weights = True


class NoBatchSize(FileOrder):
    batch_size = 0


BROKEN = [
    (FarFromFull, {}, "full_precision_is_near"),
    (SaysFloat32, {}, "neighbours_do_not_matter"),
    (TakesMore, {}, "no_item_is_longer_than_the_model_takes"),
    (WindowsBeyond, {"long_input": "windows"}, "no_item_is_longer_than_the_model_takes"),
    (WindowsMiscounted, {"long_input": "windows"}, "prepare_makes_one_item_a_sequence"),
    (WindowsOfNoWeight, {"long_input": "windows"}, "prepare_makes_one_item_a_sequence"),
    (WindowsInWindows, {"long_input": "windows"}, "prepare_makes_one_item_a_sequence"),
    (OtherLast, {}, "layers_have_numbers"),
    (LayerByName, {}, "layers_have_numbers"),
    (LayerBeyond, {}, "layers_have_numbers"),
    (InTraining, {}, "one_batch_twice_gives_the_same_bits"),
    (NoWeights, {}, "it_declares_what_it_is"),
    (NoBatchSize, {}, "it_declares_what_it_is"),
]


@pytest.mark.parametrize(
    ("kind", "options", "promise"),
    BROKEN,
    ids=[f"{kind.__name__}-{promise}" for kind, _, promise in BROKEN],
)
def test_a_broken_promise_is_noticed(kind, options, promise):
    """By the test that is named after it, with a sentence that says what is wrong."""
    contract = ExtractorContract()
    contract.make = lambda: kind(**options)

    with pytest.raises(AssertionError) as caught:
        getattr(contract, f"test_{promise}")()

    assert len(str(caught.value)) > 10


def test_an_overflow_in_half_precision_is_not_the_contract_s_business():
    """The engine runs such rows again; the contract compares what is finite."""
    contract = ExtractorContract()
    contract.make = Overflowing
    contract.sequences = ("CGT", "CGTCGT", "CCGGT" * 6)

    contract.test_full_precision_is_near()

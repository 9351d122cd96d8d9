"""The contract can fail: each extractor here breaks one promise, and one test notices."""

from __future__ import annotations

import time

import numpy as np
import pytest

from geneb.extractors.base import LAST, Description, Extractor, Item, SimpleExtractor
from geneb.testing import ExtractorContract

DIM = 8


def vector(sequence: str) -> np.ndarray:
    """A vector that depends on every letter and its place."""
    codes = np.frombuffer(sequence.encode("utf-8"), dtype=np.uint8).astype(np.float64)
    waves = np.sin(np.outer(np.arange(1, DIM + 1), np.arange(len(codes)) + 1.0))
    return (1 + waves @ codes / (1 + len(codes))).astype(np.float32)


class Sound(SimpleExtractor):
    """Keeps every promise."""

    name = "sound"
    limit = 150

    def embed(self, sequences):
        return np.stack([vector(sequence) for sequence in sequences])


class SoundAlone(Sound):
    batching = "alone"


class SoundByLength(Sound):
    batching = "equal-length"


class SwapsRows(Sound):
    def embed(self, sequences):
        return super().embed(sequences)[::-1]


class PreparesOutOfOrder(Sound):
    def prepare(self, sequences):
        return super().prepare(sequences)[::-1]


class AveragesPadding(Sound):
    """A masked model in name only."""

    def forward(self, batch, layers):
        rows = [vector(item.payload.ljust(batch.padded_length, "N")) for item in batch.items]
        return dict.fromkeys(layers, np.stack(rows))


class PadsToTheLongest(Sound):
    batching = "masked"

    def embed(self, sequences):
        longest = max(map(len, sequences))
        return super().embed([sequence.ljust(longest, "N") for sequence in sequences])


class CentresTheBatch(Sound):
    batching = "equal-length"

    def embed(self, sequences):
        rows = super().embed(sequences)
        return rows - rows.mean(axis=0) if len(rows) > 1 else rows


class NanForEmpty(Sound):
    def embed(self, sequences):
        rows = super().embed(sequences)
        rows[[not sequence for sequence in sequences]] = np.nan
        return rows


class DropsEmpty(Sound):
    def prepare(self, sequences):
        return super().prepare([sequence for sequence in sequences if sequence])


class RefusesN(Sound):
    def prepare(self, sequences):
        if any("N" in sequence for sequence in sequences):
            raise ValueError("N is not in the vocabulary")
        return super().prepare(sequences)


class ReturnsOnlyTheFirstRow(Sound):
    def embed(self, sequences):
        return super().embed(sequences[:1])


class Random(Sound):
    def embed(self, sequences):
        noise = np.random.default_rng().standard_normal((len(sequences), DIM))
        return super().embed(sequences) + noise.astype(np.float32) * np.float32(1e-7)


class RandomWeights(Sound):
    def __init__(self):
        self._weights = np.random.default_rng().standard_normal(DIM).astype(np.float32)

    def embed(self, sequences):
        return super().embed(sequences) * self._weights


class Remembers(Sound):
    def __init__(self):
        self._seen = 0

    def embed(self, sequences):
        self._seen += len(sequences)
        return super().embed(sequences) + np.float32(self._seen * 1e-6)


class DoublePrecision(Sound):
    def embed(self, sequences):
        return super().embed(sequences).astype(np.float64)


class WidthByLength(Sound):
    def embed(self, sequences):
        rows = super().embed(sequences)
        return rows if any(map(len, sequences)) else rows[:, 1:]


class OneDimensional(Sound):
    def embed(self, sequences):
        return super().embed(sequences).ravel()


class ForgetsTheMark(Sound):
    def prepare(self, sequences):
        return [Item(item.payload, item.length) for item in super().prepare(sequences)]


class MarksAtTheLimit(Sound):
    def prepare(self, sequences):
        return [
            Item(item.payload, item.length, truncated=item.length == self.limit)
            for item in super().prepare(sequences)
        ]


class NumpyLengths(Sound):
    def prepare(self, sequences):
        return [
            Item(item.payload, np.int64(item.length), item.truncated)
            for item in super().prepare(sequences)
        ]


class SharesAScratchArea(Sound):
    """Prepares in an attribute, where another thread finds it."""

    def prepare(self, sequences):
        self._current = sequences
        time.sleep(0.02)
        return super().prepare(self._current)


class LooksAround(Sound):
    """Pads to the longest sequence that it was prepared with."""

    def prepare(self, sequences):
        longest = max(map(len, sequences))
        return [
            Item(sequence.ljust(longest, "N"), longest, truncated=False) for sequence in sequences
        ]


class DescribesNoJson(Sound):
    def describe(self):
        return Description(parameters={"limit": np.float32(1)})


class DescribesATime(Sound):
    def describe(self):
        return Description(parameters={"at": time.monotonic_ns()})


class DescribesItsUse(Sound):
    def __init__(self):
        self._calls = 0

    def embed(self, sequences):
        self._calls += 1
        return super().embed(sequences)

    def describe(self):
        return Description(parameters={"calls": self._calls})


class DescribesAPath(Sound):
    def describe(self):
        return Description(parameters={}, weights="weights.bin")


class UnknownBatching(Sound):
    batching = "sorted"


class EmbedsOtherwise(Extractor):
    """Its reference and its fast way disagree."""

    name = "two-ways"

    def prepare(self, sequences):
        return [Item(sequence, len(sequence)) for sequence in sequences]

    def forward(self, batch, layers):
        rows = np.stack([vector(item.payload) for item in batch.items])
        return dict.fromkeys(layers, rows)

    def embed(self, sequences):
        return np.stack([vector(sequence) * np.float32(1.001) for sequence in sequences])

    def describe(self):
        return Description(parameters={})


class IgnoresTheLayer(Sound):
    def forward(self, batch, layers):
        return super().forward(batch, (LAST,))


BROKEN = [
    (SwapsRows, "neighbours_do_not_matter"),
    (SwapsRows, "order_does_not_matter"),
    (PreparesOutOfOrder, "prepare_looks_at_each_sequence_alone"),
    (AveragesPadding, "padding_does_not_matter"),
    (PadsToTheLongest, "neighbours_do_not_matter"),
    (PadsToTheLongest, "padding_does_not_matter"),
    (CentresTheBatch, "neighbours_do_not_matter"),
    (NanForEmpty, "vectors_are_float32_rows_of_one_width"),
    (NanForEmpty, "each_awkward_sequence_is_one_row"),
    (DropsEmpty, "prepare_makes_one_item_a_sequence"),
    (DropsEmpty, "each_awkward_sequence_is_one_row"),
    (ReturnsOnlyTheFirstRow, "vectors_are_float32_rows_of_one_width"),
    (Random, "the_same_input_gives_the_same_bits"),
    (RandomWeights, "a_new_instance_gives_the_same_bits"),
    (Remembers, "the_same_input_gives_the_same_bits"),
    (DoublePrecision, "vectors_are_float32_rows_of_one_width"),
    (WidthByLength, "each_awkward_sequence_is_one_row"),
    (OneDimensional, "vectors_are_float32_rows_of_one_width"),
    (ForgetsTheMark, "what_is_over_the_limit_is_marked_and_nothing_else"),
    (MarksAtTheLimit, "what_is_over_the_limit_is_marked_and_nothing_else"),
    (NumpyLengths, "prepare_makes_one_item_a_sequence"),
    (SharesAScratchArea, "prepare_may_run_in_several_threads"),
    (LooksAround, "prepare_looks_at_each_sequence_alone"),
    (DescribesNoJson, "the_description_is_json_and_stable"),
    (DescribesATime, "the_description_is_json_and_stable"),
    (DescribesItsUse, "the_description_is_not_changed_by_use"),
    (DescribesAPath, "the_description_is_json_and_stable"),
    (UnknownBatching, "it_declares_what_it_is"),
    (EmbedsOtherwise, "embed_is_the_same_as_batches"),
]


def contract_of(kind: type[Extractor]) -> ExtractorContract:
    """The contract's suite for an extractor class without arguments."""
    contract = ExtractorContract()
    contract.make = kind
    return contract


@pytest.mark.parametrize(
    ("kind", "promise"), BROKEN, ids=[f"{kind.__name__}-{promise}" for kind, promise in BROKEN]
)
def test_a_broken_promise_is_noticed(kind, promise):
    """By the test that is named after it, with a sentence that says what is wrong."""
    with pytest.raises(AssertionError) as caught:
        getattr(contract_of(kind), f"test_{promise}")()

    assert len(str(caught.value)) > 10


def test_a_refused_sequence_fails_the_contract():
    """An extractor's own exception is shown as it is."""
    with pytest.raises(ValueError, match="not in the vocabulary"):
        contract_of(RefusesN).test_each_awkward_sequence_is_one_row()


def test_parameters_that_are_not_described_are_noticed():
    """Two limits, one description: their embeddings could be mixed up."""

    class Silent(Sound):
        def describe(self):
            return Description(parameters={})

    contract = contract_of(Silent)
    shorter = Silent()
    shorter.limit = 100
    contract.variants = lambda: [shorter]

    with pytest.raises(AssertionError, match="alike"):
        contract.test_other_parameters_are_described_otherwise()


def test_a_layer_that_is_not_returned_is_noticed():
    """Each layer asked for is a key of what forward returns."""
    contract = contract_of(IgnoresTheLayer)
    contract.layers = ("3", LAST)

    with pytest.raises(AssertionError, match="asked for"):
        contract.test_layers_do_not_depend_on_each_other()


def test_the_tolerance_is_a_share_of_the_row():
    """A drift of a millionth passes at 1e-5, and not at 1e-7."""

    class Drifts(Sound):
        batching = "equal-length"

        def embed(self, sequences):
            scale = 1 + 1e-6 * (len(sequences) > 1)
            return super().embed(sequences) * np.float32(scale)

    contract = contract_of(Drifts)
    contract.test_neighbours_do_not_matter()

    contract.tolerance = 1e-7
    with pytest.raises(AssertionError, match="moved by"):
        contract.test_neighbours_do_not_matter()


def test_a_suite_without_make_says_so():
    """The first thing that somebody new to it forgets."""
    with pytest.raises(NotImplementedError, match="make"):
        ExtractorContract().test_it_declares_what_it_is()


class TestSound(ExtractorContract):
    def make(self):
        return Sound()


class TestSoundAlone(ExtractorContract):
    def make(self):
        return SoundAlone()


class TestSoundByLength(ExtractorContract):
    def make(self):
        return SoundByLength()

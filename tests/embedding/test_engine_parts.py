"""Windows, batches in file order, layers, and rows that are run again in full precision."""

from __future__ import annotations

import numpy as np
import pytest
from support.layered_extractors import LIMIT, FileOrder, Layered, NotEvenInFloat32, Overflowing

from geneb.embedding.canary import canary_sequences, make_canary
from geneb.embedding.engine import Engine, NonFiniteError, RowError
from geneb.extractors.base import LAST, Batch
from geneb.testing.extractors import bases

SEQUENCES = [bases(length, seed=length) for length in (20, 130, 7, 50, 51, 200, 33, 20)]


def test_windows_are_averaged_by_their_weights():
    """Against the sum written out; what fits in one piece is not touched."""
    extractor = Layered(long_input="windows")
    engine = Engine(extractor, 120)
    items = engine.prepare(SEQUENCES)

    vectors = engine.embed(items)

    plain = Layered()
    for sequence, vector in zip(SEQUENCES, vectors, strict=True):
        starts = [*range(0, max(0, len(sequence) - LIMIT), LIMIT), max(0, len(sequence) - LIMIT)]
        pieces = plain.embed([sequence[start : start + LIMIT] for start in starts])
        weights = np.arange(1, len(pieces) + 1)
        expected = (pieces * weights[:, np.newaxis]).sum(axis=0) / weights.sum()
        # One rounding to float32.
        np.testing.assert_allclose(vector, expected, rtol=1e-6)
    assert engine.tokens == sum(item.length for item in items)
    np.testing.assert_array_equal(vectors, extractor.embed(SEQUENCES))
    np.testing.assert_array_equal(vectors, engine.embed_alone(items)[LAST])


def test_a_failing_window_names_its_sequence():
    """Positions are those of the sequences, not of the windows that were run."""

    class Failing(Layered):
        def forward(self, batch, layers):
            if any("GGGGGGGG" in item.payload for item in batch.items):
                raise ValueError("eight G")
            return super().forward(batch, layers)

    engine = Engine(Failing(long_input="windows"), 50)
    sequences = [*SEQUENCES, "AC" * 70 + "G" * 10]

    with pytest.raises(RowError) as caught:
        engine.embed(engine.prepare(sequences))

    assert caught.value.rows.tolist() == [len(sequences) - 1]


def test_batches_in_file_order():
    """Eight rows at a time, as they stand, padded to the longest of them."""
    sequences = [bases(10 + 3 * (number * 7 % 13), seed=number) for number in range(21)]
    engine = Engine(FileOrder(), 10)

    vectors = engine.embed(engine.prepare(sequences))

    for first in range(0, 21, 8):
        items = engine.prepare(sequences[first : first + 8])
        batch = Batch(items, max(item.length for item in items))
        expected = FileOrder().forward(batch, (LAST,))[LAST]
        np.testing.assert_array_equal(vectors[first : first + 8], expected)


def test_a_canary_in_file_order_is_made_like_rows():
    """Company changes its vectors, and is meant to."""
    engine = Engine(FileOrder(), 10)

    canary = make_canary(engine)[LAST]

    np.testing.assert_array_equal(engine.embed(engine.prepare(canary_sequences())), canary)


def test_layers_come_from_one_pass():
    """Each as if it had been asked for alone; the model runs once."""

    class Counted(Layered):
        calls = 0

        def forward(self, batch, layers):
            self.calls += 1
            return super().forward(batch, layers)

    one, all_at_once = Engine(Counted(), 100), Engine(Counted(), 100)
    items = one.prepare(SEQUENCES)

    found = all_at_once.embed_layers(items, ("0", "1", "2"))

    for layer in ("0", "1", "2"):
        alone = one.embed_layers(items, (layer,))[layer]
        np.testing.assert_array_equal(alone, found[layer])
    assert one.extractor.calls == 3 * all_at_once.extractor.calls


def test_an_overflow_is_run_again_in_float32():
    """Only the rows that need it, and each layer as it is when asked for alone."""
    engine = Engine(Overflowing(), 120)
    items = engine.prepare([*SEQUENCES, "A" * 40, "A" * 30 + "C" * 19])

    found = engine.embed_layers(items, ("0", "1", "2"))

    expected = Engine(Layered(), 120).embed_layers(items, ("0", "1", "2"))
    for layer, vectors in expected.items():
        np.testing.assert_array_equal(vectors, found[layer])
    assert engine.float32_retries == 2


def test_an_overflow_of_one_layer_leaves_the_others():
    """Half precision stays half precision where it was finite."""

    class Telling(Overflowing):
        def forward_in_float32(self, batch, layers):
            found = super().forward_in_float32(batch, layers)
            return {layer: vectors + np.float32(1000) for layer, vectors in found.items()}

    engine = Engine(Telling(), 120)
    items = engine.prepare(["A" * 40])

    found = engine.embed_layers(items, ("0", "1"))

    assert found["0"].max() < 1000 <= found["1"].min()


def test_what_is_not_finite_in_float32_either_is_named():
    """The retry is counted, and the rows are told."""
    engine = Engine(NotEvenInFloat32(), 120)

    with pytest.raises(NonFiniteError, match=r"for 1 sequence\(s\)") as caught:
        engine.embed(engine.prepare(["ACGT", "A" * 40 + "CG" * 5, "GC"]))

    assert caught.value.rows.tolist() == [1]
    assert engine.float32_retries == 1


def test_too_little_memory_for_float32_is_met_by_halving():
    """As everywhere; the rows come back in order."""

    class Narrow(Overflowing):
        def forward_in_float32(self, batch, layers):
            if len(batch.items) > 1:
                raise MemoryError
            return super().forward_in_float32(batch, layers)

    engine = Engine(Narrow(), 1000)
    items = engine.prepare(["A" * length for length in (48, 47, 46, 45)])

    np.testing.assert_array_equal(Engine(Layered(), 1000).embed(items), engine.embed(items))
    assert engine.out_of_memory_splits == 3

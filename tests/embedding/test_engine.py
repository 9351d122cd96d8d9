"""The engine restores order, survives a lack of memory, and names what goes wrong."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geneb.embedding.engine import Engine, NonFiniteError, RowError
from geneb.errors import InputError, WorkError
from geneb.extractors.base import LAST, Description, Extractor, Item


class Telling(Extractor):
    """A row's vector: its own number, its length, and the padded length it was given."""

    name = "telling"

    def __init__(self, batching="masked", memory=None) -> None:
        self.batching = batching
        self.memory = memory
        self.batches: list[int] = []

    def prepare(self, sequences):
        return [Item(number, len(text)) for number, text in enumerate(sequences)]

    def forward(self, batch, layers):
        if self.memory is not None and len(batch.items) * batch.padded_length > self.memory:
            raise MemoryError
        self.batches.append(len(batch.items))
        rows = [[item.payload, item.length, batch.padded_length] for item in batch.items]
        return dict.fromkeys(layers, np.array(rows, dtype=np.float32))

    def describe(self):
        return Description(parameters={})


class Returning(Telling):
    """Returns whatever it was constructed with."""

    def __init__(self, value, items=None) -> None:
        super().__init__()
        self.value = value
        self.items = items

    def prepare(self, sequences):
        return super().prepare(sequences) if self.items is None else self.items

    def forward(self, batch, layers):
        return self.value


def sequences_of(lengths):
    return ["A" * length for length in lengths]


lengths = st.lists(st.integers(0, 300), min_size=1, max_size=60)


@given(lengths, st.sampled_from(["masked", "equal-length", "alone"]), st.integers(1, 2000))
def test_order_is_restored(lengths, batching, budget):
    """Vectors come back in the order of the sequences, however they were batched."""
    engine = Engine(Telling(batching), budget)

    vectors = engine.embed(engine.prepare(sequences_of(lengths)))

    assert list(range(len(lengths))) == vectors[:, 0].tolist()
    assert lengths == vectors[:, 1].tolist()
    assert sum(lengths) == engine.tokens


@given(lengths, st.integers(304, 2000))
def test_too_little_memory_changes_no_number(lengths, memory):
    """A batch is halved at the same padded length until it fits; how often is counted."""
    roomy, narrow = Engine(Telling(), 4096), Engine(Telling(memory=memory), 4096)
    items = roomy.prepare(sequences_of(lengths))

    expected = roomy.embed(items)
    found = narrow.embed(items)

    np.testing.assert_array_equal(expected, found)
    # A batch that was not halved is one call; each halving makes one more.
    more = len(narrow.extractor.batches) - len(roomy.extractor.batches)
    assert more == narrow.out_of_memory_splits
    assert roomy.out_of_memory_splits == 0


class OutOfMemoryError(RuntimeError):
    """Called what torch calls its own."""


def test_torchs_lack_of_memory_is_known_by_name():
    """The engine does not import torch to know it."""

    class Device(Telling):
        def forward(self, batch, layers):
            if len(batch.items) > 2:
                raise OutOfMemoryError("CUDA out of memory")
            return super().forward(batch, layers)

    engine = Engine(Device(), 1000)

    engine.embed(engine.prepare(sequences_of([10] * 8)))

    assert engine.extractor.batches == [2, 2, 2, 2]
    assert engine.out_of_memory_splits == 3


def test_one_sequence_that_is_too_long_is_named():
    """There is nothing left to halve: which row, and how long it is."""
    engine = Engine(Telling(memory=500), 10_000)

    with pytest.raises(RowError, match="not enough memory") as caught:
        engine.embed(engine.prepare(sequences_of([10, 900, 20])))

    assert caught.value.rows.tolist() == [1]
    assert "928 padded tokens" in caught.value.found
    assert caught.value.exit_code == 1


def test_a_buffer_that_is_used_again_does_no_harm():
    """An extractor may write every batch into the same array."""

    class Buffered(Telling):
        buffer = np.empty((64, 3), dtype=np.float32)

        def forward(self, batch, layers):
            rows = self.buffer[: len(batch.items)]
            rows[:] = super().forward(batch, layers)[LAST]
            return {LAST: rows}

    lengths = [10, 200, 10, 150, 10, 200, 12]
    plain, buffered = Engine(Telling(), 64), Engine(Buffered(memory=304), 4096)
    items = plain.prepare(sequences_of(lengths))

    np.testing.assert_array_equal(plain.embed(items), buffered.embed(items))
    assert buffered.out_of_memory_splits > 0
    assert list(range(7)) == buffered.embed_alone(items)[LAST][:, 0].tolist()


def test_rows_that_are_not_finite_are_named():
    """By their positions among the items, all of them."""

    class Overflowing(Telling):
        def forward(self, batch, layers):
            vectors = super().forward(batch, layers)[LAST]
            vectors[vectors[:, 1] > 100, 2] = np.nan
            return {LAST: vectors}

    engine = Engine(Overflowing(), 1000)

    with pytest.raises(NonFiniteError, match=r"for 2 sequence\(s\)") as caught:
        engine.embed(engine.prepare(sequences_of([10, 200, 20, 300])))

    assert caught.value.rows.tolist() == [1, 3]


def good(rows=3, dim=2, dtype=np.float32):
    return np.zeros((rows, dim), dtype=dtype)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (good(), "float32 of shape (3, 2)"),
        ({}, "NoneType"),
        ({"other": good()}, "NoneType"),
        ({LAST: good().tolist()}, "list"),
        ({LAST: good(dtype=np.float64)}, "float64 of shape (3, 2)"),
        ({LAST: good(rows=2)}, "float32 of shape (2, 2)"),
        ({LAST: good(dim=0)}, "float32 of shape (3, 0)"),
        ({LAST: np.zeros(3, dtype=np.float32)}, "float32 of shape (3,)"),
        (None, "NoneType"),
    ],
)
def test_a_broken_forward_is_named(value, found):
    """What came back instead of one float32 row an item."""
    engine = Engine(Returning(value), 1000)

    with pytest.raises(WorkError, match=r"telling broke its contract in forward\(\)") as caught:
        engine.embed(engine.prepare(sequences_of([5, 5, 5])))

    assert found == caught.value.found


def test_a_dimension_that_changes_is_named():
    """All vectors of a run are of one width."""
    extractor = Returning({LAST: good(1)})
    engine = Engine(extractor, 1000)
    items = engine.prepare(["A"])
    engine.embed(items)
    extractor.value = {LAST: good(1, dim=3)}

    with pytest.raises(WorkError) as caught:
        engine.embed(items)

    assert "(1, 2)" in caught.value.expected
    assert "(1, 3)" in caught.value.found


@pytest.mark.parametrize(
    "items", [[], [Item("A", 1)] * 3, ["A", "C"], (Item("A", 1),) * 2, None, [Item("A", -1)] * 2]
)
def test_a_broken_prepare_is_named(items):
    """One item a sequence, in a list."""
    engine = Engine(Returning({LAST: good()}, items=items), 1000)
    if items is None:
        engine.extractor.prepare = lambda sequences: None

    with pytest.raises(WorkError, match=r"telling broke its contract in prepare\(\)"):
        engine.prepare(["A", "C"])


def test_a_mistake_in_an_extractor_is_named_with_its_line():
    """No traceback: what was raised, where, and for which rows."""

    class Mistaken(Telling):
        def prepare(self, sequences):
            return super().prepare(sequences) if sequences else sequences[0]

        def forward(self, batch, layers):
            raise ZeroDivisionError("by zero")

    engine = Engine(Mistaken(), 1000)

    with pytest.raises(WorkError, match=r"failed in prepare\(\)") as caught:
        engine.prepare([])
    assert "IndexError" in caught.value.found
    assert "of test_engine.py" in caught.value.found
    with pytest.raises(RowError, match=r"failed in forward\(\)") as caught:
        engine.embed(engine.prepare(["A", "C"]))
    assert caught.value.found.startswith("ZeroDivisionError: by zero (line ")
    assert caught.value.rows.tolist() == [0, 1]


def test_an_extractors_own_message_is_passed_on():
    """One that speaks geneb's language is not wrapped."""

    class Speaking(Telling):
        def forward(self, batch, layers):
            raise InputError("the tokenizer lacks a letter")

    engine = Engine(Speaking(), 1000)

    with pytest.raises(InputError, match="lacks a letter"):
        engine.embed(engine.prepare(["A"]))


def test_alone_is_without_padding_and_together_with_the_most():
    """What batches are compared with, and the hardest batch that there is."""
    engine = Engine(Telling(), 64)
    items = engine.prepare(sequences_of([9, 81, 300]))

    assert engine.embed_alone(items)[LAST][:, 2].tolist() == [9, 81, 300]
    assert engine.embed_together(items)[LAST][:, 2].tolist() == [304, 304, 304]
    assert engine.tokens == 0


@pytest.mark.parametrize("batching", ["masked", "equal-length", "alone"])
def test_batches_end_at_what_the_model_takes(batching):
    """No padded length beyond ``max_length``, in batches and in the widest one."""
    extractor = Telling(batching)
    extractor.max_length = 250
    engine = Engine(extractor, 4096)
    items = engine.prepare(sequences_of([3, 240, 249, 250]))

    widths = [*engine.embed(items)[:, 2], *engine.embed_together(items)[LAST][:, 2]]

    assert max(widths) == 250


@pytest.mark.parametrize("method", ["prepare", "forward"])
def test_an_exit_in_an_extractor_is_a_failure(method):
    """sys.exit() must not end geneb as if all were well."""

    def leave(*_):
        raise SystemExit

    extractor = Telling()
    setattr(extractor, method, leave)
    engine = Engine(extractor, 100)

    with pytest.raises(WorkError, match="failed in") as caught:
        engine.embed(engine.prepare(["ACGT"]))

    assert "SystemExit" in caught.value.found

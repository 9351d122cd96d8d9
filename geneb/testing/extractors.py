"""What every extractor promises, as tests; pytest collects them from a subclass.

How an extractor is run and what is looked at is in `geneb.testing.extractor_checks`.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar, get_args

import numpy as np

from geneb.embedding.batches import padded_length
from geneb.extractors.base import LAST, Batch, Batching, Extractor, Item, flatten
from geneb.testing.extractor_checks import (
    assert_close,
    assert_same_bits,
    bases,
    check_array,
    check_vectors,
    check_windows,
    described,
    embed_in_batches,
    forward_rows,
    is_count,
    longest_that_fits,
    shapes,
)

# What the test with threads repeats, and how many vectors it computes each time.
_ROUNDS = 5
_COMPARED = 3
# A model's limit in tokens is looked for among so many letters a token, where it is not beyond
# what takes a moment to prepare; and it is run into where that takes no more than a moment.
_LETTERS_A_TOKEN = 16
_TOKENS_PREPARED = 16_384
_TOKENS_RUN = 4096

AWKWARD = (
    "",
    "A",
    "AC",
    "ACG",
    "acgtacgtacgtacgtacgtacgt",
    "ACGUACGUACGUACGUACGUACGU",
    "N" * 40,
    "ACGTNNNNNNACGTACGTNACGTA",
    "RYSWKMBDHVRYSWKMBDHV",
    "ACGT-ACGT ACGT*ACGT.ACGT",
    "ACGTßACGTéACGT漢ACGT\U0001f9ecACGT",
    bases(3000, seed=99),
)
"""Empty, shorter than any k-mer, lower case, U, N, IUPAC, gaps, other scripts, and long."""


class ExtractorContract:
    """The tests that an extractor must pass.

    Subclass it in a test file, name the subclass ``Test...`` and write `make`::

        class TestMine(ExtractorContract):
            def make(self):
                return MyExtractor()

    Attributes
    ----------
    tolerance
        How far a vector may move with its batch: share of the row's root mean square.
    tolerance_in_half
        The same for an extractor that declares that it computes in bfloat16 or float16, and how
        far its vectors may be from those of `Extractor.forward_in_float32`.
    sequences
        Ordinary sequences, of several lengths, some lengths more than once.
    awkward
        Sequences that must be handled all the same, see `AWKWARD`.
    token_budget
        Padded tokens a batch.
    layers
        The layers to ask for.
    """

    tolerance: ClassVar[float] = 1e-5
    tolerance_in_half: ClassVar[float] = 5e-2
    sequences: ClassVar[Sequence[str]] = tuple(
        bases(length, seed)
        for seed, length in enumerate((50, 12, 101, 50, 12, 77, 200, 101, 51, 50, 200, 33))
    )
    awkward: ClassVar[Sequence[str]] = AWKWARD
    token_budget: ClassVar[int] = 512
    layers: ClassVar[Sequence[str]] = (LAST,)

    # What a subclass says about its extractor.

    def make(self) -> Extractor:
        """Return a new extractor; always with the same parameters."""
        raise NotImplementedError("write make(): it returns a new instance of your extractor")

    def variants(self) -> Sequence[Extractor]:
        """Return extractors whose parameters differ from `make`'s and from each other's."""
        return ()

    def limit(self, extractor: Extractor) -> int | None:
        """Return how many letters are looked at; None where there is no limit in letters.

        The default is the extractor's attribute ``limit``.
        """
        return getattr(extractor, "limit", None)

    # What it declares.

    def test_it_declares_what_it_is(self) -> None:
        """``name``, ``numerics_version`` and ``batching`` have values that a store can record."""
        extractor = self.make()

        assert isinstance(extractor.name, str), f"name is {extractor.name!r}"
        assert extractor.name, "name is empty"
        assert type(extractor.numerics_version) is int, (
            f"numerics_version is {extractor.numerics_version!r}, not a whole number"
        )
        assert extractor.batching in get_args(Batching), f"batching is {extractor.batching!r}"
        assert is_count(extractor.batch_size), f"batch_size is {extractor.batch_size!r}"
        for name in ("max_length", "layer_count"):
            value = getattr(extractor, name)
            assert value is None or is_count(value), f"{name} is {value!r}"
        if extractor.needs_weights:
            assert extractor.describe().weights, "it needs weights, and describe() tells of none"

    def test_the_description_is_json_and_stable(self) -> None:
        """Two calls and two instances describe themselves with the same JSON."""
        extractor = self.make()

        first = described(extractor)

        assert first == described(extractor), "describe() changed between two calls"
        assert first == described(self.make()), "describe() differs between two instances"

    def test_the_description_is_not_changed_by_use(self) -> None:
        """Embedding something leaves the description as it was."""
        extractor = self.make()
        first = described(extractor)

        self._embed(extractor, self.sequences)

        assert first == described(extractor), "describe() changed when sequences were embedded"

    def test_other_parameters_are_described_otherwise(self) -> None:
        """`make` and all `variants` have descriptions of their own."""
        descriptions = [described(extractor) for extractor in (self.make(), *self.variants())]

        assert len(set(descriptions)) == len(descriptions), (
            "two extractors with different parameters describe() themselves alike: "
            "their embeddings could end up in one store"
        )

    # What prepare makes.

    def test_prepare_makes_one_item_a_sequence(self) -> None:
        """Whatever a sequence holds, it is one item with a length of 0 or more."""
        sequences = [*self.awkward, *self.sequences]

        items = self.make().prepare(sequences)

        assert len(items) == len(sequences), f"{len(sequences)} sequences, {len(items)} items"
        for sequence, item in zip(sequences, items, strict=True):
            assert isinstance(item, Item), f"{type(item).__name__} instead of Item"
            assert type(item.length) is int, f"the length {item.length!r} is not an int"
            assert item.length >= 0, f"the length {item.length} of {sequence[:40]!r}"
            assert type(item.truncated) is bool, f"truncated is {item.truncated!r}"
            check_windows(item)

    def test_prepare_looks_at_each_sequence_alone(self) -> None:
        """An item has the same length, mark and vector whatever it was prepared with."""
        extractor = self.make()

        together = extractor.prepare(self.sequences)

        for sequence, item in zip(self.sequences, together, strict=True):
            (alone,) = extractor.prepare([sequence])
            assert shapes([alone]) == shapes([item]), (
                f"prepare() treats {sequence[:40]!r} otherwise beside other sequences"
            )
            assert_same_bits(
                forward_rows(extractor, [alone]),
                forward_rows(extractor, [item]),
                "an item depends on what it was prepared with, or items are out of order",
            )

    def test_prepare_may_run_in_several_threads(self) -> None:
        """Threads that prepare different sequences at the same time get their own items."""
        extractor = self.make()
        orders = [[*self.sequences[first:], *self.sequences[:first]] for first in range(4)]
        expected = [extractor.prepare(order) for order in orders]
        barrier = threading.Barrier(len(orders))

        def prepare(order: list[str]) -> list[list[Item]]:
            barrier.wait()
            return [extractor.prepare(order) for _ in range(_ROUNDS)]

        with ThreadPoolExecutor(len(orders)) as pool:
            found = list(pool.map(prepare, orders))

        for once, rounds in zip(expected, found, strict=True):
            for items in rounds:
                assert shapes(once) == shapes(items), "threads got each other's items"
            for item, in_thread in zip(once[:_COMPARED], rounds[-1][:_COMPARED], strict=True):
                assert_same_bits(
                    forward_rows(extractor, [item]),
                    forward_rows(extractor, [in_thread]),
                    "threads got each other's items",
                )

    def test_what_is_over_the_limit_is_marked_and_nothing_else(self) -> None:
        """``truncated`` is set from one letter above the limit on, and not below."""
        extractor = self.make()
        limit = self.limit(extractor)
        if limit is None:
            return
        lengths = (limit - 1, limit, limit + 1, 3 * limit + 7)
        sequences = [bases(length, seed=length) for length in lengths]

        items = extractor.prepare(sequences)

        assert [item.truncated for item in items] == [False, False, True, True], (
            f"truncated is {[item.truncated for item in items]} at {lengths} letters, "
            f"where the limit is {limit}"
        )
        check_vectors(self._embed(extractor, sequences), len(sequences))

    def test_no_item_is_longer_than_the_model_takes(self) -> None:
        """At ``max_length`` tokens, one below, one above, far above: cut, or in windows."""
        extractor = self.make()
        limit = extractor.max_length
        if limit is None or limit > _TOKENS_PREPARED:
            return
        letters = bases(_LETTERS_A_TOKEN * limit, seed=limit)
        fitting = longest_that_fits(extractor, letters)
        lengths = (max(0, fitting - 1), fitting, fitting + 1, len(letters))
        sequences = [letters[:length] for length in lengths]

        items = extractor.prepare(sequences)

        for length, item in zip(lengths, items, strict=True):
            longest = max(part.length for part in item.windows or (item,))
            assert longest <= limit, (
                f"{length} letters became {longest} tokens, where the model takes {limit}"
            )
            over = item.truncated or bool(item.windows)
            if length < fitting:
                continue  # fewer letters may be more tokens: of a broken 6-mer, five
            assert over == (length > fitting), (
                f"{length} letters are {'' if over else 'not '}marked as over the limit, which is "
                f"at {fitting} letters"
            )
        if limit <= _TOKENS_RUN:
            check_vectors(self._embed(extractor, sequences), len(sequences))

    # What forward returns.

    def test_vectors_are_float32_rows_of_one_width(self) -> None:
        """Each layer is a float32 array of one finite row a sequence; the width never changes."""
        extractor = self.make()

        ordinary = self._embed(extractor, self.sequences)
        awkward = self._embed(extractor, self.awkward)

        check_vectors(ordinary, len(self.sequences))
        check_vectors(awkward, len(self.awkward))
        for layer in self.layers:
            assert ordinary[layer].shape[1] == awkward[layer].shape[1], (
                f"layer {layer} is {ordinary[layer].shape[1]} wide, then {awkward[layer].shape[1]}"
            )

    def test_each_awkward_sequence_is_one_row(self) -> None:
        """No sequence is dropped or refused, also when it comes alone."""
        extractor = self.make()

        widths = set()
        for sequence in self.awkward:
            vectors = self._embed(extractor, [sequence])
            check_vectors(vectors, 1)
            widths.add(tuple(array.shape[1] for array in vectors.values()))
        assert len(widths) == 1, f"rows of several widths: {sorted(widths)}"

    def test_neighbours_do_not_matter(self) -> None:
        """A vector is the same, within the tolerance, in a full batch and alone.

        Unless batches are in file order: what is repeated then depends on them.
        """
        extractor = self.make()
        if extractor.batching == "file-order":
            return
        sequences = [*self.sequences, *self.awkward]

        together = self._embed(extractor, sequences)

        for row, sequence in enumerate(sequences):
            alone = self._embed(extractor, [sequence])
            for layer in self.layers:
                self._assert_close(
                    extractor,
                    alone[layer][0],
                    together[layer][row],
                    f"the vector of {sequence[:40]!r} depends on the batch, or rows are out of "
                    "order",
                )

    def test_order_does_not_matter(self) -> None:
        """The same sequences in another order have the same vectors, in that order.

        Unless batches are in file order.
        """
        extractor = self.make()
        if extractor.batching == "file-order":
            return
        order = np.random.default_rng(0).permutation(len(self.sequences))

        straight = self._embed(extractor, self.sequences)
        shuffled = self._embed(extractor, [self.sequences[row] for row in order])

        for layer in self.layers:
            for position, row in enumerate(order):
                self._assert_close(
                    extractor,
                    straight[layer][row],
                    shuffled[layer][position],
                    "a vector depends on the order of the sequences",
                )

    def test_padding_does_not_matter(self) -> None:
        """Where ``batching`` is ``masked``, one batch may hold all lengths, padded to any."""
        extractor = self.make()
        if extractor.batching != "masked":
            return
        items = flatten(extractor.prepare(self.sequences)).items
        limit = extractor.max_length
        widest = 2 * max(item.length for item in items)
        if limit is not None:
            widest = min(widest, limit)

        wide = extractor.forward(Batch(items, padded_length(widest, limit)), self.layers)

        for row, item in enumerate(items):
            alone = extractor.forward(Batch([item], item.length), self.layers)
            for layer in self.layers:
                self._assert_close(
                    extractor,
                    alone[layer][0],
                    wide[layer][row],
                    "padding enters the vectors of a batch",
                )

    def test_embed_is_the_same_as_batches(self) -> None:
        """``embed`` returns what the engine gets from ``prepare`` and ``forward``.

        Unless batches are in file order: ``embed`` goes through sequences one at a time.
        """
        extractor = self.make()
        if extractor.batching == "file-order":
            return

        # `SimpleExtractor.embed` is what comes after the cut.
        whole = [
            sequence
            for sequence, item in zip(
                self.sequences, extractor.prepare(self.sequences), strict=True
            )
            if not item.truncated
        ]
        assert whole, "all of the contract's sequences are cut: set shorter ones"

        plain = extractor.embed(whole)
        batched = self._embed(extractor, whole, (LAST,))[LAST]

        assert plain.shape == batched.shape, f"embed() has shape {plain.shape}"
        assert plain.dtype == np.float32, f"embed() returns {plain.dtype}"
        for expected, found in zip(plain, batched, strict=True):
            self._assert_close(extractor, expected, found, "embed() and forward() disagree")

    def test_layers_do_not_depend_on_each_other(self) -> None:
        """Each layer has the same bits whether it is asked for alone or with the others."""
        extractor = self.make()

        together = self._embed(extractor, self.sequences)

        for layer in self.layers:
            alone = self._embed(extractor, self.sequences, (layer,))
            assert [layer] == list(alone), f"asked for layer {layer}, got {list(alone)}"
            assert_same_bits(together[layer], alone[layer], f"layer {layer} depends on the others")

    def test_layers_have_numbers(self) -> None:
        """Where layers can be asked for by number, describe() states the number of ``last``'s."""
        extractor = self.make()
        if extractor.layer_count is None:
            return
        own = extractor.describe().parameters.get("layer")
        assert type(own) is int, f"describe() states the layer {own!r}, not a number"
        names = [str(number) for number in range(extractor.layer_count)]
        assert str(own) in names, f"layer {own} is beyond layer_count {extractor.layer_count}"

        vectors = self._embed(extractor, self.sequences, (*names, LAST))

        check_vectors(vectors, len(self.sequences))
        assert_same_bits(vectors[str(own)], vectors[LAST], f"layer {own} is not the last layer")

    def test_full_precision_is_near(self) -> None:
        """A model in half precision can be run in float32 too, where it says so."""
        extractor = self.make()
        items = flatten(extractor.prepare(self.sequences)).items
        if extractor.batching != "masked":
            items = items[:1]
        batch = Batch(items, max(item.length for item in items))

        precise = extractor.forward_in_float32(batch, self.layers)

        if precise is None:
            return
        usual = extractor.forward(batch, self.layers)
        for layer in self.layers:
            check_array(precise[layer], len(items))
            for expected, found in zip(precise[layer], usual[layer], strict=True):
                self._assert_close(extractor, expected, found, "forward_in_float32() is far away")

    def test_one_batch_twice_gives_the_same_bits(self) -> None:
        """Nothing is left in training mode: no dropout, no statistics of a batch."""
        extractor = self.make()
        items = flatten(extractor.prepare(self.sequences)).items[:1]

        first, second = (forward_rows(extractor, items) for _ in range(2))

        assert_same_bits(first, second, "one batch gave two results")

    def test_the_same_input_gives_the_same_bits(self) -> None:
        """Nothing is random, and nothing is remembered from one batch to the next."""
        extractor = self.make()

        first = self._embed(extractor, self.sequences)
        self._embed(extractor, self.awkward)
        second = self._embed(extractor, self.sequences)

        for layer in self.layers:
            assert_same_bits(first[layer], second[layer], "the same input gave other numbers")

    def test_a_new_instance_gives_the_same_bits(self) -> None:
        """What a resumed run loads makes the same numbers."""
        first = self._embed(self.make(), self.sequences)
        second = self._embed(self.make(), self.sequences)

        for layer in self.layers:
            assert_same_bits(first[layer], second[layer], "a new instance gave other numbers")

    # Helpers.

    def _embed(
        self,
        extractor: Extractor,
        sequences: Sequence[str],
        layers: Sequence[str] | None = None,
    ) -> dict[str, np.ndarray]:
        return embed_in_batches(extractor, sequences, layers or self.layers, self.token_budget)

    def _assert_close(
        self, extractor: Extractor, expected: np.ndarray, found: np.ndarray, problem: str
    ) -> None:
        in_half = extractor.describe().compute_dtype in ("bfloat16", "float16")
        allowed = self.tolerance_in_half if in_half else self.tolerance
        assert_close(expected, found, allowed, problem)

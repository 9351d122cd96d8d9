"""The extractor contract: what turns sequences into vectors.

An extractor says how one model is run. Batching, order, windows, strands and the check that every
number is finite belong to the engine (`geneb.embedding`), once, and not to extractors.
`geneb.testing.ExtractorContract` holds every extractor to what is promised here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np

from geneb.errors import InputError

Batching = Literal["masked", "equal-length", "alone", "file-order"]
"""How rows may be put into one batch: ``masked`` models ignore padding, so rows of different
lengths may meet; models without a mask get rows of one length, or one row at a time.
``file-order`` is for repeating published numbers that depend on the batch: rows as they stand in
the file, `Extractor.batch_size` at a time, padded to the longest of the batch; none is left out."""

LAST = "last"


@dataclass(frozen=True, slots=True)
class Item:
    """One sequence, made ready for the model.

    Attributes
    ----------
    payload
        Whatever `Extractor.forward` needs: token ids, the sequence itself.
    length
        What it costs: tokens (or letters) before padding. 0 for a sequence with nothing in it.
    truncated
        Whether something was cut off to fit the model's limit.
    windows
        The pieces of a sequence that is longer than the limit and is not cut; empty for all
        others. The engine runs the pieces as items of their own and averages their vectors;
        ``payload`` is then not used, and ``length`` is the sum of theirs.
    weight
        What a window counts in that average.
    """

    payload: Any
    length: int
    truncated: bool = False
    windows: tuple[Item, ...] = ()
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Batch:
    """Items that go through the model together.

    Attributes
    ----------
    items
        At least one.
    padded_length
        The length that every row of the batch is padded to; at least the longest item's, and
        beyond that never more than the extractor's `Extractor.max_length`. It is a function of
        the items' own lengths, so that it never depends on their neighbours.
    """

    items: Sequence[Item]
    padded_length: int


@dataclass(frozen=True)
class Description:
    """What of an extractor changes its numbers; all of it enters a store's fingerprint.

    Attributes
    ----------
    parameters
        Layer, pooling, special tokens, limits, policies for lower case, U and N, and whatever
        else the extractor can be told. JSON values only.
    weights
        SHA-256 of the weights' content; None where there are none.
    tokenizer
        SHA-256 of the tokenizer's content; None where there is none.
    file
        SHA-256 of the extractor's file where it was given as one.
    compute_dtype, matmul_precision
        What the model computes in: ``float32``, ``bfloat16``, ``float16``; and ``highest`` for
        full float32 products, ``tf32`` where those were allowed. Only the two halves are allowed
        the differences of half precision; whatever else stands there is held to float32's.
    """

    parameters: Mapping[str, Any]
    weights: str | None = None
    tokenizer: str | None = None
    file: str | None = None
    compute_dtype: str = "float32"
    matmul_precision: str = "highest"


@dataclass(frozen=True)
class Parts:
    """What is run for a list of items: the items themselves, or their windows.

    Attributes
    ----------
    items
        Without windows of their own.
    owners
        int64, shape (parts,): the position of the item that each part belongs to, ascending.
    weights
        float64, shape (parts,): what each part counts in its item's vector.
    """

    items: list[Item]
    owners: np.ndarray
    weights: np.ndarray


def flatten(items: Sequence[Item]) -> Parts:
    """Return the items to run, windows in the place of what they are windows of."""
    pieces = [(row, piece) for row, item in enumerate(items) for piece in item.windows or (item,)]
    return Parts(
        [piece for _, piece in pieces],
        np.array([row for row, _ in pieces], dtype=np.int64),
        np.array([piece.weight for _, piece in pieces], dtype=np.float64),
    )


def combine(vectors: np.ndarray, parts: Parts) -> np.ndarray:
    """Average the vectors of windows, in float64; those of whole items stay as they are.

    Parameters
    ----------
    vectors
        float32, shape (parts, dim).

    Returns
    -------
    ndarray of float32, shape (items, dim)
    """
    starts = np.flatnonzero(np.diff(parts.owners, prepend=-1))
    if len(starts) == len(vectors):
        return vectors
    combined = vectors[starts]
    ends = np.append(starts[1:], len(vectors))
    for row in np.flatnonzero(ends - starts > 1):
        span = slice(starts[row], ends[row])
        combined[row] = np.average(
            vectors[span].astype(np.float64), axis=0, weights=parts.weights[span]
        )
    return combined


class Extractor(ABC):
    """Turns sequences into vectors, a batch at a time.

    Attributes
    ----------
    name
        The extractor's name, the same for all models that it can run.
    numerics_version
        Raised whenever the same input gives other numbers than before.
    batching
        See `Batching`.
    max_length
        Tokens that the model can take; batches are not padded beyond it. None where padding to
        any length is fine.
    batch_size
        Rows a batch where ``batching`` is ``file-order``; not looked at otherwise.
    layer_count
        How many layers can be asked for by number, from ``"0"`` on; the number of the one that
        is given as ``last`` stands in `describe` as the parameter ``layer``. None where there is
        one layer only.
    needs_weights
        Whether it is constructed with a folder of weights, and with all of the user's
        `geneb.extractors.options.ModelOptions`.
    defaults
        What `describe` states as ``layer``, ``pooling``, ``preset`` and ``long input`` where a
        user asks for nothing else: vectors made otherwise are known under another name. Empty
        where that is not known.
    """

    name: ClassVar[str]
    numerics_version: ClassVar[int] = 1
    batching: Batching = "masked"
    max_length: int | None = None
    batch_size: int = 1
    layer_count: int | None = None
    needs_weights: ClassVar[bool] = False
    defaults: Mapping[str, Any] = MappingProxyType({})

    @abstractmethod
    def prepare(self, sequences: Sequence[str]) -> list[Item]:
        """Make sequences ready, one item each, in order. Runs on the CPU, in any thread.

        Lower case, U, N, other letters, empty and over-long sequences each have one behaviour,
        stated in `describe`; the number of rows never changes.
        """

    @abstractmethod
    def forward(self, batch: Batch, layers: Sequence[str]) -> dict[str, np.ndarray]:
        """Run the model on one batch.

        Parameters
        ----------
        batch
            What `prepare` made, grouped by the engine.
        layers
            Names of the layers wanted; ``("last",)`` where the model's own default is meant.

        Returns
        -------
        dict of str to ndarray
            For each layer float32 of shape (rows of the batch, dim), in the batch's order. A
            row's vector depends on that row alone.
        """

    @abstractmethod
    def describe(self) -> Description:
        """Return what of this extractor changes its numbers."""

    def forward_in_float32(
        self, batch: Batch, layers: Sequence[str]
    ) -> dict[str, np.ndarray] | None:
        """Run the model on one batch in full precision, where `forward` computes in less.

        The engine asks for it where `forward` gave NaN or infinity.

        Returns
        -------
        dict of str to ndarray
            As `forward`; None where `forward` computes in float32 already.
        """
        del batch, layers
        return None

    def embed(self, sequences: Sequence[str]) -> np.ndarray:
        """Embed sequences one at a time: slow, and the reference for every faster way.

        (A `SimpleExtractor` is the other way round: its ``embed`` is what it is made of, and it
        sees sequences after they were cut at the limit.)

        Returns
        -------
        ndarray of float32, shape (n, dim)

        Raises
        ------
        ValueError
            If there are no sequences: their dimension is not known then.
        """
        if not sequences:
            raise ValueError("there are no sequences to embed")
        parts = flatten(self.prepare(sequences))
        rows = [
            self.forward(Batch([item], item.length), (LAST,))[LAST].copy() for item in parts.items
        ]
        return combine(np.concatenate(rows), parts)


class SimpleExtractor(Extractor):
    """An extractor of one method: subclass it, set ``name``, write ``embed``.

    ``embed(sequences)`` returns float32 of shape (n, dim) and must give each sequence the same
    vector whatever comes with it; where it pads without a mask, set ``batching`` to
    ``"equal-length"`` or ``"alone"``. ``limit`` is the number of letters that it looks at;
    longer sequences are cut at the right before ``embed`` sees them, and counted.
    """

    limit: int | None = None

    @abstractmethod
    def embed(self, sequences: Sequence[str]) -> np.ndarray:
        """Return one vector a sequence, in order."""

    def prepare(self, sequences: Sequence[str]) -> list[Item]:
        """Cut at the limit."""
        limit = self.limit
        return [
            Item(sequence, len(sequence))
            if limit is None or len(sequence) <= limit
            else Item(sequence[:limit], limit, truncated=True)
            for sequence in sequences
        ]

    def forward(self, batch: Batch, layers: Sequence[str]) -> dict[str, np.ndarray]:
        """Call ``embed`` on the batch.

        Raises
        ------
        InputError
            If another layer than the one it has is asked for.
        """
        if tuple(layers) != (LAST,):
            raise InputError(
                f"extractor {self.name} has one layer",
                expected=LAST,
                found=", ".join(layers),
            )
        return {LAST: self.embed([item.payload for item in batch.items])}

    def describe(self) -> Description:
        """Return the limit; subclasses add their own parameters."""
        return Description(parameters={"limit": self.limit})

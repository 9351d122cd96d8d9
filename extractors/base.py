"""The extractor contract: what turns sequences into vectors.

An extractor says how one model is run. Batching, order, windows, strands and the check that every
number is finite belong to the engine (`geneb.embedding`), once, and not to extractors.
`geneb.testing.ExtractorContract` holds every extractor to what is promised here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from geneb.errors import InputError

Batching = Literal["masked", "equal-length", "alone"]
"""How rows may be put into one batch: ``masked`` models ignore padding, so rows of different
lengths may meet; models without a mask get rows of one length, or one row at a time."""

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
    """

    payload: Any
    length: int
    truncated: bool = False


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
    """

    name: ClassVar[str]
    numerics_version: ClassVar[int] = 1
    batching: Batching = "masked"
    max_length: int | None = None

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
        rows = [
            self.forward(Batch([item], item.length), (LAST,))[LAST]
            for item in self.prepare(sequences)
        ]
        return np.concatenate(rows)


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

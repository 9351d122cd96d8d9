"""A torch network behind the extractor contract: limits, padding, layers and pooling, once.

A family says three things: its tokenizer, its network, and a `Recipe` of how the published
extractor runs them. Everything else is here.
"""

from __future__ import annotations

import copy
import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from geneb.base.text import plain
from geneb.errors import InputError
from geneb.extractors.base import LAST, Batch, Batching, Description, Extractor, Item
from geneb.extractors.options import LongInput, ModelOptions, Pooling
from geneb.extractors.tokenizers import Tokenizer

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


class Network(nn.Module):
    """What turns token ids into hidden states.

    Attributes
    ----------
    layers
        Hidden states beyond the embedding layer's: ``layers`` is the number of the last one.
    """

    layers: int

    @abstractmethod
    def forward(
        self, ids: torch.Tensor, inside: torch.Tensor, wanted: Sequence[int]
    ) -> dict[int, torch.Tensor]:
        """Return hidden states.

        Parameters
        ----------
        ids
            int64, shape (rows, width), padded on the right.
        inside
            bool, shape (rows, width): what is no padding. Every row has one such place at least.
        wanted
            Numbers of hidden states: 0 is the embedding layer's; the largest is what the last
            block gives, after the final norm where there is one.

        Returns
        -------
        dict of int to Tensor
            Each of shape (rows, width, dim), in the network's dtype.
        """


@dataclass(frozen=True)
class Recipe:
    """How a network is run, as its authors or the published extractor do.

    Attributes
    ----------
    limit
        Tokens that it takes, special tokens included; None where nothing is cut.
    pooling
        ``mean``, over a sequence's own tokens and, with ``pool_specials``, its special ones;
        ``cls``, the first token; ``last``, the last one; ``max``, over what the mean is over.
    pool_specials
        Whether special tokens enter ``mean`` and ``max``.
    layer
        Number of the hidden state; None for the last.
    dtype
        What it computes in.
    long_input
        See `geneb.extractors.options.ModelOptions`.
    window_step
        Tokens from one window's start to the next; None for windows that do not overlap, but
        for the last, which is anchored to the end.
    equal_windows
        Whether windows count the same, however many tokens they have.
    notes
        Further parameters that change the numbers; they enter the fingerprint as they are.
    """

    limit: int | None
    pooling: Pooling = "mean"
    pool_specials: bool = True
    layer: int | None = None
    dtype: str = "float32"
    long_input: LongInput = "truncate"
    window_step: int | None = None
    equal_windows: bool = False
    notes: Mapping[str, Any] = field(default_factory=dict)


class TorchExtractor(Extractor):
    """Runs a network on token ids, and pools its hidden states in float32.

    Parameters
    ----------
    tokenizer, network, recipe
        See there.
    weights
        SHA-256 of what the network was loaded from.
    options
        What the user asked for; it goes before the recipe.

    Raises
    ------
    InputError
        If an option does not suit the network.
    """

    needs_weights: ClassVar[bool] = True
    presets: ClassVar[tuple[str, ...]] = ("masked",)
    batch_size = 8  # the published harness's; it matters for the preset ``reference`` only

    def __init__(
        self,
        tokenizer: Tokenizer,
        network: Network,
        recipe: Recipe,
        weights: str,
        options: ModelOptions,
    ) -> None:
        self.tokenizer = tokenizer
        self.recipe = recipe
        self.preset = _choose_preset(options, self.presets)
        self.pooling: Pooling = options.pooling or recipe.pooling
        self.long_input: LongInput = options.long_input or recipe.long_input
        self.layer = _choose_layer(options.layer, recipe.layer, network.layers)
        self.layer_count = network.layers + 1
        self.defaults = {
            "layer": _choose_layer(None, recipe.layer, network.layers),
            "pooling": recipe.pooling,
            "preset": self.presets[0],
            "long input": recipe.long_input,
        }
        self.max_length = recipe.limit
        self.batching: Batching = "file-order" if self.preset == "reference" else "masked"
        self._dtype = options.dtype or recipe.dtype
        self._weights = weights
        self._device = torch.device(options.device)
        self._tf32 = options.tf32 and self._device.type == "cuda"
        self._room = _room(recipe.limit, tokenizer)
        if self.pooling == "cls" and not tokenizer.prefix:
            raise InputError(
                "this model puts no token in front of a sequence, so there is none to pool by",
                where="pooling cls",
                fix="choose mean, last or max",
            )
        _set_determinism(options, tf32=self._tf32)
        self.network = network.to(self._device).eval()
        self._precise: Network | None = None
        self._run: Any = torch.compile(network, dynamic=True) if options.compile else network

    def prepare(self, sequences: Sequence[str]) -> list[Item]:
        """Turn letters into ids, cut or in windows where there are too many, specials around."""
        return [self._item(ids) for ids in self.tokenizer.encode(sequences)]

    def forward(self, batch: Batch, layers: Sequence[str]) -> dict[str, np.ndarray]:
        """Run the network on one batch and pool."""
        return self._forward(self._run, batch, layers)

    def forward_in_float32(
        self, batch: Batch, layers: Sequence[str]
    ) -> dict[str, np.ndarray] | None:
        """Run a copy of the network in float32; it is kept, since more rows may need it."""
        if self._dtype == "float32":
            return None
        if self._precise is None:
            self._precise = copy.deepcopy(self.network).float()
        return self._forward(self._precise, batch, layers)

    def describe(self) -> Description:
        """Return the recipe as it is run."""
        recipe, tokenizer = self.recipe, self.tokenizer
        parameters: dict[str, Any] = {
            "layer": self.layer,
            "pooling": self.pooling,
            "special tokens": {
                "prefix": list(tokenizer.prefix),
                "suffix": list(tokenizer.suffix),
                "pooled": recipe.pool_specials,
            },
            "limit": recipe.limit,
            "long input": self.long_input,
            "preset": self.preset,
            "letters": dict(tokenizer.policy),
            **recipe.notes,
        }
        if self.long_input == "windows":
            parameters["windows"] = {
                "step": recipe.window_step or self._room,
                "weight": "equal" if recipe.equal_windows else "tokens",
            }
        return Description(
            parameters=parameters,
            weights=self._weights,
            tokenizer=tokenizer.sha256,
            compute_dtype=self._dtype,
            matmul_precision="tf32" if self._tf32 else "highest",
        )

    def _item(self, ids: np.ndarray) -> Item:
        room = self._room
        if room is None or len(ids) <= room:
            return self._whole(ids)
        if self.long_input == "truncate":
            return self._whole(ids[:room], truncated=True)
        starts = window_starts(len(ids), room, self.recipe.window_step or room)
        windows = tuple(self._whole(ids[start : start + room]) for start in starts)
        return Item(None, sum(window.length for window in windows), windows=windows)

    def _whole(self, ids: np.ndarray, *, truncated: bool = False) -> Item:
        tokenizer = self.tokenizer
        payload = np.concatenate(
            [np.array(tokenizer.prefix, ids.dtype), ids, np.array(tokenizer.suffix, ids.dtype)]
        )
        weight = 1.0 if self.recipe.equal_windows else float(max(1, len(ids)))
        return Item(payload, len(payload), truncated, weight=weight)

    @torch.inference_mode()
    def _forward(self, network: Any, batch: Batch, layers: Sequence[str]) -> dict[str, np.ndarray]:
        numbers = {name: self._number(name) for name in layers}
        ids, inside = self._padded(batch)
        seen = inside.clone()
        # A row of nothing but padding would make attention divide by zero; its first place is
        # looked at, and pooled as nothing.
        seen[:, 0] = True
        hidden = network(ids, seen, sorted(set(numbers.values())))
        return {
            name: self._pool(hidden[number], batch.items, inside).cpu().numpy()
            for name, number in numbers.items()
        }

    def _padded(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        width = max(1, batch.padded_length)
        ids = np.full((len(batch.items), width), self.tokenizer.pad, dtype=np.int64)
        lengths = np.array([item.length for item in batch.items])
        for row, item in enumerate(batch.items):
            ids[row, : item.length] = item.payload
        inside = np.arange(width) < lengths[:, np.newaxis]
        return torch.from_numpy(ids).to(self._device), torch.from_numpy(inside).to(self._device)

    def _pool(
        self, hidden: torch.Tensor, items: Sequence[Item], inside: torch.Tensor
    ) -> torch.Tensor:
        """Return one float32 vector a row; zeros for a row without tokens."""
        hidden = hidden.float()
        lengths = inside.sum(dim=1)
        if self.pooling in ("cls", "last"):
            places = torch.zeros_like(lengths) if self.pooling == "cls" else lengths - 1
            rows = torch.arange(len(items), device=hidden.device)
            return hidden[rows, places.clamp(min=0)] * (lengths > 0).unsqueeze(1)
        pooled = inside if self.recipe.pool_specials else self._without_specials(inside, lengths)
        if self.pooling == "mean":
            weight = pooled.unsqueeze(-1)
            # `where` and not a product: what stands in the padding may be anything.
            total = torch.where(weight, hidden, 0.0).sum(dim=1)
            return total / pooled.sum(dim=1, keepdim=True).clamp(min=1)
        largest = torch.where(pooled.unsqueeze(-1), hidden, -torch.inf).amax(dim=1)
        return torch.where(pooled.any(dim=1, keepdim=True), largest, 0.0)

    def _without_specials(self, inside: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        places = torch.arange(inside.shape[1], device=inside.device)
        first, behind = len(self.tokenizer.prefix), len(self.tokenizer.suffix)
        return inside & (places >= first) & (places < (lengths - behind).unsqueeze(1))

    def _number(self, layer: str) -> int:
        return self.layer if layer == LAST else _choose_layer(layer, None, self.network.layers)


def window_starts(tokens: int, width: int, step: int) -> list[int]:
    """Return where windows begin: every ``step`` tokens, the last one where it ends the sequence.

    Parameters
    ----------
    tokens
        More than ``width``.
    width
        Tokens a window.
    """
    return [*range(0, tokens - width, step), tokens - width]


def torch_dtype(options: ModelOptions, recipe: Recipe) -> torch.dtype:
    """Return what a network is to compute in."""
    return _DTYPES[options.dtype or recipe.dtype]


def check_reference_pooling(options: ModelOptions, pooling: Pooling, what: str) -> None:
    """Refuse another pooling than the published one under the preset ``reference``.

    Called before the weights are read, which may take minutes.

    Parameters
    ----------
    what
        What the published vectors are.

    Raises
    ------
    InputError
    """
    if options.preset == "reference" and options.pooling not in (None, pooling):
        raise InputError(
            f"the published vectors of this model are {what}",
            where="preset reference",
            expected=f"pooling {pooling}",
            found=options.pooling,
            fix="leave --pooling out, or choose preset masked",
        )


def _choose_preset(options: ModelOptions, presets: Sequence[str]) -> str:
    preset = options.preset or presets[0]
    if preset not in presets:
        raise InputError(
            "this model has no such preset",
            expected=", ".join(presets),
            found=preset,
            fix="its published numbers were made in the same way as with the default, or cannot "
            "be made again",
        )
    return preset


def _choose_layer(asked: str | None, default: int | None, layers: int) -> int:
    """Return a layer's number, so that one layer has one name in a fingerprint."""
    if asked is None or asked == LAST:
        return layers if default is None or asked == LAST else default
    if asked not in map(str, range(layers + 1)):
        raise InputError(
            "this model has no such layer",
            expected=f"{LAST}, or a number from 0 to {layers}",
            found=plain(asked, limit=80),
        )
    return int(asked)


def _room(limit: int | None, tokenizer: Tokenizer) -> int | None:
    return None if limit is None else limit - len(tokenizer.prefix) - len(tokenizer.suffix)


def _set_determinism(options: ModelOptions, *, tf32: bool) -> None:
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32
    if options.deterministic:
        # Read when a GPU is first used; torch refuses its matrix products without it.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(mode=True)

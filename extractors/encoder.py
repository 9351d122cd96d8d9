"""One bidirectional Transformer encoder of our own, for models that Transformers has no class for.

They differ in few things: where the norms stand, how positions enter, and the form of the
feed-forward part. An `EncoderDesign` says which; a family adds the names that its checkpoints use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn
from torch.nn import functional

from geneb.errors import InputError
from geneb.extractors.checkpoints import Checkpoint, load_strictly, parameters_on_meta, rename
from geneb.extractors.torch_extractor import Network

Positions = Literal["absolute", "rotary", "alibi"]
Activation = Literal["gelu", "silu"]

_ACTIVATIONS = {"gelu": functional.gelu, "silu": functional.silu}


@dataclass(frozen=True)
class EncoderDesign:
    """How an encoder is built.

    Attributes
    ----------
    vocabulary, width, layers, heads, inner
        Rows of the embedding table, size of a hidden state, blocks, attention heads, and size of
        the feed-forward part.
    positions
        ``absolute``: a learnt vector a position, added to the token's. ``rotary``: queries and
        keys are turned, the first half of a head's numbers against the second. ``alibi``: a
        penalty on distance, the same in both directions, added to the attention scores.
    position_rows
        Rows of the table of absolute positions; 0 for the other two.
    type_rows
        Rows of the table of token types, 0 for none; every token is of the first type.
    pre_norm
        Whether norms stand before attention and feed-forward part, or behind their sums.
    embedding_norm, final_norm
        Whether embeddings are normalised, and what the last block gives.
    eps
        Of all norms.
    activation
        ``gelu`` is the exact one.
    gated
        Whether the first half of the inner numbers, activated, is multiplied with the second;
        the inner matrix then has ``2 * inner`` rows.
    inner_bias, outer_bias
        Whether the two matrices of the feed-forward part have a bias; those of attention do.
    fused
        Whether queries, keys and values come from one matrix.

    Raises
    ------
    InputError
        If the width cannot be divided among the heads.
    """

    vocabulary: int
    width: int
    layers: int
    heads: int
    inner: int
    positions: Positions
    pre_norm: bool
    eps: float
    position_rows: int = 0
    type_rows: int = 0
    embedding_norm: bool = True
    final_norm: bool = False
    activation: Activation = "gelu"
    gated: bool = False
    inner_bias: bool = True
    outer_bias: bool = True
    fused: bool = False

    def __post_init__(self) -> None:
        """Check the heads."""
        if self.width % self.heads or (self.positions == "rotary" and self.head_width % 2):
            raise InputError(
                "this configuration makes no encoder",
                expected="a width that its heads divide, into even parts for rotary positions",
                found=f"{self.width} for {self.heads} heads",
            )

    @property
    def head_width(self) -> int:
        """Numbers a head."""
        return self.width // self.heads


@dataclass(frozen=True)
class _Surroundings:
    """What is the same in every block.

    Attributes
    ----------
    mask
        Added to the attention scores, or bool: shape (rows, 1 or heads, 1 or width, width).
    turn
        Cosines and sines, each of shape (width, head width); None without rotary positions.
    """

    mask: torch.Tensor
    turn: tuple[torch.Tensor, torch.Tensor] | None


class Encoder(Network):
    """Embeddings, blocks, and the final norm where there is one.

    Parameters
    ----------
    design
        How it is built.
    """

    def __init__(self, design: EncoderDesign) -> None:
        super().__init__()
        self.layers = design.layers
        self.embeddings = _Embeddings(design)
        self.blocks = nn.ModuleList(_Block(design) for _ in range(design.layers))
        self.final_norm = nn.LayerNorm(design.width, design.eps) if design.final_norm else None
        self._positions = design.positions
        # In float32 whatever the network computes in: positions in the thousands need it.
        exponents = torch.arange(0, design.head_width, 2, dtype=torch.float32) / design.head_width
        self.register_buffer("_frequencies", 1.0 / 10_000.0**exponents, persistent=False)
        slopes = torch.tensor(alibi_slopes(design.heads), dtype=torch.float32)
        self.register_buffer("_slopes", slopes, persistent=False)

    def forward(
        self, ids: torch.Tensor, inside: torch.Tensor, wanted: Sequence[int]
    ) -> dict[int, torch.Tensor]:
        """Run as many blocks as are needed."""
        hidden = self.embeddings(ids)
        around = self._surroundings(inside, hidden.dtype)
        kept = {0: hidden}
        for number, block in enumerate(self.blocks[: max(wanted)], start=1):
            hidden = block(hidden, around)
            if number in wanted:
                kept[number] = hidden
        if self.final_norm is not None and self.layers in kept:
            kept[self.layers] = self.final_norm(kept[self.layers])
        return {number: kept[number] for number in wanted}

    def _surroundings(self, inside: torch.Tensor, dtype: torch.dtype) -> _Surroundings:
        mask = inside[:, None, None, :]
        if self._positions == "absolute":
            return _Surroundings(mask, None)
        places = torch.arange(inside.shape[1], device=inside.device, dtype=torch.float32)
        if self._positions == "alibi":
            distance = (places[:, None] - places[None, :]).abs()
            penalty = (self._slopes[:, None, None] * -distance).to(dtype)
            return _Surroundings(torch.where(mask, penalty, -torch.inf), None)
        angles = torch.outer(places, self._frequencies).repeat(1, 2)
        return _Surroundings(mask, (angles.cos().to(dtype), angles.sin().to(dtype)))


class _Embeddings(nn.Module):
    def __init__(self, design: EncoderDesign) -> None:
        super().__init__()
        width = design.width
        self.tokens = nn.Embedding(design.vocabulary, width)
        absolute = design.positions == "absolute"
        self.positions = nn.Embedding(design.position_rows, width) if absolute else None
        self.types = nn.Embedding(design.type_rows, width) if design.type_rows else None
        self.norm = nn.LayerNorm(width, design.eps) if design.embedding_norm else None

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        hidden = self.tokens(ids)
        if self.types is not None:
            hidden = hidden + self.types.weight[0]
        if self.positions is not None:
            hidden = hidden + self.positions.weight[: ids.shape[1]]
        return hidden if self.norm is None else self.norm(hidden)


class _Block(nn.Module):
    def __init__(self, design: EncoderDesign) -> None:
        super().__init__()
        self.attention = _Attention(design)
        self.attention_norm = nn.LayerNorm(design.width, design.eps)
        self.feed_forward = _FeedForward(design)
        self.feed_forward_norm = nn.LayerNorm(design.width, design.eps)
        self._pre_norm = design.pre_norm

    def forward(self, hidden: torch.Tensor, around: _Surroundings) -> torch.Tensor:
        if self._pre_norm:
            hidden = hidden + self.attention(self.attention_norm(hidden), around)
            return hidden + self.feed_forward(self.feed_forward_norm(hidden))
        hidden = self.attention_norm(hidden + self.attention(hidden, around))
        return self.feed_forward_norm(hidden + self.feed_forward(hidden))


class _Attention(nn.Module):
    def __init__(self, design: EncoderDesign) -> None:
        super().__init__()
        width = design.width
        if design.fused:
            self.fused = nn.Linear(width, 3 * width)
        else:
            self.query = nn.Linear(width, width)
            self.key = nn.Linear(width, width)
            self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)
        self._is_fused, self._heads = design.fused, design.heads

    def forward(self, hidden: torch.Tensor, around: _Surroundings) -> torch.Tensor:
        if self._is_fused:
            parts = self.fused(hidden).chunk(3, dim=-1)
        else:
            parts = (self.query(hidden), self.key(hidden), self.value(hidden))
        query, key, value = (
            part.unflatten(-1, (self._heads, -1)).transpose(1, 2) for part in parts
        )
        if around.turn is not None:
            query, key = _turned(query, *around.turn), _turned(key, *around.turn)
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=around.mask)
        return self.output(mixed.transpose(1, 2).flatten(2))


class _FeedForward(nn.Module):
    def __init__(self, design: EncoderDesign) -> None:
        super().__init__()
        rows = 2 * design.inner if design.gated else design.inner
        self.inner = nn.Linear(design.width, rows, bias=design.inner_bias)
        self.outer = nn.Linear(design.inner, design.width, bias=design.outer_bias)
        self._activation, self._gated = _ACTIVATIONS[design.activation], design.gated

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        inner = self.inner(hidden)
        if not self._gated:
            return self.outer(self._activation(inner))
        first, second = inner.chunk(2, dim=-1)
        return self.outer(self._activation(first) * second)


def _turned(heads: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
    first, second = heads.chunk(2, dim=-1)
    return heads * cosines + torch.cat((-second, first), dim=-1) * sines


def alibi_slopes(heads: int) -> list[float]:
    """Return what a step of distance costs in each head.

    For a power of two they fall geometrically from ``2 ** (-8 / heads)``; other numbers take the
    next smaller power's, then every second one of the next larger power's.
    """
    power = 1 << (heads.bit_length() - 1)
    slopes = [2.0 ** (-8.0 * number / power) for number in range(1, power + 1)]
    between = [2.0 ** (-8.0 * number / (2 * power)) for number in range(1, 2 * power + 1, 2)]
    return slopes + between[: heads - power]


BERT_NAMES = {
    "embeddings.word_embeddings": "embeddings.tokens",
    "embeddings.position_embeddings": "embeddings.positions",
    "embeddings.token_type_embeddings": "embeddings.types",
    "embeddings.LayerNorm": "embeddings.norm",
    "encoder.layer.*.attention.self.query": "blocks.*.attention.query",
    "encoder.layer.*.attention.self.key": "blocks.*.attention.key",
    "encoder.layer.*.attention.self.value": "blocks.*.attention.value",
    "encoder.layer.*.attention.output.dense": "blocks.*.attention.output",
    "encoder.layer.*.attention.output.LayerNorm": "blocks.*.attention_norm",
    "encoder.layer.*.intermediate.dense": "blocks.*.feed_forward.inner",
    "encoder.layer.*.output.dense": "blocks.*.feed_forward.outer",
    "encoder.layer.*.output.LayerNorm": "blocks.*.feed_forward_norm",
}
"""Names of modules in checkpoints that descend from BERT -> in `Encoder`; ``*`` is a number."""


def load_encoder(
    checkpoint: Checkpoint,
    design: EncoderDesign,
    own_name: Callable[[str], str | None],
    *,
    dtype: torch.dtype,
) -> Encoder:
    """Build an encoder and fill it.

    Parameters
    ----------
    own_name
        As `renaming` makes it.
    dtype
        What it computes in.

    Raises
    ------
    InputError
        If the tensors are not exactly those of the design.
    """
    where = str(checkpoint.folder)
    with parameters_on_meta(where):
        encoder = Encoder(design)
    tensors = rename(checkpoint.tensors(), own_name, where=where)
    load_strictly(encoder, tensors, where=where, dtype=dtype)
    return encoder


def renaming(
    names: Mapping[str, str],
    *,
    prefix: str,
    left_out: tuple[str, ...],
    left_out_ends: tuple[str, ...] = (),
) -> Callable[[str], str | None]:
    """Return a function from a published tensor's name to the encoder's.

    It gives None for what is left out, and whatever it does not know as it is.

    Parameters
    ----------
    names
        As `BERT_NAMES`.
    prefix
        What stands before the published names, or before some of them.
    left_out, left_out_ends
        Beginnings, behind ``prefix``, and ends of the names of tensors that are knowingly not
        used.
    """

    def own_name(published: str) -> str | None:
        name = published.removeprefix(prefix)
        if name.startswith(left_out) or name.endswith(left_out_ends):
            return None
        module, _, leaf = name.rpartition(".")
        parts = module.split(".")
        own = names.get(".".join("*" if part.isdigit() else part for part in parts))
        if own is None:
            return published
        number = next((part for part in parts if part.isdigit()), "*")
        return f"{own.replace('*', number)}.{leaf}"

    return own_name

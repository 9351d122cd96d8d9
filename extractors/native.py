"""Transformers' own model classes as networks: filling them, and which hidden states to take."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import torch
from torch import nn
from transformers.utils import logging as transformers_logging

from geneb.base.text import plain
from geneb.errors import InputError
from geneb.extractors.checkpoints import (
    CONFIG,
    Checkpoint,
    in_one_line,
    load_strictly,
    parameters_on_meta,
    rename,
)
from geneb.extractors.configs import MOST_LAYERS
from geneb.extractors.torch_extractor import Network

Config = TypeVar("Config")

# What of a configuration is of no matter here, or is decided here. Transformers would fetch
# attention and experts from the hub, and run them, if one that names a repository got through.
_NOT_TAKEN = frozenset(
    (
        *("attn_implementation", "experts_implementation", "dtype", "torch_dtype"),
        *("num_labels", "id2label", "label2id", "problem_type"),
        *("output_attentions", "chunk_size_feed_forward"),
    )
)
# Of positions and masks that a network computes from its configuration.
_MOST_BUFFER_BYTES = 1 << 30


class _InOneLine(logging.Filter):
    """Makes what Transformers says of a stranger's configuration fit to be shown."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = in_one_line(record.getMessage()), None
        return True


for _handler in transformers_logging.get_logger("transformers").handlers:
    _handler.addFilter(_InOneLine())


class NativeNetwork(Network):
    """A model of Transformers without a head, such as ``BertModel`` or ``LlamaModel``.

    In the state dict its tensors have the model's own names behind ``model.``: those that the
    published causal models use already, and that a family's renaming makes of other prefixes.

    Parameters
    ----------
    model
        Takes ``input_ids``, ``attention_mask`` and ``output_hidden_states``; the last of its
        hidden states is what it gives as ``last_hidden_state``.
    layers
        How many blocks it has.
    call_options
        Further arguments of each call, such as ``use_cache=False``.
    """

    def __init__(self, model: nn.Module, layers: int, **call_options: Any) -> None:
        super().__init__()
        self.layers = layers
        self.model = model
        self._call_options = call_options

    def forward(
        self, ids: torch.Tensor, inside: torch.Tensor, wanted: Sequence[int]
    ) -> dict[int, torch.Tensor]:
        """Run it; where only the last hidden state is wanted, no other is kept."""
        only_last = list(wanted) == [self.layers]
        output = self.model(
            input_ids=ids,
            attention_mask=self._mask(inside),
            output_hidden_states=not only_last,
            return_dict=True,
            **self._call_options,
        )
        if only_last:
            return {self.layers: output.last_hidden_state}
        return {number: output.hidden_states[number] for number in wanted}

    def _mask(self, inside: torch.Tensor) -> torch.Tensor | None:
        return inside.long()


class CausalNetwork(NativeNetwork):
    """A model whose tokens look back only, without a cache of keys and values.

    Padding on the right comes after everything that a token looks at, so no mask is needed, and
    attention without one needs no square of memory. What such a model gives *for* padding is of
    no use to anybody.
    """

    def __init__(self, model: nn.Module, layers: int, **call_options: Any) -> None:
        super().__init__(model, layers, use_cache=False, **call_options)

    def _mask(self, inside: torch.Tensor) -> None:
        del inside


def native_config(checkpoint: Checkpoint, kind: Callable[..., Config], **settings: Any) -> Config:
    """Return the configuration of a checkpoint as one of Transformers' classes.

    Parameters
    ----------
    kind
        The class, such as ``LlamaConfig``.
    settings
        What is set otherwise than the file says. Attention is ``sdpa`` always.

    Raises
    ------
    InputError
        If the configuration is of another kind of model, or its values are not.
    """
    where = str(checkpoint.folder / CONFIG)
    config = checkpoint.config()
    expected = kind.model_type  # type: ignore[attr-defined]
    if config.get("model_type") != expected:
        raise InputError(
            "this is the configuration of another model",
            where=f"{where}, model_type",
            expected=expected,
            found=plain(str(config.get("model_type")), limit=80),
        )
    taken = {name: value for name, value in config.items() if _is_taken(name, kind)}
    _check_counts(config, kind, where)
    try:
        return kind(**{**taken, "attn_implementation": "sdpa", **settings})
    except Exception as error:  # each class checks its values with errors of its own
        raise InputError(
            "this configuration cannot be used", where=where, found=in_one_line(str(error))
        ) from error


def _is_taken(name: str, kind: Callable[..., Any]) -> bool:
    shadows = callable(getattr(kind, name, None))
    return not (name.startswith("_") or name in _NOT_TAKEN or shadows)


def _check_counts(config: Mapping[str, Any], kind: Any, where: str) -> None:
    # Before the class sees them: some make a list of so many layers.
    for name in ("num_hidden_layers", "num_attention_heads"):
        for called in (name, kind.attribute_map.get(name)):
            count = config.get(called)
            if isinstance(count, int) and not 1 <= count <= MOST_LAYERS:
                raise InputError(
                    "this configuration cannot be used",
                    where=f"{where}, {called}",
                    expected=f"1 to {MOST_LAYERS:,}",
                    found=plain(str(count), limit=80),
                )


def check_positions(limit: int | None, places: int, where: str) -> None:
    """Refuse learned positions that end before the limit does.

    Parameters
    ----------
    places
        Tokens that there are positions for.

    Raises
    ------
    InputError
        If they are too few; a sequence of full length would stop a run halfway.
    """
    if limit is not None and limit > places:
        raise InputError(
            "the model has too few positions for its limit",
            where=where,
            expected=f"{limit:,} tokens",
            found=f"{places:,}",
            fix="take the weights of this model at the revision that `geneb model show` names",
        )


def load_native(
    checkpoint: Checkpoint,
    build: Callable[[], NativeNetwork],
    *,
    renamed: Callable[[str], str | None],
    dtype: torch.dtype,
) -> NativeNetwork:
    """Build a network and give it a checkpoint's weights.

    Parameters
    ----------
    build
        Constructs it; its parameters are given no memory.
    renamed
        See `geneb.extractors.checkpoints.rename`.
    dtype
        What it shall compute in, whatever the weights are stored in.

    Raises
    ------
    InputError
        If the configuration makes no model, or the weights do not fit it.
    """
    where = str(checkpoint.folder)
    with parameters_on_meta(where):
        _check_buffers(build, where)
        network = build()
    tensors = rename(checkpoint.tensors(), renamed, where=where)
    load_strictly(network, tensors, where=where, dtype=dtype)
    return network


def _check_buffers(build: Callable[[], NativeNetwork], where: str) -> None:
    """Refuse a network whose buffers fill the memory, before they do."""
    with torch.device("meta"):
        size = sum(buffer.nbytes for buffer in build().buffers())
    if size > _MOST_BUFFER_BYTES:
        raise InputError(
            "this configuration makes no model",
            where=where,
            expected=f"at most {_MOST_BUFFER_BYTES:,} bytes of positions and masks",
            found=f"{size:,}",
        )


def causal_name(name: str) -> str | None:
    """Return the name in a `NativeNetwork` of a tensor of ``LlamaForCausalLM`` and its like.

    The head is left out, and so are rotary frequencies that old versions stored a layer at a
    time: the model computes its own.
    """
    if name == "lm_head.weight" or name.endswith(".rotary_emb.inv_freq"):
        return None
    return name

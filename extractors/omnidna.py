"""Omni-DNA: OLMo in the layout of its training code, run by Transformers' own classes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import LlamaConfig, LlamaModel, OlmoConfig, OlmoModel

from geneb.base.text import plain
from geneb.errors import InputError
from geneb.extractors.checkpoints import Checkpoint
from geneb.extractors.configs import MOST_LAYERS, Config
from geneb.extractors.native import CausalNetwork, load_native
from geneb.extractors.options import ModelOptions
from geneb.extractors.tokenizers import AS_THE_FILE_SAYS, bert_tokenizer
from geneb.extractors.torch_extractor import Recipe, TorchExtractor, torch_dtype

# What the classes of Transformers do; the training code can be told otherwise.
_KIND = {
    "activation_type": "swiglu",
    "alibi": False,
    "attention_layer_norm": False,
    "block_type": "sequential",
    "clip_qkv": None,
    "include_bias": False,
    "mlp_hidden_size": None,
    "multi_query_attention": False,
    "n_kv_heads": None,
    "rope": True,
    "scale_logits": False,
    "weight_tying": True,
}
_EPSILON = 1e-5
_ROTARY_BASE = 10_000.0
_BLOCKS = "model.transformer.blocks."
_NAMES = {
    "attn_norm.weight": "input_layernorm.weight",
    "attn_out.weight": "self_attn.o_proj.weight",
    "ff_norm.weight": "post_attention_layernorm.weight",
    "ff_out.weight": "mlp.down_proj.weight",
}
_FUSED = {
    "att_proj.weight": [f"self_attn.{part}_proj.weight" for part in "qkv"],
    # What is multiplied comes before what goes through the activation.
    "ff_proj.weight": ["mlp.up_proj.weight", "mlp.gate_proj.weight"],
}
_OUTSIDE_BLOCKS = {
    "model.transformer.wte.weight": "model.embed_tokens.weight",
    "model.transformer.ln_f.weight": "model.norm.weight",
}


class OmniDnaExtractor(TorchExtractor):
    """Omni-DNA: 1B has norms without parameters, as OLMo; the smaller ones' are Llama's.

    Parameters
    ----------
    folder
        ``config.json``, ``tokenizer.json`` and the weights, as published.
    options
        What a user asked for.
    limit
        Tokens, ``[CLS]`` and ``[SEP]`` included.
    """

    name = "omnidna"

    def __init__(self, folder: Path, options: ModelOptions, *, limit: int) -> None:
        checkpoint = OlmoCheckpoint(folder)
        config = Config(checkpoint)
        config.check(**_KIND)
        recipe = Recipe(limit=limit)
        tokenizer = bert_tokenizer(
            folder / "tokenizer.json", policy=AS_THE_FILE_SAYS, rows=config.whole("embedding_size")
        )
        network = load_native(
            checkpoint,
            network_builder(checkpoint, config),
            renamed=lambda name: name,
            dtype=torch_dtype(options, recipe),
        )
        super().__init__(tokenizer, network, recipe, checkpoint.sha256(), options)


class OlmoCheckpoint(Checkpoint):
    """Weights of OLMo's training code; the head is the token embedding and is not stored."""

    def tensors(self) -> dict[str, torch.Tensor]:
        """Return all tensors by the names that Transformers has for them, fused ones split.

        Raises
        ------
        InputError
            If a tensor cannot be split.
        """
        tensors: dict[str, torch.Tensor] = {}
        for name, tensor in super().tensors().items():
            parts = published_names(name)
            if tensor.ndim == 0 or len(tensor) % len(parts):
                raise InputError(
                    "a tensor of these weights cannot be split",
                    where=f"{self.folder}, {plain(name)}",
                    expected=f"{len(parts)} parts of the same size",
                    found=str(tuple(tensor.shape)),
                )
            if twice := tensors.keys() & set(parts):
                raise InputError(
                    "two tensors stand for the same one",
                    where=str(self.folder),
                    found=plain(f"{name}: {', '.join(sorted(twice))}"),
                )
            # Each part is a copy: a view would keep the whole in memory.
            pieces = (piece.clone() for piece in tensor.chunk(len(parts)))
            tensors |= dict(zip(parts, pieces, strict=True))
        return tensors


def published_names(name: str) -> list[str]:
    """Return Transformers' names for a tensor of OLMo's: several where it is fused.

    A name that is none of OLMo's stays as it is, for `load_strictly` to refuse.
    """
    block, _, part = name.removeprefix(_BLOCKS).partition(".")
    if name.startswith(_BLOCKS) and (part in _NAMES or part in _FUSED):
        return [f"model.layers.{block}.{new}" for new in _FUSED.get(part) or [_NAMES[part]]]
    return [_OUTSIDE_BLOCKS.get(name, name)]


def network_builder(checkpoint: Checkpoint, config: Config) -> Callable[[], CausalNetwork]:
    """Return what constructs the network, by the kind of its norms."""
    layers, width = config.whole("n_layers", MOST_LAYERS), config.whole("d_model")
    sizes: dict[str, Any] = {
        "vocab_size": config.whole("embedding_size"),
        "hidden_size": width,
        # The fused width is `mlp_ratio` times the model's; half of it is what goes up.
        "intermediate_size": config.whole("mlp_ratio") * width // 2,
        "num_hidden_layers": layers,
        "num_attention_heads": config.whole("n_heads", MOST_LAYERS),
        "max_position_embeddings": config.whole("max_sequence_length"),
        "rope_parameters": {"rope_type": "default", "rope_theta": _ROTARY_BASE},
        "hidden_act": "silu",
        "pad_token_id": None,
        "attn_implementation": "sdpa",
    }
    if checkpoint.config().get("layer_norm_type") == "rms":
        config.check(layer_norm_with_affine=True, bias_for_layer_norm=False)
        return lambda: CausalNetwork(
            LlamaModel(LlamaConfig(**sizes, rms_norm_eps=_EPSILON)), layers
        )
    config.check(layer_norm_type="default", layer_norm_with_affine=False)
    return lambda: CausalNetwork(OlmoModel(OlmoConfig(**sizes)), layers)

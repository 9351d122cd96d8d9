"""DeepGene: Transformers' own RoFormer; the stage with the graph is left out, as published."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn
from transformers import RoFormerConfig, RoFormerModel

from geneb.extractors.checkpoints import Checkpoint
from geneb.extractors.configs import Config
from geneb.extractors.native import NativeNetwork, check_positions, load_native, native_config
from geneb.extractors.options import ModelOptions
from geneb.extractors.tokenizers import FileTokenizer
from geneb.extractors.torch_extractor import Recipe, TorchExtractor, torch_dtype

_POLICY = {
    "case": "as it stands: lower case is unknown",
    "U": "unknown",
    "N": "unknown",
    "other letters": "unknown",
}
_PUBLISHED_FOLDER = "pretrain_params_epoch_20"
_ROTARY_BASE = 10_000
# The authors' own class knows other kinds, which Transformers' does not.
_KIND = {"use_bias": True, "norm_type": "layer_norm", "rotary_value": False}


class DeepGeneExtractor(TorchExtractor):
    """DeepGene: ``[CLS]`` and ``[SEP]`` both in front of a sequence, nothing behind it.

    Parameters
    ----------
    folder
        ``config.json`` and ``pytorch_model.bin``, here or in the folder that they are published
        in; and ``tokenizer.json``, which lies in the authors' repository.
    options
        What a user asked for.
    limit
        Tokens, ``[CLS]`` and ``[SEP]`` included.
    """

    name = "deepgene"

    def __init__(self, folder: Path, options: ModelOptions, *, limit: int) -> None:
        published = folder / _PUBLISHED_FOLDER
        checkpoint = Checkpoint(published if published.is_dir() else folder)
        config = native_config(checkpoint, RoFormerConfig, attn_implementation="eager")
        Config(checkpoint).check(**_KIND)
        recipe = Recipe(limit=limit)
        dtype = torch_dtype(options, recipe)
        check_positions(limit, config.max_position_embeddings, str(folder))
        tokenizer = FileTokenizer(
            folder / "tokenizer.json",
            pad="[PAD]",
            prefix=["[CLS]", "[SEP]"],
            policy=_POLICY,
            rows=config.vocab_size,
        )
        network = load_native(
            checkpoint,
            lambda: roformer_network(config, dtype),
            renamed=own_name,
            dtype=dtype,
        )
        super().__init__(tokenizer, network, recipe, checkpoint.sha256(), options)


class RotaryPositions(nn.Module):
    """Sines and cosines of positions, computed: checkpoints do not hold them.

    Parameters
    ----------
    places
        How many positions there are.
    width
        Of an attention head.
    """

    def __init__(self, places: int, width: int, dtype: torch.dtype) -> None:
        super().__init__()
        frequencies = _ROTARY_BASE ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
        angles = torch.arange(places, dtype=torch.float64).unsqueeze(1) * frequencies
        table = torch.cat([angles.sin(), angles.cos()], dim=1).to(dtype)
        self.register_buffer("table", table, persistent=False)

    def forward(
        self,
        shape: torch.Size,
        cache_length: int = 0,
        position_ids: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return the table's rows for a batch of this shape: (tokens, width)."""
        del cache_length, position_ids
        return self.table[: shape[1]]


def roformer_network(config: RoFormerConfig, dtype: torch.dtype) -> NativeNetwork:
    """Return the network of a configuration, its parameters as torch makes them."""
    model = RoFormerModel(config)
    model.encoder.embed_positions = RotaryPositions(
        config.max_position_embeddings, config.hidden_size // config.num_attention_heads, dtype
    )
    return NativeNetwork(model, config.num_hidden_layers)


def own_name(name: str) -> str | None:
    """Return a published tensor's name in the network; None for heads and computed positions."""
    if name.startswith("cls.") or name.endswith("encoder.embed_positions.weight"):
        return None
    return "model." + name.removeprefix("roformer.")

"""METAGENE-1, OmniNA and GENERator: Transformers' own Llama."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaModel

from geneb.errors import InputError
from geneb.extractors.base import Item
from geneb.extractors.checkpoints import Checkpoint
from geneb.extractors.kmer_tokenizers import GeneratorTokenizer
from geneb.extractors.native import (
    CausalNetwork,
    NativeNetwork,
    causal_name,
    load_native,
    native_config,
)
from geneb.extractors.options import ModelOptions
from geneb.extractors.tokenizers import AS_THE_FILE_SAYS, FileTokenizer
from geneb.extractors.torch_extractor import (
    Recipe,
    TorchExtractor,
    check_reference_pooling,
    torch_dtype,
)


class MetageneExtractor(TorchExtractor):
    """METAGENE-1.

    The published extractor averages over all places of a padded batch. The preset ``reference``
    does so too: batches of 8 as they stand in the file. In ``masked`` padding is left out.

    Parameters
    ----------
    folder
        ``config.json``, ``tokenizer.json`` and the weights, as published.
    options
        What a user asked for.
    limit
        Tokens, ``[EOS]`` included.
    """

    name = "metagene"
    presets = ("masked", "reference")

    def __init__(self, folder: Path, options: ModelOptions, *, limit: int) -> None:
        check_reference_pooling(options, "mean", "means")
        checkpoint = Checkpoint(folder)
        config = _config(checkpoint)
        tokenizer = FileTokenizer(
            folder / "tokenizer.json",
            pad="[PAD]",
            suffix=["[EOS]"],
            policy=AS_THE_FILE_SAYS,
            rows=config.vocab_size,
        )
        recipe = Recipe(limit=limit)
        reference = options.preset == "reference"
        network = _load(checkpoint, config, options, recipe, masked=reference)
        super().__init__(tokenizer, network, recipe, checkpoint.sha256(), options)

    def _pool(
        self, hidden: torch.Tensor, items: Sequence[Item], inside: torch.Tensor
    ) -> torch.Tensor:
        if self.preset == "reference":
            return hidden.float().mean(dim=1)
        return super()._pool(hidden, items, inside)


class OmninaExtractor(TorchExtractor):
    """OmniNA; nothing is cut, as in the published extractor.

    The published extractor pads on the left, with a mask. Rotary positions tell distances only,
    so that right padding gives the same vectors.

    Parameters
    ----------
    folder
        ``config.json``, ``tokenizer.json`` and the weights, as published.
    options
        What a user asked for.
    """

    name = "omnina"

    def __init__(self, folder: Path, options: ModelOptions) -> None:
        checkpoint = Checkpoint(folder)
        config = _config(checkpoint)
        tokenizer = FileTokenizer(
            folder / "tokenizer.json",
            pad="</s>",
            prefix=["<s>"],
            policy=AS_THE_FILE_SAYS,
            rows=config.vocab_size,
        )
        recipe = Recipe(limit=None)
        network = _load(checkpoint, config, options, recipe)
        super().__init__(tokenizer, network, recipe, checkpoint.sha256(), options)


class GeneratorExtractor(TorchExtractor):
    """GENERator: 6-mers, a rest of fewer than six letters left out, two ``<s>`` in front.

    Parameters
    ----------
    folder
        ``config.json`` and the weights, as published.
    options
        What a user asked for.
    limit
        Tokens, both ``<s>`` included.
    """

    name = "generator"

    def __init__(self, folder: Path, options: ModelOptions, *, limit: int) -> None:
        checkpoint = Checkpoint(folder)
        config = _config(checkpoint)
        tokenizer = GeneratorTokenizer()
        if config.vocab_size != tokenizer.vocabulary_size:
            raise InputError(
                "this model has another vocabulary",
                where=str(folder),
                expected=f"{tokenizer.vocabulary_size:,} tokens",
                found=f"{config.vocab_size:,}",
            )
        recipe = Recipe(limit=limit)
        network = _load(checkpoint, config, options, recipe)
        super().__init__(tokenizer, network, recipe, checkpoint.sha256(), options)


def llama_network(config: LlamaConfig, *, masked: bool = False) -> NativeNetwork:
    """Return the network of a configuration, its parameters as torch makes them.

    Parameters
    ----------
    masked
        Whether what it gives for padding shall be what Transformers gives: padding that looks at
        the row's tokens, and not at other padding.
    """
    if masked:
        return NativeNetwork(LlamaModel(config), config.num_hidden_layers, use_cache=False)
    return CausalNetwork(LlamaModel(config), config.num_hidden_layers)


def _config(checkpoint: Checkpoint) -> LlamaConfig:
    # Where padding is only matters in training, and old files name an id that does not exist.
    return native_config(checkpoint, LlamaConfig, pad_token_id=None)


def _load(
    checkpoint: Checkpoint,
    config: LlamaConfig,
    options: ModelOptions,
    recipe: Recipe,
    *,
    masked: bool = False,
) -> NativeNetwork:
    return load_native(
        checkpoint,
        lambda: llama_network(config, masked=masked),
        renamed=causal_name,
        dtype=torch_dtype(options, recipe),
    )

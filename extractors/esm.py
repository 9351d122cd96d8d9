"""Nucleotide Transformer v1 and Agro-NT: Transformers' own ESM, and a tokenizer of 6-mers."""

from __future__ import annotations

from pathlib import Path

from transformers import EsmConfig, EsmModel

from geneb.extractors.checkpoints import Checkpoint
from geneb.extractors.native import NativeNetwork, check_positions, load_native, native_config
from geneb.extractors.nucleotide_tokenizer import read_nucleotide_tokenizer
from geneb.extractors.options import ModelOptions
from geneb.extractors.torch_extractor import Recipe, TorchExtractor, torch_dtype


class EsmExtractor(TorchExtractor):
    """Nucleotide Transformer v1 and Agro-NT.

    Token dropout, where the configuration has it on, scales the embeddings by 0.88 at inference
    as well; Transformers' class does so itself.

    Parameters
    ----------
    folder
        ``config.json``, ``vocab.txt`` and the weights, as published.
    options
        What a user asked for.
    limit
        Tokens, ``<cls>`` included.
    """

    name = "esm"

    def __init__(self, folder: Path, options: ModelOptions, *, limit: int) -> None:
        checkpoint = Checkpoint(folder)
        config = native_config(checkpoint, EsmConfig)
        recipe = Recipe(limit=limit)
        tokenizer = read_nucleotide_tokenizer(folder / "vocab.txt", config.vocab_size)
        if config.position_embedding_type == "absolute":
            # Positions are counted from the one behind the padding's.
            places = config.max_position_embeddings - tokenizer.pad - 1
            check_positions(limit, places, str(folder))
        network = load_native(
            checkpoint,
            lambda: esm_network(config),
            renamed=own_name,
            dtype=torch_dtype(options, recipe),
        )
        super().__init__(tokenizer, network, recipe, checkpoint.sha256(), options)


def esm_network(config: EsmConfig) -> NativeNetwork:
    """Return the network of a configuration, its parameters as torch makes them."""
    model = EsmModel(config, add_pooling_layer=False)
    del model.contact_head  # a head for proteins, never asked for
    return NativeNetwork(model, config.num_hidden_layers)


def own_name(name: str) -> str | None:
    """Return the name in a `NativeNetwork` of a tensor of ``EsmForMaskedLM``; None for heads."""
    if name.startswith(("lm_head.", "esm.contact_head.")) or name.endswith(
        ("embeddings.position_ids", "rotary_embeddings.inv_freq")
    ):
        return None
    return "model." + name.removeprefix("esm.")

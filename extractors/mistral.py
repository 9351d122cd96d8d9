"""GenomeOcean: Transformers' own Mistral."""

from __future__ import annotations

from pathlib import Path

from transformers import MistralConfig, MistralModel

from geneb.extractors.checkpoints import Checkpoint
from geneb.extractors.native import CausalNetwork, causal_name, load_native, native_config
from geneb.extractors.options import ModelOptions
from geneb.extractors.tokenizers import AS_THE_FILE_SAYS, bert_tokenizer
from geneb.extractors.torch_extractor import Recipe, TorchExtractor, torch_dtype


class GenomeOceanExtractor(TorchExtractor):
    """GenomeOcean, in float32 although its weights are stored in bfloat16.

    The published extractor pads on the left, with a mask. Rotary positions tell distances only,
    so that right padding gives the same vectors.

    Parameters
    ----------
    folder
        ``config.json``, ``tokenizer.json`` and the weights, as published.
    options
        What a user asked for.
    limit
        Tokens, ``[CLS]`` and ``[SEP]`` included.
    """

    name = "genomeocean"

    def __init__(self, folder: Path, options: ModelOptions, *, limit: int) -> None:
        checkpoint = Checkpoint(folder)
        config = native_config(checkpoint, MistralConfig, pad_token_id=None)
        tokenizer = bert_tokenizer(
            folder / "tokenizer.json", policy=AS_THE_FILE_SAYS, rows=config.vocab_size
        )
        recipe = Recipe(limit=limit)
        network = load_native(
            checkpoint,
            lambda: mistral_network(config),
            renamed=causal_name,
            dtype=torch_dtype(options, recipe),
        )
        super().__init__(tokenizer, network, recipe, checkpoint.sha256(), options)


def mistral_network(config: MistralConfig) -> CausalNetwork:
    """Return the network of a configuration, its parameters as torch makes them."""
    return CausalNetwork(MistralModel(config), config.num_hidden_layers)

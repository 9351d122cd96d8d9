"""GPT2-gene: Transformers' own GPT-2."""

from __future__ import annotations

from pathlib import Path

from transformers import GPT2Config, GPT2Model

from geneb.extractors.checkpoints import Checkpoint
from geneb.extractors.native import CausalNetwork, check_positions, load_native, native_config
from geneb.extractors.options import ModelOptions
from geneb.extractors.tokenizers import AS_THE_FILE_SAYS, FileTokenizer
from geneb.extractors.torch_extractor import Recipe, TorchExtractor, torch_dtype


class Gpt2Extractor(TorchExtractor):
    """GPT2-gene: no special tokens, so that a sequence without a known letter is zeros.

    Parameters
    ----------
    folder
        ``config.json``, ``tokenizer.json`` and the weights, as published.
    options
        What a user asked for.
    limit
        Tokens.
    """

    name = "gpt2"

    def __init__(self, folder: Path, options: ModelOptions, *, limit: int) -> None:
        checkpoint = Checkpoint(folder)
        # Without a padding token Transformers looks for none in what it is given.
        config = native_config(checkpoint, GPT2Config, pad_token_id=None)
        check_positions(limit, config.max_position_embeddings, str(folder))
        tokenizer = FileTokenizer(
            folder / "tokenizer.json",
            pad="<|endoftext|>",
            policy=AS_THE_FILE_SAYS,
            rows=config.vocab_size,
        )
        recipe = Recipe(limit=limit)
        network = load_native(
            checkpoint,
            lambda: gpt2_network(config),
            renamed=own_name,
            dtype=torch_dtype(options, recipe),
        )
        super().__init__(tokenizer, network, recipe, checkpoint.sha256(), options)


def gpt2_network(config: GPT2Config) -> CausalNetwork:
    """Return the network of a configuration, its parameters as torch makes them."""
    return CausalNetwork(GPT2Model(config), config.num_hidden_layers)


def own_name(name: str) -> str | None:
    """Return the name in a `NativeNetwork` of a tensor of ``GPT2LMHeadModel``; None for heads."""
    # The buffers are the causal mask, which old versions stored.
    if name == "lm_head.weight" or name.endswith((".attn.bias", ".attn.masked_bias")):
        return None
    return "model." + name.removeprefix("transformer.")

"""GROVER and SpliceBERT: Transformers' own BERT."""

from __future__ import annotations

from pathlib import Path

from transformers import BertConfig, BertModel

from geneb.errors import InputError
from geneb.extractors.checkpoints import Checkpoint
from geneb.extractors.native import NativeNetwork, check_positions, load_native, native_config
from geneb.extractors.options import ModelOptions
from geneb.extractors.tokenizers import (
    CharacterTokenizer,
    bert_tokenizer,
    read_vocabulary,
)
from geneb.extractors.torch_extractor import Recipe, TorchExtractor, torch_dtype

_GROVER_POLICY = {
    "case": "as it stands: lower case is unknown",
    "U": "unknown",
    "N": "unknown",
    "other letters": "unknown",
}
_SPLICEBERT_POLICY = {
    "case": "upper",
    "U": "T",
    "N": "a token",
    "IUPAC": "N",
    "other characters": "N; the published extractor refuses them",
}


class GroverExtractor(TorchExtractor):
    """GROVER.

    Parameters
    ----------
    folder
        ``config.json``, ``tokenizer.json`` and the weights, as published.
    options
        What a user asked for.
    limit
        Tokens, ``[CLS]`` and ``[SEP]`` included.
    """

    name = "grover"

    def __init__(self, folder: Path, options: ModelOptions, *, limit: int) -> None:
        checkpoint = Checkpoint(folder)
        config = native_config(checkpoint, BertConfig)
        recipe = Recipe(limit=limit)
        tokenizer = bert_tokenizer(
            folder / "tokenizer.json", policy=_GROVER_POLICY, rows=config.vocab_size
        )
        network = _load(checkpoint, config, options, recipe)
        super().__init__(tokenizer, network, recipe, checkpoint.sha256(), options)


class SpliceBertExtractor(TorchExtractor):
    """SpliceBERT: one token a nucleotide, and windows over what is longer.

    Parameters
    ----------
    folder
        ``config.json``, ``vocab.txt`` and the weights, as published.
    options
        What a user asked for.
    window
        Nucleotides that the model sees at once.
    window_step
        Nucleotides from one window's start to the next; the last one is anchored to the end, and
        all count the same.
    """

    name = "splicebert"

    def __init__(
        self, folder: Path, options: ModelOptions, *, window: int, window_step: int
    ) -> None:
        checkpoint = Checkpoint(folder)
        config = native_config(checkpoint, BertConfig)
        tokenizer = _nucleotides(folder / "vocab.txt", config.vocab_size)
        recipe = Recipe(
            limit=window + len(tokenizer.prefix) + len(tokenizer.suffix),
            long_input="windows",
            window_step=window_step,
            equal_windows=True,
        )
        network = _load(checkpoint, config, options, recipe)
        super().__init__(tokenizer, network, recipe, checkpoint.sha256(), options)


def bert_network(config: BertConfig) -> NativeNetwork:
    """Return the network of a configuration, its parameters as torch makes them."""
    return NativeNetwork(BertModel(config, add_pooling_layer=False), config.num_hidden_layers)


def _load(
    checkpoint: Checkpoint, config: BertConfig, options: ModelOptions, recipe: Recipe
) -> NativeNetwork:
    check_positions(recipe.limit, config.max_position_embeddings, str(checkpoint.folder))
    return load_native(
        checkpoint,
        lambda: bert_network(config),
        renamed=own_name,
        dtype=torch_dtype(options, recipe),
    )


def own_name(name: str) -> str | None:
    """Return the name in a `NativeNetwork` of a tensor of ``BertForMaskedLM``; None for heads."""
    if name.startswith(("cls.", "bert.pooler.")) or name.endswith("embeddings.position_ids"):
        return None
    return "model." + name.removeprefix("bert.")


def _nucleotides(path: Path, vocabulary_size: int) -> CharacterTokenizer:
    vocabulary = read_vocabulary(path)
    needed = ("[PAD]", "[CLS]", "[SEP]", *"NACGT")
    for token in needed:
        if vocabulary.get(token, vocabulary_size) >= vocabulary_size:
            raise InputError(
                "the vocabulary lacks a token that this model needs",
                where=str(path),
                expected=token,
            )
    ids = {letter: vocabulary[letter] for letter in "ACGT"} | {"U": vocabulary["T"]}
    lower = {letter.lower(): number for letter, number in ids.items()}
    return CharacterTokenizer(
        ids | lower,
        unknown=vocabulary["N"],
        pad=vocabulary["[PAD]"],
        prefix=[vocabulary["[CLS]"]],
        suffix=[vocabulary["[SEP]"]],
        policy=_SPLICEBERT_POLICY,
    )

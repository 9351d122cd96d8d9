"""Nucleotide Transformer v1 and Agro-NT: Transformers' own ESM, and a tokenizer of 6-mers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import EsmConfig, EsmModel

from geneb.errors import InputError
from geneb.extractors.checkpoints import Checkpoint, load_strictly, parameters_on_meta, rename
from geneb.extractors.options import ModelOptions
from geneb.extractors.tokenizers import KmerTokenizer, read_vocabulary
from geneb.extractors.torch_extractor import Network, Recipe, TorchExtractor, torch_dtype

_POLICY = {
    "case": "as it stands: lower case is unknown",
    "U": "unknown",
    "N": "a token",
    "other letters": "unknown, a run of them one token",
}


class EsmNetwork(Network):
    """`transformers.EsmModel` without its pooler.

    Token dropout, where the configuration has it on, scales the embeddings by 0.88 at inference
    as well; Transformers' class does so itself.
    """

    def __init__(self, config: EsmConfig) -> None:
        super().__init__()
        self.layers = config.num_hidden_layers
        self.esm = EsmModel(config, add_pooling_layer=False)
        del self.esm.contact_head  # a head for proteins, never asked for

    def forward(
        self, ids: torch.Tensor, inside: torch.Tensor, wanted: Sequence[int]
    ) -> dict[int, torch.Tensor]:
        """Run it; the last of its hidden states is after the final norm."""
        only_last = list(wanted) == [self.layers]
        output = self.esm(
            input_ids=ids,
            attention_mask=inside.long(),
            output_hidden_states=not only_last,
            return_dict=True,
        )
        if only_last:
            return {self.layers: output.last_hidden_state}
        return {number: output.hidden_states[number] for number in wanted}


class EsmExtractor(TorchExtractor):
    """Nucleotide Transformer v1 and Agro-NT.

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
        config = EsmConfig(**_settings(checkpoint.config(), str(folder)))
        recipe = Recipe(limit=limit)
        with parameters_on_meta():
            network = EsmNetwork(config)
        tensors = rename(checkpoint.tensors(), _own_name, where=str(folder))
        load_strictly(network, tensors, where=str(folder), dtype=torch_dtype(options, recipe))
        super().__init__(
            _tokenizer(folder / "vocab.txt", config.vocab_size),
            network,
            recipe,
            checkpoint.sha256(),
            options,
        )


def _settings(config: dict[str, Any], where: str) -> dict[str, Any]:
    if config.get("model_type") != "esm":
        raise InputError(
            "this is the configuration of another model",
            where=f"{where}, config.json, model_type",
            expected="esm",
            found=str(config.get("model_type"))[:80],
        )
    return {**config, "attn_implementation": "sdpa"}


def _own_name(name: str) -> str | None:
    if name.startswith(("lm_head.", "esm.contact_head.")) or name.endswith(
        ("embeddings.position_ids", "rotary_embeddings.inv_freq")
    ):
        return None
    return name


def _tokenizer(path: Path, vocabulary_size: int) -> KmerTokenizer:
    # A vocabulary may list tokens beyond the embedding table; they must never be produced.
    vocabulary = {
        token: number for token, number in read_vocabulary(path).items() if number < vocabulary_size
    }
    try:
        specials = [vocabulary[token] for token in ("<unk>", "<pad>", "<cls>")]
    except KeyError as error:
        raise InputError(
            "the vocabulary lacks a token that this model needs",
            where=str(path),
            expected=str(error.args[0]),
        ) from error
    unknown, pad, first = specials
    longest = max(len(token) for token in vocabulary if not token.startswith("<"))
    return KmerTokenizer(
        vocabulary, k=longest, unknown=unknown, pad=pad, prefix=[first], policy=_POLICY
    )

"""BioFM: Transformers' own Mistral over single nucleotides; the last of them is the embedding."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import MistralConfig

from geneb.extractors.base import Batch, Item
from geneb.extractors.checkpoints import Checkpoint
from geneb.extractors.mistral import mistral_network
from geneb.extractors.native import causal_name, load_native, native_config
from geneb.extractors.options import ModelOptions
from geneb.extractors.tokenizers import CharacterTokenizer
from geneb.extractors.torch_extractor import (
    Recipe,
    TorchExtractor,
    check_reference_pooling,
    torch_dtype,
)

_LETTERS = {"D": 0, "N": 1, "A": 2, "T": 3, "G": 4, "C": 5}
_CLS, _SEP, _UNKNOWN, _PAD = 6, 7, 8, 9
_POLICY = {
    "case": "as it stands: lower case is unknown",
    "U": "unknown",
    "N": "a token",
    "D": "a token, which stands for a deletion",
    "other letters": "unknown",
}


class BioFmExtractor(TorchExtractor):
    """BioFM: what the last nucleotide, the token before ``[SEP]``, has seen.

    The published extractor pads on the left, gives the model no mask, and takes the place that
    would be the last nucleotide's if padding were on the right. Rows that are shorter than the
    longest of their batch so get a vector of another place that has seen padding, or of padding.
    The preset ``reference`` does so too: batches of 8 as they stand in the file, in bfloat16. In
    ``masked`` every row gets what it would have alone, in float32.

    Parameters
    ----------
    folder
        ``config.json`` and the weights, as published; the tokens are known here.
    options
        What a user asked for.
    limit
        Tokens, ``[CLS]`` and ``[SEP]`` included.
    """

    name = "biofm"
    presets = ("masked", "reference")

    def __init__(self, folder: Path, options: ModelOptions, *, limit: int) -> None:
        check_reference_pooling(options, "last", "those of one token")
        reference = options.preset == "reference"
        checkpoint = Checkpoint(folder)
        config = native_config(checkpoint, MistralConfig, pad_token_id=None)
        recipe = Recipe(
            limit=limit,
            pooling="last",
            dtype="bfloat16" if reference else "float32",
            notes={"last": "the token before [SEP]"},
        )
        network = load_native(
            checkpoint,
            lambda: mistral_network(config),
            renamed=causal_name,
            dtype=torch_dtype(options, recipe),
        )
        super().__init__(tokenizer(), network, recipe, checkpoint.sha256(), options)

    def _padded(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        ids, inside = super()._padded(batch)
        if self.preset != "reference":
            return ids, inside
        for row, item in enumerate(batch.items):
            shift = ids.shape[1] - item.length
            ids[row], inside[row] = ids[row].roll(shift), inside[row].roll(shift)
        return ids, inside

    def _pool(
        self, hidden: torch.Tensor, items: Sequence[Item], inside: torch.Tensor
    ) -> torch.Tensor:
        if self.pooling != "last":
            return super()._pool(hidden, items, inside)
        # There is [CLS] and [SEP] at least; without a nucleotide it is [CLS].
        places = inside.sum(dim=1) - 2
        rows = torch.arange(len(items), device=hidden.device)
        return hidden[rows, places].float()


def tokenizer() -> CharacterTokenizer:
    """Return the tokenizer: ``[CLS]``, a token a letter, ``[SEP]``."""
    return CharacterTokenizer(
        _LETTERS, unknown=_UNKNOWN, pad=_PAD, prefix=[_CLS], suffix=[_SEP], policy=_POLICY
    )

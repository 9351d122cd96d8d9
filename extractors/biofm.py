"""BioFM: Transformers' own Mistral over single nucleotides; the last of them is the embedding."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import MistralConfig, MistralModel

from geneb.errors import InputError
from geneb.extractors.base import Batch, Item
from geneb.extractors.checkpoints import Checkpoint
from geneb.extractors.native import CausalNetwork, causal_name, load_native, native_config
from geneb.extractors.options import ModelOptions
from geneb.extractors.tokenizers import CharacterTokenizer
from geneb.extractors.torch_extractor import Recipe, TorchExtractor, torch_dtype

_LETTERS = {"D": 0, "N": 1, "A": 2, "T": 3, "G": 4, "C": 5}
_CLS, _SEP, _UNKNOWN, _PAD = 6, 7, 8, 9
_POLICY = {
    "case": "as it stands: lower case is unknown",
    "U": "unknown",
    "N": "a token",
    "D": "a token, which stands for a deletion",
    "other letters": "unknown",
}
_BATCH_SIZE = 8


class BioFmExtractor(TorchExtractor):
    """BioFM: what the last nucleotide, the token before ``[SEP]``, has seen.

    The published extractor pads on the left, gives the model no mask, and takes the place that
    would be the last nucleotide's if padding were on the right. Rows that are shorter than the
    longest of their batch so get a vector of another place that has seen padding, or of padding.
    The preset ``reference`` does so too: batches of 8 as they stand in the file, in bfloat16. In
    ``masked`` every row gets what the published extractor gives it alone.

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
            lambda: CausalNetwork(MistralModel(config), config.num_hidden_layers),
            renamed=causal_name,
            dtype=torch_dtype(options, recipe),
        )
        super().__init__(tokenizer(), network, recipe, checkpoint.sha256(), options)
        if reference:
            self.batching = "file-order"
            self.batch_size = _BATCH_SIZE
            if self.pooling != "last":
                raise InputError(
                    "the published vectors of this model are those of one token",
                    where="preset reference",
                    expected="pooling last",
                    found=self.pooling,
                    fix="leave --pooling out, or choose preset masked",
                )

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

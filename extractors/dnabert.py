"""The first DNABERT: Transformers' own BERT over overlapping k-mers. A family in one short file.

It is no model of the benchmark; it is here as the pattern of a contributed one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from transformers import BertConfig

from geneb.base.canonical import digest
from geneb.errors import InputError
from geneb.extractors.bert import bert_network, own_name
from geneb.extractors.checkpoints import Checkpoint
from geneb.extractors.native import check_positions, load_native, native_config
from geneb.extractors.options import ModelOptions
from geneb.extractors.tokenizers import Tokenizer, read_vocabulary
from geneb.extractors.torch_extractor import Recipe, TorchExtractor, torch_dtype


class OverlappingKmers(Tokenizer):
    """One token a position: the k letters that begin there; none where fewer than k are left.

    Raises
    ------
    InputError
        If the vocabulary lacks a special token, or has k-mers of other than one length.
    """

    policy = {  # noqa: RUF012  a mapping that nobody changes
        "case": "upper",
        "U": "T",
        "N": "every k-mer with it is unknown",
        "other letters": "every k-mer with one is unknown",
        "shorter than k": "special tokens only",
    }

    def __init__(self, path: Path) -> None:
        self._ids = read_vocabulary(path)
        lengths = {len(token) for token in self._ids if not token.startswith("[")}
        missing = {"[PAD]", "[UNK]", "[CLS]", "[SEP]"} - self._ids.keys()
        if missing or len(lengths) != 1:
            raise InputError(
                "this is not a vocabulary of k-mers",
                where=str(path),
                expected="[PAD], [UNK], [CLS], [SEP], and k-mers of one length",
                found=f"without {', '.join(sorted(missing))}" if missing else f"k of {lengths}",
            )
        (self._k,) = lengths
        self.pad = self._ids["[PAD]"]
        self.prefix, self.suffix = (self._ids["[CLS]"],), (self._ids["[SEP]"],)
        self.sha256 = digest({"vocabulary": self._ids, "overlapping": True})

    def encode(self, sequences: Sequence[str]) -> list[np.ndarray]:
        """Look up the k-mer at every position."""
        return [np.array(self._ids_of(text), dtype=np.int64) for text in sequences]

    def _ids_of(self, text: str) -> list[int]:
        text, unknown = text.upper().replace("U", "T"), self._ids["[UNK]"]
        starts = range(len(text) - self._k + 1)
        return [self._ids.get(text[start : start + self._k], unknown) for start in starts]


class DnabertExtractor(TorchExtractor):
    """DNABERT: ``config.json``, ``vocab.txt`` and the weights, as published.

    Parameters
    ----------
    folder, options
        Where they lie, and what a user asked for.
    limit
        Tokens, ``[CLS]`` and ``[SEP]`` included.
    """

    name = "dnabert"

    def __init__(self, folder: Path, options: ModelOptions, *, limit: int) -> None:
        checkpoint = Checkpoint(folder)
        config = native_config(checkpoint, BertConfig)
        check_positions(limit, config.max_position_embeddings, str(folder))
        recipe = Recipe(limit=limit)
        network = load_native(
            checkpoint,
            lambda: bert_network(config),
            renamed=own_name,
            dtype=torch_dtype(options, recipe),
        )
        tokenizer = OverlappingKmers(folder / "vocab.txt")
        super().__init__(tokenizer, network, recipe, checkpoint.sha256(), options)

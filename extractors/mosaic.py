"""MosaicBERT: DNABERT-2, DNABERT-S and Genomics-FM.

BERT with one matrix for queries, keys and values, a gated feed-forward part, and a penalty on
distance (ALiBi) in the place of positions. The penalty is computed for the length at hand, so it
does not end at the 512 tokens that the published table starts with.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from geneb.extractors.checkpoints import Checkpoint
from geneb.extractors.configs import Config, bert_sizes
from geneb.extractors.encoder import BERT_NAMES, EncoderDesign, Positions, load_encoder, renaming
from geneb.extractors.native import check_positions
from geneb.extractors.options import ModelOptions, Pooling
from geneb.extractors.tokenizers import FileTokenizer, bert_tokenizer
from geneb.extractors.torch_extractor import Recipe, TorchExtractor, torch_dtype

own_name = renaming(
    {
        **{name: own for name, own in BERT_NAMES.items() if name.startswith("embeddings.")},
        "encoder.layer.*.attention.self.Wqkv": "blocks.*.attention.fused",
        "encoder.layer.*.attention.output.dense": "blocks.*.attention.output",
        "encoder.layer.*.attention.output.LayerNorm": "blocks.*.attention_norm",
        "encoder.layer.*.mlp.gated_layers": "blocks.*.feed_forward.inner",
        "encoder.layer.*.mlp.wo": "blocks.*.feed_forward.outer",
        "encoder.layer.*.mlp.layernorm": "blocks.*.feed_forward_norm",
    },
    prefix="bert.",
    left_out=("cls.", "pooler."),
)
_POLICY = {
    "case": "as it stands: lower case is unknown",
    "U": "unknown",
    "N": "unknown",
    "other letters": "unknown, each by itself; white space is left out",
}
_CLEANED_POLICY = {
    "case": "upper",
    "U": "unknown",
    "N": "unknown",
    "other letters": "unknown, each by itself; white space is cut off at both ends",
}
_NO_BASE = re.compile("[^ACGT]")


class MosaicExtractor(TorchExtractor):
    """DNABERT-2 and DNABERT-S.

    The published extractor loads DNABERT-S as another class, whose layers stay as they were drawn
    at random; its score cannot be repeated. Here it is the model that its authors published, with
    the first token's vector as in that extractor, where its authors take the mean.

    Parameters
    ----------
    folder
        ``config.json``, ``tokenizer.json`` and the weights, as published.
    options
        What a user asked for.
    limit
        Tokens, ``[CLS]`` and ``[SEP]`` included.
    pooling
        ``mean`` or ``cls``.
    """

    name = "mosaic"
    positions: ClassVar[Positions] = "alibi"

    def __init__(
        self, folder: Path, options: ModelOptions, *, limit: int, pooling: Pooling
    ) -> None:
        checkpoint = Checkpoint(folder)
        design = read_design(Config(checkpoint), self.positions)
        if design.position_rows:
            check_positions(limit, design.position_rows, str(folder))
        recipe = Recipe(limit=limit, pooling=pooling)
        network = load_encoder(checkpoint, design, own_name, dtype=torch_dtype(options, recipe))
        tokenizer = self._tokenizer(folder / "tokenizer.json", design.vocabulary)
        super().__init__(tokenizer, network, recipe, checkpoint.sha256(), options)

    def _tokenizer(self, path: Path, rows: int) -> FileTokenizer:
        return bert_tokenizer(path, policy=_POLICY, rows=rows)


class GenomicsFMExtractor(MosaicExtractor):
    """Genomics-FM: learnt positions and no penalty on distance; only bases reach its tokenizer."""

    name = "genomics-fm"
    positions: ClassVar[Positions] = "absolute"

    def _tokenizer(self, path: Path, rows: int) -> FileTokenizer:
        return _CleaningTokenizer(
            path, pad="[PAD]", prefix=["[CLS]"], suffix=["[SEP]"], policy=_CLEANED_POLICY, rows=rows
        )


class _CleaningTokenizer(FileTokenizer):
    def encode(self, sequences: Sequence[str]) -> list[np.ndarray]:
        """Make every letter that is no base an N, which the file does not know."""
        return super().encode([_NO_BASE.sub("N", text.strip().upper()) for text in sequences])


def read_design(config: Config, positions: Positions) -> EncoderDesign:
    """Return how the network of a configuration is built.

    The configuration does not tell the positions: it says ``absolute`` for all three models.
    """
    config.check_kind("bert")
    config.check(hidden_act="gelu", position_embedding_type="absolute")
    absolute = positions == "absolute"
    return EncoderDesign(
        **bert_sizes(config),
        positions=positions,
        position_rows=config.whole("max_position_embeddings") if absolute else 0,
        type_rows=config.whole("type_vocab_size"),
        pre_norm=False,
        gated=True,
        inner_bias=False,
        fused=True,
    )

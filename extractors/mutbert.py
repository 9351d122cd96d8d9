"""MutBERT: BERT with rotary positions, one token a nucleotide.

Its own code takes a mixture of tokens at each place and multiplies it with the embedding table.
A sequence without variants is one token a place, for which that is the look-up done here.
"""

from __future__ import annotations

from pathlib import Path

from geneb.extractors.checkpoints import Checkpoint
from geneb.extractors.configs import Config, bert_sizes
from geneb.extractors.encoder import BERT_NAMES, EncoderDesign, load_encoder, renaming
from geneb.extractors.options import ModelOptions
from geneb.extractors.tokenizers import bert_tokenizer
from geneb.extractors.torch_extractor import Recipe, TorchExtractor, torch_dtype

own_name = renaming(BERT_NAMES, prefix="bert.", left_out=("cls.",))
_POLICY = {
    "case": "as it stands: lower case is unknown",
    "U": "unknown",
    "N": "unknown",
    "other letters": "unknown, each by itself; white space is left out",
}


class MutBertExtractor(TorchExtractor):
    """MutBERT; nothing is cut, as in the published extractor, though it was trained on 512 tokens.

    Parameters
    ----------
    folder
        ``config.json``, ``tokenizer.json`` and the weights, as published. The ``vocab.txt`` that
        lies beside them numbers the tokens otherwise and is not read.
    options
        What a user asked for.
    """

    name = "mutbert"

    def __init__(self, folder: Path, options: ModelOptions) -> None:
        checkpoint = Checkpoint(folder)
        design = read_design(Config(checkpoint))
        recipe = Recipe(limit=None)
        network = load_encoder(checkpoint, design, own_name, dtype=torch_dtype(options, recipe))
        tokenizer = bert_tokenizer(
            folder / "tokenizer.json", policy=_POLICY, rows=design.vocabulary
        )
        super().__init__(tokenizer, network, recipe, checkpoint.sha256(), options)


def read_design(config: Config) -> EncoderDesign:
    """Return how the network of a configuration is built."""
    config.check(model_type="bert", hidden_act="gelu", rope_theta=10_000.0, rope_scaling=None)
    return EncoderDesign(
        **bert_sizes(config),
        positions="rotary",
        type_rows=config.whole("type_vocab_size"),
        pre_norm=False,
    )

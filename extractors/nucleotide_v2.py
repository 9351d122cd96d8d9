"""Nucleotide Transformer v2: ESM with rotary positions and a gated feed-forward part."""

from __future__ import annotations

from pathlib import Path

from geneb.extractors.checkpoints import Checkpoint
from geneb.extractors.configs import Config, bert_sizes
from geneb.extractors.encoder import EncoderDesign, load_encoder, renaming
from geneb.extractors.nucleotide_tokenizer import read_nucleotide_tokenizer
from geneb.extractors.options import ModelOptions
from geneb.extractors.torch_extractor import Recipe, TorchExtractor, torch_dtype

own_name = renaming(
    {
        "embeddings.word_embeddings": "embeddings.tokens",
        "encoder.layer.*.attention.LayerNorm": "blocks.*.attention_norm",
        "encoder.layer.*.attention.self.query": "blocks.*.attention.query",
        "encoder.layer.*.attention.self.key": "blocks.*.attention.key",
        "encoder.layer.*.attention.self.value": "blocks.*.attention.value",
        "encoder.layer.*.attention.output.dense": "blocks.*.attention.output",
        "encoder.layer.*.LayerNorm": "blocks.*.feed_forward_norm",
        "encoder.layer.*.intermediate.dense": "blocks.*.feed_forward.inner",
        "encoder.layer.*.output.dense": "blocks.*.feed_forward.outer",
        "encoder.emb_layer_norm_after": "final_norm",
    },
    prefix="esm.",
    left_out=(
        "lm_head.",
        "contact_head.",
        # A table that the authors' class makes, though it turns instead of adding.
        "embeddings.position_embeddings.",
        "embeddings.position_ids",
    ),
    left_out_ends=("rotary_embeddings.inv_freq",),
)


class NucleotideV2Extractor(TorchExtractor):
    """Nucleotide Transformer v2.

    Parameters
    ----------
    folder
        ``config.json``, ``vocab.txt`` and the weights, as published.
    options
        What a user asked for.
    limit
        Tokens, ``<cls>`` included.
    """

    name = "nucleotide-v2"

    def __init__(self, folder: Path, options: ModelOptions, *, limit: int) -> None:
        checkpoint = Checkpoint(folder)
        design = read_design(Config(checkpoint))
        recipe = Recipe(limit=limit)
        network = load_encoder(checkpoint, design, own_name, dtype=torch_dtype(options, recipe))
        super().__init__(
            read_nucleotide_tokenizer(folder / "vocab.txt", design.vocabulary),
            network,
            recipe,
            checkpoint.sha256(),
            options,
        )


def read_design(config: Config) -> EncoderDesign:
    """Return how the network of a configuration is built."""
    config.check(
        model_type="esm",
        position_embedding_type="rotary",
        emb_layer_norm_before=False,
        token_dropout=False,
    )
    feed_forward_bias = config.flag("add_bias_fnn", default=True)
    return EncoderDesign(
        **bert_sizes(config),
        positions="rotary",
        pre_norm=True,
        embedding_norm=False,
        final_norm=True,
        activation="silu",
        gated=True,
        inner_bias=feed_forward_bias,
        outer_bias=feed_forward_bias,
    )

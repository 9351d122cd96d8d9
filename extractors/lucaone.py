"""LucaOne: one encoder for nucleic acids and proteins, here for nucleic acids."""

from __future__ import annotations

from pathlib import Path

from geneb.extractors.checkpoints import Checkpoint
from geneb.extractors.configs import MOST_LAYERS, Config
from geneb.extractors.encoder import EncoderDesign, load_encoder, renaming
from geneb.extractors.options import ModelOptions
from geneb.extractors.tokenizers import CharacterTokenizer
from geneb.extractors.torch_extractor import Recipe, TorchExtractor, torch_dtype

own_name = renaming(
    {
        "embeddings.embed_tokens": "embeddings.tokens",
        "embeddings.embed_type": "embeddings.types",
        "encoder.layers.*.pre_layer_norm": "blocks.*.attention_norm",
        "encoder.layers.*.self_attn.q_proj": "blocks.*.attention.query",
        "encoder.layers.*.self_attn.k_proj": "blocks.*.attention.key",
        "encoder.layers.*.self_attn.v_proj": "blocks.*.attention.value",
        "encoder.layers.*.self_attn.out_proj": "blocks.*.attention.output",
        "encoder.layers.*.post_layer_norm": "blocks.*.feed_forward_norm",
        "encoder.layers.*.fc1": "blocks.*.feed_forward.inner",
        "encoder.layers.*.fc2": "blocks.*.feed_forward.outer",
        "encoder.last_layer_norm": "final_norm",
    },
    prefix="lucaone.",
    left_out=("lm_head.",),
    left_out_ends=("self_attn.rot_emb.inv_freq",),
)
# The configuration names another one, which the published code does not hand on to its norms.
_EPS = 1e-5
_PAD, _CLS, _SEP, _OTHER = 0, 2, 3, 9
_BASES = {"A": 5, "T": 6, "U": 6, "C": 7, "G": 8}
_POLICY = {
    "case": "upper",
    "U": "T",
    "N": "a token, that of all other characters",
    "other letters": "as N",
}


class LucaOneExtractor(TorchExtractor):
    """LucaOne in its mode for genes.

    Parameters
    ----------
    folder
        ``config.json`` and the weights, as published. The tokenizer is a fixed rule.
    options
        What a user asked for.
    limit
        Tokens, ``[CLS]`` and ``[SEP]`` included.
    """

    name = "lucaone"

    def __init__(self, folder: Path, options: ModelOptions, *, limit: int) -> None:
        checkpoint = Checkpoint(folder)
        recipe = Recipe(limit=limit)
        design = read_design(Config(checkpoint))
        network = load_encoder(checkpoint, design, own_name, dtype=torch_dtype(options, recipe))
        super().__init__(gene_tokenizer(), network, recipe, checkpoint.sha256(), options)


def gene_tokenizer() -> CharacterTokenizer:
    """Return the tokenizer of the mode for genes: one token a character, of either case."""
    either_case = _BASES | {base.lower(): number for base, number in _BASES.items()}
    return CharacterTokenizer(
        either_case, unknown=_OTHER, pad=_PAD, policy=_POLICY, prefix=[_CLS], suffix=[_SEP]
    )


def read_design(config: Config) -> EncoderDesign:
    """Return how the network of a configuration is built."""
    config.check(
        hidden_act="gelu",
        no_position_embeddings=True,
        no_token_type_embeddings=False,
        use_embed_layer_norm=False,
        use_last_layer_norm=True,
        embed_scale=1.0,
        token_dropout=False,
    )
    return EncoderDesign(
        vocabulary=config.whole("vocab_size"),
        width=config.whole("hidden_size"),
        layers=config.whole("num_hidden_layers", MOST_LAYERS),
        heads=config.whole("num_attention_heads", MOST_LAYERS),
        inner=config.whole("ffn_dim"),
        positions="rotary",
        type_rows=config.whole("type_vocab_size"),
        pre_norm=True,
        eps=_EPS,
        embedding_norm=False,
        final_norm=True,
    )

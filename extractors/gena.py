"""GENA-LM: BERT with its norms in front."""

from __future__ import annotations

from pathlib import Path

from geneb.extractors.checkpoints import Checkpoint
from geneb.extractors.configs import Config, bert_sizes
from geneb.extractors.encoder import BERT_NAMES, EncoderDesign, load_encoder, renaming
from geneb.extractors.native import check_positions
from geneb.extractors.options import ModelOptions
from geneb.extractors.tokenizers import FileTokenizer, bert_tokenizer
from geneb.extractors.torch_extractor import Recipe, TorchExtractor, torch_dtype

_NORMS_BEHIND = "output.LayerNorm"

own_name = renaming(
    {
        **{name: own for name, own in BERT_NAMES.items() if not name.endswith(_NORMS_BEHIND)},
        "encoder.layer.*.pre_attention_ln": "blocks.*.attention_norm",
        "encoder.layer.*.post_attention_ln": "blocks.*.feed_forward_norm",
        "encoder.last_layer_ln": "final_norm",
    },
    prefix="bert.",
    left_out=("cls.", "pooler.", "embeddings.position_ids"),
)
_POLICY = {
    "case": "as it stands: lower case is unknown",
    "U": "unknown",
    "N": "unknown",
    "other letters": "unknown, each by itself",
}
_IUPAC_POLICY = {
    "case": "as it stands: lower case is unknown",
    "U": "unknown",
    "N": "as other letters; ten or more in a row are one gap",
    "other letters": "those of IUPAC that the vocabulary has are tokens, others unknown",
}


class GenaExtractor(TorchExtractor):
    """GENA-LM, with full attention.

    Parameters
    ----------
    folder
        ``config.json``, ``tokenizer.json`` and the weights, as published.
    options
        What a user asked for.
    limit
        Tokens, ``[CLS]`` and ``[SEP]`` included.
    """

    name = "gena"

    def __init__(self, folder: Path, options: ModelOptions, *, limit: int) -> None:
        checkpoint = Checkpoint(folder)
        design = read_design(Config(checkpoint))
        check_positions(limit, design.position_rows, str(folder))
        recipe = Recipe(limit=limit)
        network = load_encoder(checkpoint, design, own_name, dtype=torch_dtype(options, recipe))
        tokenizer = _read_tokenizer(folder / "tokenizer.json", design.vocabulary)
        super().__init__(tokenizer, network, recipe, checkpoint.sha256(), options)


def _read_tokenizer(path: Path, rows: int) -> FileTokenizer:
    tokenizer = bert_tokenizer(path, policy=_POLICY, rows=rows)
    # The models trained on T2T assemblies came with a file that knows more letters.
    if tokenizer.encode(["N"])[0].tolist() != [tokenizer.token_id("[UNK]")]:
        tokenizer.policy = _IUPAC_POLICY
    return tokenizer


def read_design(config: Config) -> EncoderDesign:
    """Return how the network of a configuration is built.

    A configuration that does not say whether there is a last norm has one.
    """
    config.check(
        model_type="bert",
        hidden_act="gelu",
        pre_layer_norm=True,
        position_embedding_type="absolute",
    )
    return EncoderDesign(
        **bert_sizes(config),
        positions="absolute",
        position_rows=config.whole("max_position_embeddings"),
        type_rows=config.whole("type_vocab_size"),
        pre_norm=True,
        final_norm=config.flag("last_layer_norm", default=True),
    )

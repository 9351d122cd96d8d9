"""Checkpoints of the encoder families in the layouts they were published in, tiny or full-size.

Names and shapes are those of the published files. What is in a tiny one is drawn from a seed, so
that the figures of the reference implementations (``tests/golden``) can be compared with.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

Shapes = dict[str, tuple[int, ...]]


def seeded_tensors(shapes: Mapping[str, tuple[int, ...]], seed: int) -> dict[str, torch.Tensor]:
    """Return tensors that are the same for the same seed, drawn in the order of their names.

    Buffers that a class computes hold what it computes; norms are near 1.
    """
    draws = np.random.default_rng(seed)
    return {name: _drawn(name, shapes[name], draws) for name in sorted(shapes)}


def nucleotide_v2(config: Mapping[str, Any]) -> Shapes:
    """Nucleotide Transformer v2: EsmForMaskedLM with a doubled inner matrix."""
    width, inner, rows = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    layers, heads = config["num_hidden_layers"], config["num_attention_heads"]
    shapes = {
        "esm.embeddings.word_embeddings.weight": (rows, width),
        "esm.embeddings.position_embeddings.weight": (config["max_position_embeddings"], width),
        **_norm("esm.encoder.emb_layer_norm_after", width),
        "esm.contact_head.regression.weight": (1, layers * heads),
        "esm.contact_head.regression.bias": (1,),
        "lm_head.bias": (rows,),
        **_linear("lm_head.dense", width, width),
        **_norm("lm_head.layer_norm", width),
        "lm_head.decoder.weight": (rows, width),
    }
    for number in range(layers):
        at = f"esm.encoder.layer.{number}"
        for part in ("query", "key", "value"):
            shapes |= _linear(f"{at}.attention.self.{part}", width, width)
        shapes |= {
            f"{at}.attention.self.rotary_embeddings.inv_freq": (width // heads // 2,),
            **_linear(f"{at}.attention.output.dense", width, width),
            **_norm(f"{at}.attention.LayerNorm", width),
            **_norm(f"{at}.LayerNorm", width),
            f"{at}.intermediate.dense.weight": (2 * inner, width),
            f"{at}.output.dense.weight": (width, inner),
        }
    return shapes


def mosaic(config: Mapping[str, Any], *, masked_lm: bool = True, positions: bool = False) -> Shapes:
    """MosaicBERT: with a head for masked tokens (DNABERT-2, Genomics-FM), or a pooler (-S)."""
    width, inner = config["hidden_size"], config["intermediate_size"]
    prefix = "bert." if masked_lm else ""
    shapes = _bert_embeddings(config, prefix, positions=positions)
    for number in range(config["num_hidden_layers"]):
        at = f"{prefix}encoder.layer.{number}"
        shapes |= {
            **_linear(f"{at}.attention.self.Wqkv", width, 3 * width),
            **_linear(f"{at}.attention.output.dense", width, width),
            **_norm(f"{at}.attention.output.LayerNorm", width),
            f"{at}.mlp.gated_layers.weight": (2 * inner, width),
            **_linear(f"{at}.mlp.wo", inner, width),
            **_norm(f"{at}.mlp.layernorm", width),
        }
    if not masked_lm:
        return shapes | _linear("pooler.dense", width, width)
    return shapes | {
        **_linear("cls.predictions.transform.dense", width, width),
        **_norm("cls.predictions.transform.LayerNorm", width),
        **_linear("cls.predictions.decoder", width, config["vocab_size"]),
    }


def gena(config: Mapping[str, Any], *, pretraining: bool = False) -> Shapes:
    """GENA-LM: BERT with norms in front; the first model was saved with both of its heads."""
    width, inner = config["hidden_size"], config["intermediate_size"]
    shapes = _bert_embeddings(config, "bert.", positions=True)
    shapes["bert.embeddings.position_ids"] = (1, config["max_position_embeddings"])
    for number in range(config["num_hidden_layers"]):
        at = f"bert.encoder.layer.{number}"
        shapes |= {
            **_bert_attention(at, width),
            **_norm(f"{at}.pre_attention_ln", width),
            **_norm(f"{at}.post_attention_ln", width),
            **_linear(f"{at}.intermediate.dense", width, inner),
            **_linear(f"{at}.output.dense", inner, width),
        }
    if config.get("last_layer_norm", True):
        shapes |= _norm("bert.encoder.last_layer_ln", width)
    if pretraining:
        shapes |= _linear("bert.pooler.dense", width, width)
        shapes |= _linear("cls.seq_relationship", width, 2)
    return shapes | _bert_head(config)


def mutbert(config: Mapping[str, Any]) -> Shapes:
    """MutBERT: BERT without a table of positions."""
    width, inner = config["hidden_size"], config["intermediate_size"]
    shapes = _bert_embeddings(config, "bert.", positions=False)
    for number in range(config["num_hidden_layers"]):
        at = f"bert.encoder.layer.{number}"
        shapes |= {
            **_bert_attention(at, width),
            **_norm(f"{at}.attention.output.LayerNorm", width),
            **_linear(f"{at}.intermediate.dense", width, inner),
            **_linear(f"{at}.output.dense", inner, width),
            **_norm(f"{at}.output.LayerNorm", width),
        }
    return shapes | _bert_head(config)


def lucaone(config: Mapping[str, Any]) -> Shapes:
    """LucaOne with its head for masked tokens."""
    width, rows = config["hidden_size"], config["vocab_size"]
    shapes = {
        "lucaone.embeddings.embed_tokens.weight": (rows, width),
        "lucaone.embeddings.embed_type.weight": (config["type_vocab_size"], width),
        **_norm("lucaone.encoder.last_layer_norm", width),
    }
    for number in range(config["num_hidden_layers"]):
        at = f"lucaone.encoder.layers.{number}"
        for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
            shapes |= _linear(f"{at}.self_attn.{part}", width, width)
        shapes |= {
            f"{at}.self_attn.rot_emb.inv_freq": (width // config["num_attention_heads"] // 2,),
            **_norm(f"{at}.pre_layer_norm", width),
            **_norm(f"{at}.post_layer_norm", width),
            **_linear(f"{at}.fc1", width, config["ffn_dim"]),
            **_linear(f"{at}.fc2", config["ffn_dim"], width),
        }
    return shapes | {
        "lm_head.bias": (rows,),
        **_linear("lm_head.dense", width, width),
        **_norm("lm_head.layer_norm", width),
        "lm_head.decoder.weight": (rows, width),
    }


def nucleotide_vocabulary(k: int) -> str:
    """Return the text of the ``vocab.txt`` of Nucleotide Transformer v2."""
    kmers = ("".join(letters) for letters in itertools.product("ATCG", repeat=k))
    specials = ("<unk>", "<pad>", "<mask>", "<cls>", "<eos>", "<bos>")
    return "\n".join((*specials, *kmers, *"ATCGN"))


def _bert_embeddings(config: Mapping[str, Any], prefix: str, *, positions: bool) -> Shapes:
    width, at = config["hidden_size"], f"{prefix}embeddings"
    rows = {"word": config["vocab_size"], "token_type": config["type_vocab_size"]}
    if positions:
        rows["position"] = config["max_position_embeddings"]
    tables = {f"{at}.{name}_embeddings.weight": (count, width) for name, count in rows.items()}
    return tables | _norm(f"{at}.LayerNorm", width)


def _bert_attention(at: str, width: int) -> Shapes:
    shapes = _linear(f"{at}.attention.output.dense", width, width)
    for part in ("query", "key", "value"):
        shapes |= _linear(f"{at}.attention.self.{part}", width, width)
    return shapes


def _bert_head(config: Mapping[str, Any]) -> Shapes:
    width, rows = config["hidden_size"], config["vocab_size"]
    return {
        "cls.predictions.bias": (rows,),
        **_linear("cls.predictions.transform.dense", width, width),
        **_norm("cls.predictions.transform.LayerNorm", width),
        **_linear("cls.predictions.decoder", width, rows),
    }


def _linear(name: str, width: int, rows: int) -> Shapes:
    return {f"{name}.weight": (rows, width), f"{name}.bias": (rows,)}


def _norm(name: str, width: int) -> Shapes:
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def _drawn(name: str, shape: tuple[int, ...], draws: np.random.Generator) -> torch.Tensor:
    module, _, leaf = name.rpartition(".")
    if leaf == "position_ids":
        return torch.arange(shape[-1]).reshape(shape)
    if leaf == "inv_freq":
        places = torch.arange(0, 2 * shape[0], 2, dtype=torch.float32)
        return 1.0 / 10_000.0 ** (places / (2 * shape[0]))
    # Doubles from the generator's own bits: the steadiest of what it draws.
    between = torch.from_numpy((2.0 * draws.random(shape) - 1.0).astype(np.float32))
    if leaf == "bias":
        return 0.3 * between
    if len(shape) == 1:
        return 1.0 + 0.3 * between
    is_table = "embed" in module
    return between if is_table else between * 3.0 / shape[1] ** 0.5

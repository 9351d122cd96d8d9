"""Any language model in the layout of the Hugging Face hub whose architecture is known here.

The classes are Transformers' own, chosen from a fixed list by ``model_type``; code that comes with
weights is never run. What the published extractor of a model did is not known here: a model with
an entry of its own in the registry is better run by that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers

from geneb.base.files import read_json
from geneb.base.text import plain
from geneb.errors import InputError, NotFoundError
from geneb.extractors.checkpoints import CONFIG, Checkpoint, followed
from geneb.extractors.deepgene import roformer_network
from geneb.extractors.native import CausalNetwork, NativeNetwork, load_native, native_config
from geneb.extractors.options import ModelOptions
from geneb.extractors.tokenizers import AS_THE_FILE_SAYS, FileTokenizer
from geneb.extractors.torch_extractor import Recipe, TorchExtractor, torch_dtype

_TOKENIZER = "tokenizer.json"
_TOKENIZER_CONFIG = "tokenizer_config.json"
# What padding is made of where no token is named for it. It is masked, so any token will do.
_PADDING_NAMES = ("pad_token", "eos_token", "unk_token", "cls_token")
# Where a tokenizer has no limit, its configuration says so with a number of thirty digits.
_LARGEST_LIMIT = 1 << 24

_HEADS = (
    "classifier.",
    "cls.",
    "contact_head.",
    "decoder.",
    "discriminator_predictions.",
    "embed_out.",
    "generator_lm_head.",
    "generator_predictions.",
    "head.",
    "lm_head.",
    "pooler.",
    "pre_classifier.",
    "score.",
    "vocab_layer_norm.",
    "vocab_projector.",
    "vocab_transform.",
)
# Buffers that old versions stored and that a model computes for itself.
_BUFFERS = (
    ".attention.bias",
    ".attention.masked_bias",
    ".attn.bias",
    ".attn.masked_bias",
    ".rotary_emb.inv_freq",
    "encoder.embed_positions.weight",
    "rotary_embeddings.inv_freq",
    "embeddings.position_ids",
)
# As norms were called before torch had them.
_OLD_ENDINGS = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}


@dataclass(frozen=True)
class Architecture:
    """A class of Transformers that can be filled with a folder's weights.

    Attributes
    ----------
    model
        Its name; that of its configuration has ``Config`` in the place of ``Model``.
    prefix
        What stands before its tensors' names where a head was saved with it.
    causal
        Whether its tokens look back only.
    arguments
        What it is constructed with besides the configuration.
    """

    model: str
    prefix: str
    causal: bool = False
    arguments: dict[str, Any] = field(default_factory=dict)

    @property
    def config_class(self) -> Any:
        """The class of the configuration."""
        return getattr(transformers, self.model.removesuffix("Model") + "Config")

    def build(self, config: Any, dtype: torch.dtype) -> NativeNetwork:
        """Construct the network of a configuration, to compute in a dtype."""
        if self.model == "RoFormerModel":
            return roformer_network(config, dtype)
        model = getattr(transformers, self.model)(config, **self.arguments)
        if self.model == "EsmModel":
            _simplify_esm(model)
        kind = CausalNetwork if self.causal else NativeNetwork
        return kind(model, config.num_hidden_layers)


def _simplify_esm(model: Any) -> None:
    del model.contact_head  # never asked for
    if rotary := getattr(model, "rotary_embeddings", None):
        # Computed by the constructor; whether a file holds it depends on who wrote it.
        rotary.register_buffer("inv_freq", rotary.inv_freq, persistent=False)


_WITHOUT_POOLER = {"add_pooling_layer": False}
ARCHITECTURES = {
    "bert": Architecture("BertModel", "bert.", arguments=_WITHOUT_POOLER),
    "distilbert": Architecture("DistilBertModel", "distilbert."),
    "electra": Architecture("ElectraModel", "electra."),
    "esm": Architecture("EsmModel", "esm.", arguments=_WITHOUT_POOLER),
    "gpt2": Architecture("GPT2Model", "transformer.", causal=True),
    "gpt_neox": Architecture("GPTNeoXModel", "gpt_neox.", causal=True),
    "llama": Architecture("LlamaModel", "model.", causal=True),
    "mistral": Architecture("MistralModel", "model.", causal=True),
    "mixtral": Architecture("MixtralModel", "model.", causal=True),
    "modernbert": Architecture("ModernBertModel", "model."),
    "olmo": Architecture("OlmoModel", "model.", causal=True),
    "olmo2": Architecture("Olmo2Model", "model.", causal=True),
    "qwen2": Architecture("Qwen2Model", "model.", causal=True),
    "qwen3": Architecture("Qwen3Model", "model.", causal=True),
    "roberta": Architecture("RobertaModel", "roberta.", arguments=_WITHOUT_POOLER),
    "roformer": Architecture("RoFormerModel", "roformer."),
}
# Their positions are counted from the one behind the padding's, so that two or so are never used.
_POSITIONS_BEHIND_PADDING = ("roberta", "esm")

_WITHOUT_FUSED_ATTENTION = ("roformer",)


class HuggingFaceExtractor(TorchExtractor):
    """A causal or masked language model in a folder: the mean of its last hidden state.

    Special tokens are those that the tokenizer's own template puts around a sequence, and they
    enter the mean. The limit is the smaller one of the model's and the tokenizer's.

    Parameters
    ----------
    folder
        ``config.json``, ``tokenizer.json`` and the weights; ``tokenizer_config.json`` where
        there is one.
    options
        What a user asked for.
    """

    name = "hf"

    def __init__(self, folder: Path, options: ModelOptions) -> None:
        checkpoint = LanguageModelCheckpoint(folder)
        model_type, architecture = _architecture(checkpoint)
        config = native_config(checkpoint, architecture.config_class, **_settings(checkpoint))
        tokenizer = _tokenizer(folder, config, architecture)
        recipe = Recipe(limit=_limit(folder, config, tokenizer), notes={"architecture": model_type})
        dtype = torch_dtype(options, recipe)
        network = load_native(
            checkpoint,
            lambda: architecture.build(config, dtype),
            renamed=lambda name: own_name(name, architecture.prefix),
            dtype=dtype,
        )
        super().__init__(tokenizer, network, recipe, checkpoint.sha256(), options)


class LanguageModelCheckpoint(Checkpoint):
    """Weights whose experts, where there are any, are put together as Transformers has them now."""

    def tensors(self) -> dict[str, torch.Tensor]:
        """Return all tensors; those of single experts stacked."""
        tensors = super().tensors()
        gates = [name for name in tensors if name.endswith(".block_sparse_moe.gate.weight")]
        for gate in gates:
            block = gate.removesuffix("gate.weight")
            merged = block.replace(".block_sparse_moe.", ".mlp.")
            tensors[f"{merged}gate.weight"] = tensors.pop(gate)
            experts = list(self._experts(tensors, block))
            tensors[f"{merged}experts.gate_up_proj"] = torch.stack([up for up, _ in experts])
            tensors[f"{merged}experts.down_proj"] = torch.stack([down for _, down in experts])
        return tensors

    def _experts(
        self, tensors: dict[str, torch.Tensor], block: str
    ) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Take one expert after the other out of a block: gate and up joined, and down."""
        number = 0
        while number == 0 or f"{block}experts.{number}.w1.weight" in tensors:
            try:
                gate, down, up = (
                    tensors.pop(f"{block}experts.{number}.{part}.weight")
                    for part in ("w1", "w2", "w3")
                )
                yield torch.cat([gate, up]), down
            except (KeyError, RuntimeError, IndexError) as error:
                raise InputError(
                    "an expert of this mixture is not whole",
                    where=str(self.folder),
                    found=plain(f"{block}experts.{number}: {error}"),
                ) from error
            number += 1


def own_name(name: str, prefix: str) -> str | None:
    """Return a tensor's name in a `NativeNetwork`; None for heads and stored buffers.

    Parameters
    ----------
    prefix
        See `Architecture`; a model that was saved without a head has none in its names.
    """
    bare = name.removeprefix(prefix)
    if bare.startswith(_HEADS) or bare.endswith(_BUFFERS):
        return None
    for old, new in _OLD_ENDINGS.items():
        if bare.endswith(old):
            bare = bare.removesuffix(old) + new
    return f"model.{bare}"


def _architecture(checkpoint: Checkpoint) -> tuple[str, Architecture]:
    config = checkpoint.config()
    model_type = config.get("model_type")
    if not isinstance(model_type, str) or model_type not in ARCHITECTURES:
        raise InputError(
            "this architecture is not known"
            + (" without the code that comes with it" if "auto_map" in config else ""),
            where=f"{checkpoint.folder / CONFIG}, model_type",
            expected=f"one of {', '.join(ARCHITECTURES)}",
            found=plain(str(model_type), limit=80),
            fix="write an extractor and name it with --extractor, see extractors/README.md",
        )
    if config.get("quantization_config") is not None:
        raise InputError(
            "quantised weights are not read",
            where=f"{checkpoint.folder / CONFIG}, quantization_config",
            fix="take the weights in float32, bfloat16 or float16",
        )
    return model_type, ARCHITECTURES[model_type]


def _settings(checkpoint: Checkpoint) -> dict[str, Any]:
    config = checkpoint.config()
    rows, pad = config.get("vocab_size"), config.get("pad_token_id")
    if isinstance(rows, int) and isinstance(pad, int) and not 0 <= pad < rows:
        raise InputError(
            "the padding token lies outside the vocabulary",
            where=f"{checkpoint.folder / CONFIG}, pad_token_id",
            expected=f"0 to {rows - 1:,}, as vocab_size is {rows:,}",
            found=str(pad)[:80],
            fix="correct the field that is wrong, if you know which one it is",
        )
    settings = {}
    if "num_local_experts" in config:
        # Every expert runs on its own tokens, so that a row does not feel its neighbours.
        settings["experts_implementation"] = "eager"
    if config["model_type"] in _WITHOUT_FUSED_ATTENTION:
        settings["attn_implementation"] = "eager"
    if config["model_type"] == "distilbert":
        # A slowly computed table, to start training from; the weights bring what it became.
        settings["sinusoidal_pos_embds"] = False
    return settings


class TemplateTokenizer(FileTokenizer):
    """A ``tokenizer.json`` with the special tokens of its own template.

    Parameters
    ----------
    path
        The file.
    pad
        Name of the token that rows are padded with.
    rows
        How many tokens the model has vectors for.

    Raises
    ------
    InputError
        If the template does more than put tokens around a sequence, or the vocabulary has bases
        that the model has no vectors for.
    """

    def __init__(self, path: Path, *, pad: str, rows: int) -> None:
        super().__init__(path, pad=pad, policy=AS_THE_FILE_SAYS, rows=rows)
        self.prefix, self.suffix = self._around("ACGT")
        for number in (*self.prefix, *self.suffix):
            self._check_row(number)
        self._check_rows()

    def _around(self, probe: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        bare, whole = (
            self._run([probe], add_special_tokens=special)[0].ids for special in (False, True)
        )
        for start in range(len(whole) - len(bare) + 1):
            if bare and whole[start : start + len(bare)] == bare:
                return tuple(whole[:start]), tuple(whole[start + len(bare) :])
        raise InputError(
            "this tokenizer cannot be used for DNA",
            where=str(self._path),
            expected="tokens for ACGT, and a template that leaves them as they are",
            found=f"{len(bare)} tokens; {len(whole)} with special ones",
        )

    def _check_rows(self) -> None:
        vocabulary = self._backend.get_vocab(with_added_tokens=True)
        beyond = [
            token
            for token, number in vocabulary.items()
            if not self._has_row(number) and set(token) <= set("ACGTN")
        ]
        # A file may list the empty token and others that no sequence comes to.
        if named := sorted(filter(None, beyond)):
            raise InputError(
                "the tokenizer has tokens that the model has no vectors for",
                where=str(self._path),
                expected=f"ids below {self._rows}, as vocab_size says in {CONFIG}",
                found=plain(", ".join(f"{token}: {vocabulary[token]}" for token in named[:5])),
                fix="take the tokenizer that was published with the weights",
            )


def _tokenizer(folder: Path, config: Any, architecture: Architecture) -> TemplateTokenizer:
    path = folder / _TOKENIZER
    if not path.is_file():
        raise NotFoundError(
            "there is no fast tokenizer in this folder",
            where=str(path),
            fix="save the model's tokenizer with Transformers, as PreTrainedTokenizerFast",
        )
    said = _tokenizer_config(folder)
    names = [said.get(name) for name in _PADDING_NAMES]
    # A token is its text, or a mapping with the text in it.
    texts = [name.get("content") if isinstance(name, dict) else name for name in names]
    pad = next((text for text in texts if isinstance(text, str)), None)
    if pad is None:
        raise InputError(
            "no token is named that rows could be padded with",
            where=str(folder / _TOKENIZER_CONFIG),
            expected=f"one of {', '.join(_PADDING_NAMES)}",
        )
    tokenizer = TemplateTokenizer(path, pad=pad, rows=config.vocab_size)
    # Some encoders count positions by the padding's id.
    if not architecture.causal and config.pad_token_id not in (None, tokenizer.pad):
        raise InputError(
            "the model and its tokenizer pad with different tokens",
            where=str(folder),
            expected=f"{config.pad_token_id}, the pad_token_id in {CONFIG}",
            found=f"{tokenizer.pad}, which is {plain(pad)} in {_TOKENIZER}",
        )
    return tokenizer


def _tokenizer_config(folder: Path) -> dict[str, Any]:
    path = folder / _TOKENIZER_CONFIG
    said = read_json(followed(path)) if path.is_file() else {}
    if not isinstance(said, dict):
        raise InputError("this is not a tokenizer's configuration", where=str(path))
    return said


def _limit(folder: Path, config: Any, tokenizer: TemplateTokenizer) -> int:
    """Return how many tokens both the model and its tokenizer allow."""
    limits = [config.max_position_embeddings]
    if (
        config.model_type in _POSITIONS_BEHIND_PADDING
        and getattr(config, "position_embedding_type", "absolute") == "absolute"
    ):
        limits[0] -= tokenizer.pad + 1
    said = _tokenizer_config(folder).get("model_max_length")
    if isinstance(said, int | float) and said <= _LARGEST_LIMIT:
        limits.append(int(said))
    limit = min(limits)
    specials = len(tokenizer.prefix) + len(tokenizer.suffix)
    if limit <= specials:
        raise InputError(
            "there is no room for a sequence within this model's limit",
            where=str(folder),
            expected=f"more than {specials} tokens, which are special ones",
            found=f"{limit}: max_position_embeddings, or the tokenizer's model_max_length",
        )
    return limit

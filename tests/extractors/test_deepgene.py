"""DeepGene: the unusual prefix, rotary positions that no file holds, and strict weights."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
import torch
from support.command_line import FromTheCommandLine
from support.native_checkpoint import shaken, write_checkpoint
from support.published_bert import write_base_tokenizer
from torch.nn import functional
from transformers import RoFormerConfig, RoFormerForMaskedLM

from geneb.errors import InputError
from geneb.extractors.base import LAST
from geneb.extractors.deepgene import DeepGeneExtractor, RotaryPositions, roformer_network
from geneb.extractors.options import ModelOptions
from geneb.extractors.tokenizers import FileTokenizer
from geneb.testing.extractors import ExtractorContract, bases

LIMIT = 40
PUBLISHED = {
    "model_type": "roformer",
    "vocab_size": 4096,
    "hidden_size": 768,
    "embedding_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "max_position_embeddings": 5120,
    "type_vocab_size": 2,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
    "pad_token_id": 3,
    "rotary_value": False,
    "use_bias": True,
    "norm_type": "layer_norm",
}
SMALL = {
    "vocab_size": 13,
    "hidden_size": 32,
    "embedding_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": LIMIT,
}


def reference() -> RoFormerForMaskedLM:
    return shaken(RoFormerForMaskedLM(RoFormerConfig(**{**PUBLISHED, **SMALL})))


def published_tensors() -> dict[str, torch.Tensor]:
    """All of a masked language model's but its positions, as in the published file."""
    return {
        name: one for name, one in reference().state_dict().items() if "embed_positions" not in name
    }


def write(path: Path, tensors: dict[str, torch.Tensor], **config) -> Path:
    write_checkpoint(path, {**PUBLISHED, **SMALL, **config}, tensors, torch_file=True)
    write_base_tokenizer(path, at_white_space=True)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return write(tmp_path_factory.mktemp("deepgene"), published_tensors())


def load(path: Path, **told) -> DeepGeneExtractor:
    return DeepGeneExtractor(path, ModelOptions(**told), limit=LIMIT)


class TestDeepGeneContract(FromTheCommandLine, ExtractorContract):
    """Rows of all lengths meet in one batch."""

    family = DeepGeneExtractor
    parameters = MappingProxyType({"limit": LIMIT})
    layers = (LAST, "0", "1")
    sequences = tuple(bases(length, seed) for seed, length in enumerate((50, 12, 12, 30, 20, 25)))

    @pytest.fixture(autouse=True)
    def _folder(self, folder):
        self.folder = folder

    def make(self):
        return load(self.folder)

    def variants(self):
        return (load(self.folder, pooling="cls"), load(self.folder, layer="1"))


def test_the_published_folder_may_lie_below(folder, tmp_path) -> None:
    """The tokenizer comes from elsewhere and lies beside it; nothing else is another."""
    below = tmp_path / "pretrain_params_epoch_20"
    shutil.copytree(folder, below)
    (below / "tokenizer.json").rename(tmp_path / "tokenizer.json")

    assert load(tmp_path).describe() == load(folder).describe()


def test_both_special_tokens_are_in_front(folder) -> None:
    """[CLS] and [SEP], then the sequence, and nothing behind it."""
    item, empty = load(folder).prepare(["ACGTAC", ""])

    assert item.payload.tolist() == [1, 2, 11, 9]
    assert empty.payload.tolist() == [1, 2]


def test_the_limit_is_for_all_tokens(folder) -> None:
    """Two places of it are the special tokens'."""
    below, at, over = load(folder).prepare(["A" * 37, "A" * 38, "A" * 39])

    assert [one.length for one in (below, at, over)] == [39, 40, 40]
    assert [one.truncated for one in (below, at, over)] == [False, False, True]


def test_the_real_tokenizer(real_data) -> None:
    """DeepGene's file is DNABERT-2's: byte pairs of upper case, everything else unknown."""
    path = real_data / "tokenizers" / "dnabert-2" / "tokenizer.json"
    if not path.is_file():
        pytest.skip(f"there is no {path}")
    tokenizer = FileTokenizer(path, pad="[PAD]", prefix=["[CLS]", "[SEP]"], policy={}, rows=4096)

    assert (tokenizer.prefix, tokenizer.suffix, tokenizer.pad) == ((1, 2), (), 3)
    assert all((ids == 0).all() for ids in tokenizer.encode(["acgt", "NNNN"]))
    (ids,) = tokenizer.encode([bases(300, seed=1)])
    assert 4 < ids.min() <= ids.max() < 4096


def test_vectors_are_those_of_transformers(folder) -> None:
    """The mean of RoFormer's last hidden state, both special tokens in it."""
    extractor, sequence = load(folder), bases(40, seed=6)
    (item,) = extractor.prepare([sequence])

    with torch.inference_mode():
        hidden = reference().roformer(torch.from_numpy(item.payload)[None]).last_hidden_state[0]

    np.testing.assert_allclose(
        extractor.embed([sequence])[0], hidden.mean(dim=0), rtol=1e-5, atol=1e-5
    )


def test_the_network_is_what_the_authors_describe(folder) -> None:
    """Computed from the description: a BERT whose queries and keys are turned by position.

    Neighbouring numbers of a head, not its halves, form the pairs that are turned, and values
    are not turned.
    """
    extractor = load(folder)
    (item,) = extractor.prepare([bases(40, seed=7)])

    expected = _described(published_tensors(), torch.from_numpy(item.payload))

    ids = torch.from_numpy(item.payload)[None]
    with torch.inference_mode():
        found = extractor.network(ids, torch.ones_like(ids, dtype=torch.bool), [2])[2][0]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_positions_are_transformers_own() -> None:
    """Sines in front, cosines behind, to the last bit but for the order of rounding."""
    model = reference().roformer.encoder.embed_positions
    table = RotaryPositions(LIMIT, 8, torch.float32).table

    torch.testing.assert_close(table, model.weight.data, rtol=0, atol=1e-7)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"norm_type": "rms"}, "another model"),
        ({"use_bias": False}, "another model"),
        ({"rotary_value": True}, "another model"),
        ({"model_type": "bert"}, "another model"),
        ({"max_position_embeddings": LIMIT - 1}, "too few positions"),
    ],
)
def test_other_configurations_are_refused(tmp_path, config, words) -> None:
    """What the authors' class can be told and Transformers' cannot."""
    write(tmp_path, published_tensors(), **config)

    with pytest.raises(InputError, match=words):
        load(tmp_path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"roformer.embeddings.LayerNorm.bias": None}, r"missing: model\.embeddings\.LayerNorm"),
        ({"graph.weight": torch.zeros(3)}, r"not expected: model\.graph\.weight"),
        ({"roformer.embeddings.LayerNorm.bias": torch.zeros(3)}, "of another shape"),
    ],
)
def test_other_tensors_are_refused_by_name(tmp_path, change, words) -> None:
    """One that is missing, in excess or misshapen."""
    found = {**published_tensors(), **change}
    write(tmp_path, {name: one for name, one in found.items() if one is not None})

    with pytest.raises(InputError, match=words):
        load(tmp_path)


def test_full_size() -> None:
    """89,127,168 numbers with the head and the computed positions (tcztzy/evo.cpp)."""
    with torch.device("meta"):
        network = roformer_network(RoFormerConfig(**PUBLISHED), torch.float32)
    head = 768 * 768 + 3 * 768 + 4096

    assert sum(one.numel() for one in network.parameters()) + head + 5120 * 64 == 89_127_168
    assert "model.encoder.layer.11.attention.self.query.weight" in network.state_dict()


def _described(tensors: dict[str, torch.Tensor], ids: torch.Tensor) -> torch.Tensor:
    weights = {name.removeprefix("roformer."): one for name, one in tensors.items()}

    def linear(name: str, hidden: torch.Tensor) -> torch.Tensor:
        return hidden @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def norm(name: str, hidden: torch.Tensor) -> torch.Tensor:
        scale, shift = weights[f"{name}.weight"], weights[f"{name}.bias"]
        return functional.layer_norm(hidden, (32,), scale, shift, eps=1e-12)

    def turn(hidden: torch.Tensor) -> torch.Tensor:
        position = torch.arange(len(ids)).unsqueeze(1)
        angle = position / 10_000 ** (torch.arange(0, 8, 2) / 8)
        pairs = torch.view_as_complex(hidden.unflatten(-1, (4, 4, 2)).contiguous())
        turned = pairs * torch.polar(torch.ones_like(angle), angle).unsqueeze(1)
        return torch.view_as_real(turned).flatten(2)

    hidden = weights["embeddings.word_embeddings.weight"][ids]
    hidden = norm(
        "embeddings.LayerNorm", hidden + weights["embeddings.token_type_embeddings.weight"][0]
    )
    for layer in range(2):
        name = f"encoder.layer.{layer}"
        query, key = (
            turn(linear(f"{name}.attention.self.{part}", hidden)) for part in ("query", "key")
        )
        value = linear(f"{name}.attention.self.value", hidden).unflatten(-1, (4, 8))
        scores = torch.einsum("qhd,khd->hqk", query, key) / 8**0.5
        found = torch.einsum("hqk,khd->qhd", scores.softmax(dim=-1), value).flatten(1)
        hidden = norm(
            f"{name}.attention.output.LayerNorm",
            hidden + linear(f"{name}.attention.output.dense", found),
        )
        inner = functional.gelu(linear(f"{name}.intermediate.dense", hidden))
        hidden = norm(f"{name}.output.LayerNorm", hidden + linear(f"{name}.output.dense", inner))
    return hidden

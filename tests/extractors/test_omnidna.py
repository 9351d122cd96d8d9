"""Omni-DNA: fused matrices taken apart in the right order, and both kinds of norms."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from support.command_line import FromTheCommandLine
from support.native_checkpoint import write_checkpoint
from support.published_bert import write_base_tokenizer
from torch.nn import functional

from geneb.errors import InputError
from geneb.extractors.base import LAST
from geneb.extractors.checkpoints import Checkpoint
from geneb.extractors.configs import Config
from geneb.extractors.omnidna import OmniDnaExtractor, network_builder, published_names
from geneb.extractors.options import ModelOptions
from geneb.testing.extractors import ExtractorContract, bases

LIMIT = 40
WIDTH, HEADS, LAYERS = 32, 4, 2
KINDS = ("default", "rms")
ROWS = 13  # five special tokens, four bases, four pairs


def config(kind: str, **changes) -> dict:
    """The fields of a published ``config.json`` that matter."""
    return {
        "model_type": "olmo-gfm",
        "activation_type": "swiglu",
        "alibi": False,
        "attention_layer_norm": False,
        "attention_layer_norm_with_affine": False,
        "bias_for_layer_norm": False,
        "block_group_size": 1,
        "block_type": "sequential",
        "clip_qkv": None,
        "d_model": WIDTH,
        "embedding_size": ROWS,
        "include_bias": False,
        "layer_norm_type": kind,
        "layer_norm_with_affine": kind == "rms",
        "max_sequence_length": 250,
        "mlp_hidden_size": None,
        "mlp_ratio": 8,
        "multi_query_attention": False,
        "n_heads": HEADS,
        "n_kv_heads": None,
        "n_layers": LAYERS,
        "rope": True,
        "rope_full_precision": True,
        "scale_logits": False,
        "vocab_size": ROWS,
        "weight_tying": True,
        **changes,
    }


def published_tensors(kind: str) -> dict[str, torch.Tensor]:
    """Random numbers by the published names; 1B's norms have none."""
    generator = torch.Generator().manual_seed(20250210)

    def normal(*shape: int) -> torch.Tensor:
        return 0.2 * torch.randn(shape, generator=generator)

    found = {"model.transformer.wte.weight": 5 * normal(ROWS, WIDTH)}
    for layer in range(LAYERS):
        prefix = f"model.transformer.blocks.{layer}."
        found |= {
            f"{prefix}att_proj.weight": normal(3 * WIDTH, WIDTH),
            f"{prefix}attn_out.weight": normal(WIDTH, WIDTH),
            f"{prefix}ff_proj.weight": normal(8 * WIDTH, WIDTH),
            f"{prefix}ff_out.weight": normal(WIDTH, 4 * WIDTH),
        }
        if kind == "rms":
            found[f"{prefix}attn_norm.weight"] = 1 + normal(WIDTH)
            found[f"{prefix}ff_norm.weight"] = 1 + normal(WIDTH)
    if kind == "rms":
        found["model.transformer.ln_f.weight"] = 1 + normal(WIDTH)
    return found


def write(path: Path, kind: str, tensors: dict[str, torch.Tensor], **changes) -> Path:
    write_checkpoint(path, config(kind, **changes), tensors)
    write_base_tokenizer(path, at_white_space=True)
    return path


@pytest.fixture(scope="module", params=KINDS)
def kind(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def folder(kind, tmp_path_factory) -> Path:
    return write(tmp_path_factory.mktemp(kind), kind, published_tensors(kind))


def load(path: Path, **told) -> OmniDnaExtractor:
    return OmniDnaExtractor(path, ModelOptions(**told), limit=LIMIT)


class TestOmniDnaContract(FromTheCommandLine, ExtractorContract):
    """Rows of all lengths meet in one batch."""

    family = OmniDnaExtractor
    parameters = MappingProxyType({"limit": LIMIT})
    layers = (LAST, "0", "1")
    sequences = tuple(bases(length, seed) for seed, length in enumerate((50, 12, 12, 30, 20, 25)))

    @pytest.fixture(autouse=True)
    def _folder(self, folder):
        self.folder = folder

    def make(self):
        return load(self.folder)

    def variants(self):
        return (load(self.folder, pooling="last"), load(self.folder, layer="1"))


def test_the_network_is_what_the_authors_describe(folder, kind) -> None:
    """Computed from the description of OLMo, with the fused matrices as they are stored."""
    extractor = load(folder)
    (item,) = extractor.prepare([bases(40, seed=5)])
    ids = torch.from_numpy(item.payload)

    expected = _described(load_file(folder / "model.safetensors"), ids, kind)

    with torch.inference_mode():
        found = extractor.network(ids[None], torch.ones_like(ids[None], dtype=torch.bool), [LAYERS])
    # Sums of some hundred products in another order.
    torch.testing.assert_close(found[LAYERS][0], expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        extractor.embed([bases(40, seed=5)])[0], expected.mean(dim=0), rtol=1e-4, atol=1e-5
    )


def test_tokens(folder) -> None:
    """[CLS] in front, [SEP] behind, N unknown; the limit has both in it."""
    extractor = load(folder)
    item, at, over = extractor.prepare(["ACGTN", "A" * 38, "A" * 39])

    assert item.payload.tolist() == [1, 11, 0, 2]
    assert [(one.length, one.truncated) for one in (at, over)] == [(40, False), (40, True)]
    assert over.payload[-1] == 2


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "model.transformer.blocks.7.att_proj.weight",
            [f"model.layers.7.self_attn.{part}_proj.weight" for part in "qkv"],
        ),
        (
            "model.transformer.blocks.0.ff_proj.weight",
            ["model.layers.0.mlp.up_proj.weight", "model.layers.0.mlp.gate_proj.weight"],
        ),
        ("model.transformer.blocks.3.ff_out.weight", ["model.layers.3.mlp.down_proj.weight"]),
        ("model.transformer.wte.weight", ["model.embed_tokens.weight"]),
        ("model.transformer.blocks.3.att_proj.bias", ["model.transformer.blocks.3.att_proj.bias"]),
        ("att_proj.weight", ["att_proj.weight"]),
    ],
)
def test_names(name, expected) -> None:
    """Fused matrices have several, strange ones stay."""
    assert expected == published_names(name)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model.transformer.wte.weight": None}, r"missing: model\.embed_tokens\.weight"),
        (
            {"model.transformer.wpe.weight": torch.zeros(3)},
            r"not expected: model\.transformer\.wpe",
        ),
        (
            {"model.transformer.blocks.1.att_proj.weight": torch.zeros(3 * 31, 32)},
            r"of another shape: model\.layers\.1\.self_attn\.k_proj",
        ),
        (
            {"model.transformer.blocks.1.att_proj.weight": torch.zeros(95, 32)},
            r"cannot be split",
        ),
        ({"model.transformer.blocks.0.ff_proj.weight": torch.zeros(())}, r"cannot be split"),
        ({"model.layers.0.mlp.up_proj.weight": torch.zeros(128, 32)}, "stand for the same"),
    ],
)
def test_other_tensors_are_refused_by_name(tmp_path, change, words) -> None:
    """One that is missing, in excess, misshapen, or there in two layouts."""
    found = {**published_tensors("default"), **change}
    write(tmp_path, "default", {name: one for name, one in found.items() if one is not None})

    with pytest.raises(InputError, match=words):
        load(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"alibi": True},
        {"block_type": "parallel"},
        {"clip_qkv": 8.0},
        {"include_bias": True},
        {"layer_norm_type": "low_precision"},
        {"layer_norm_with_affine": True},
        {"mlp_hidden_size": 99},
        {"n_kv_heads": 2},
        {"weight_tying": False},
        {"n_layers": 0},
        {"d_model": "wide"},
    ],
)
def test_other_configurations_are_refused(tmp_path, change) -> None:
    """What the training code can be told and Transformers' classes do not do."""
    write(tmp_path, "default", published_tensors("default"), **change)

    with pytest.raises(InputError, match="another model"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("kind", "width", "file_bytes"),
    [("default", 2048, 4_328_529_472), ("rms", 1024, 1_090_665_568)],
    ids=["1B", "300M"],
)
def test_full_size(tmp_path, kind, width, file_bytes) -> None:
    """As many numbers as the published files hold in float32, but for a header of some kB.

    Their sizes are in tcztzy/evo.cpp.
    """
    said = config(kind, d_model=width, n_heads=16, n_layers=16, embedding_size=4096)
    write_checkpoint(tmp_path, said, {"nothing": torch.zeros(1)})
    checkpoint = Checkpoint(tmp_path)
    with torch.device("meta"):
        network = network_builder(checkpoint, Config(checkpoint))()

    numbers = sum(one.numel() for one in network.parameters())
    assert 0 < file_bytes - 4 * numbers < 20_000
    assert (4 * width, width) == network.state_dict()["model.layers.15.mlp.up_proj.weight"].shape


def _described(tensors: dict[str, torch.Tensor], ids: torch.Tensor, kind: str) -> torch.Tensor:
    def norm(name: str, hidden: torch.Tensor) -> torch.Tensor:
        if kind == "default":
            return functional.layer_norm(hidden, (WIDTH,), eps=1e-5)
        scale = tensors[f"model.transformer.{name}.weight"]
        return scale * hidden * torch.rsqrt(hidden.square().mean(dim=-1, keepdim=True) + 1e-5)

    def turn(hidden: torch.Tensor) -> torch.Tensor:
        half = WIDTH // HEADS // 2
        angle = torch.arange(len(ids)).unsqueeze(1) / 10_000 ** (torch.arange(half) / half)
        angle = angle.unsqueeze(1)
        first, second = hidden[..., :half], hidden[..., half:]
        return torch.cat(
            [
                first * angle.cos() - second * angle.sin(),
                second * angle.cos() + first * angle.sin(),
            ],
            dim=-1,
        )

    hidden = tensors["model.transformer.wte.weight"][ids]
    future = torch.ones(len(ids), len(ids), dtype=torch.bool).triu(1)
    for layer in range(LAYERS):
        weight = {
            part: tensors[f"model.transformer.blocks.{layer}.{part}.weight"]
            for part in ("att_proj", "attn_out", "ff_proj", "ff_out")
        }
        fused = norm(f"blocks.{layer}.attn_norm", hidden) @ weight["att_proj"].T
        query, key, value = (one.unflatten(-1, (HEADS, -1)) for one in fused.split(WIDTH, dim=-1))
        scores = torch.einsum("qhd,khd->hqk", turn(query), turn(key)) / (WIDTH // HEADS) ** 0.5
        seen = scores.masked_fill(future, -torch.inf).softmax(dim=-1)
        hidden = (
            hidden + torch.einsum("hqk,khd->qhd", seen, value).flatten(1) @ weight["attn_out"].T
        )
        up, gate = (norm(f"blocks.{layer}.ff_norm", hidden) @ weight["ff_proj"].T).chunk(2, dim=-1)
        hidden = hidden + (functional.silu(gate) * up) @ weight["ff_out"].T
    return norm("ln_f", hidden)

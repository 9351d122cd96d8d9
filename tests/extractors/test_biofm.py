"""BioFM: its letters, the token before the end, and what its published batches do to it."""

from __future__ import annotations

import json
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
import torch
from support.command_line import FromTheCommandLine
from support.native_checkpoint import shaken, write_checkpoint
from transformers import MistralConfig, MistralForCausalLM

from geneb.embedding.batches import plan_file_order
from geneb.errors import InputError
from geneb.extractors.base import LAST, Batch
from geneb.extractors.biofm import BioFmExtractor, tokenizer
from geneb.extractors.mistral import mistral_network
from geneb.extractors.options import ModelOptions
from geneb.testing.extractors import ExtractorContract, bases

LIMIT = 60
PUBLISHED = {
    "architectures": ["MistralForCausalLM"],
    "model_type": "mistral",
    "vocab_size": 512,
    "hidden_size": 640,
    "num_hidden_layers": 23,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 2560,
    "max_position_embeddings": 32_770,
    "sliding_window": None,
    "rms_norm_eps": 1e-5,
    "rope_theta": 100_000.0,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "use_cache": False,
}
SMALL = {
    "vocab_size": 16,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "intermediate_size": 48,
}


def reference() -> MistralForCausalLM:
    return shaken(MistralForCausalLM(MistralConfig(**{**PUBLISHED, **SMALL})))


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return write(tmp_path_factory.mktemp("biofm"), reference().state_dict())


def write(path: Path, tensors: dict[str, torch.Tensor], **config) -> Path:
    write_checkpoint(path, {**PUBLISHED, **SMALL, **config}, tensors)
    return path


def load(path: Path, **told) -> BioFmExtractor:
    return BioFmExtractor(path, ModelOptions(**told), limit=LIMIT)


class TestBioFmContract(FromTheCommandLine, ExtractorContract):
    """One vector a sequence, whatever it is padded to."""

    family = BioFmExtractor
    parameters = MappingProxyType({"limit": LIMIT})
    layers = (LAST, "0", "1")
    sequences = tuple(bases(length, seed) for seed, length in enumerate((50, 12, 12, 101, 33, 58)))

    @pytest.fixture(autouse=True)
    def _folder(self, folder):
        self.folder = folder

    def make(self):
        return load(self.folder)

    def variants(self):
        return (
            load(self.folder, pooling="mean"),
            load(self.folder, layer="1"),
            load(self.folder, preset="reference"),
        )

    def limit(self, extractor):
        return LIMIT - 2


def test_letters() -> None:
    """The ids of an independent implementation; lower case, U and what else are unknown."""
    known, others, empty = tokenizer().encode(["ACGTNACGTNACGTA", "aUD-R漢", ""])

    assert known.tolist() == [2, 5, 4, 3, 1, 2, 5, 4, 3, 1, 2, 5, 4, 3, 2]
    assert others.tolist() == [8, 8, 0, 8, 8, 8]
    assert empty.tolist() == []
    assert (tokenizer().prefix, tokenizer().suffix, tokenizer().pad) == ((6,), (7,), 9)


def test_the_last_nucleotide_is_the_embedding(folder) -> None:
    """Of a cut sequence too it is the token before [SEP], as Transformers' own model has it."""
    extractor, model = load(folder), reference()
    sequences = [bases(30, seed=1), bases(58, seed=2), bases(90, seed=3)]

    vectors = extractor.embed(sequences)

    for sequence, vector in zip(sequences, vectors, strict=True):
        (ids,) = tokenizer().encode([sequence[: LIMIT - 2]])
        with torch.inference_mode():
            hidden = model.model(torch.tensor([[6, *ids, 7]])).last_hidden_state[0, -2]
        np.testing.assert_allclose(vector, hidden, rtol=1e-5, atol=1e-5)


def test_nothing_behind_the_last_nucleotide_is_seen(folder) -> None:
    """The model looks back only, so that [SEP] changes nothing."""
    extractor = load(folder)
    (item,) = extractor.prepare(["ACGTTGCA"])
    assert item.payload[-1] == 7

    other = np.append(item.payload[:-1], 4)
    changed = extractor.forward(Batch([type(item)(other, item.length)], item.length), (LAST,))

    assert extractor.embed(["ACGTTGCA"])[0].tobytes() == changed[LAST][0].tobytes()


def test_the_published_batches(folder) -> None:
    """Padding on the left, no mask, and the place counted from the left all the same."""
    extractor = load(folder, preset="reference", dtype="float32")
    model = reference()
    sequences = [bases(length, seed=length) for length in (20, 33, 33, 7, 0)]
    (plan,) = plan_file_order(
        [len(sequence) + 2 for sequence in sequences], np.arange(5), extractor.batch_size
    )

    found = extractor.forward(Batch(extractor.prepare(sequences), plan.padded_length), (LAST,))[
        LAST
    ]

    rows = [[6, *ids, 7] for ids in tokenizer().encode(sequences)]
    with torch.inference_mode():
        hidden = model.model(
            torch.tensor([[9] * (35 - len(row)) + row for row in rows])
        ).last_hidden_state
    for number, row in enumerate(rows):
        np.testing.assert_allclose(
            found[number], hidden[number, len(row) - 2], rtol=1e-5, atol=1e-5
        )
    alone = load(folder).embed(sequences)
    np.testing.assert_allclose(found[1:3], alone[1:3], rtol=1e-5, atol=1e-5)
    assert not np.allclose(found[0], alone[0], rtol=0.1)


def test_the_published_preset_says_what_it_is(folder) -> None:
    """Batches of 8 in file order, bfloat16, and no other pooling."""
    plain, published = load(folder), load(folder, preset="reference")

    assert (plain.batching, plain.describe().compute_dtype) == ("masked", "float32")
    assert (published.batching, published.batch_size) == ("file-order", 8)
    assert published.describe().compute_dtype == "bfloat16"
    assert published.describe().parameters["preset"] == "reference"
    with pytest.raises(InputError, match="those of one token"):
        load(folder, preset="reference", pooling="mean")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model.norm.weight": None}, r"missing: model\.norm\.weight"),
        ({"model.norm.bias": torch.zeros(32)}, r"not expected: model\.norm\.bias"),
        ({"model.norm.weight": torch.zeros(31)}, "of another shape"),
    ],
)
def test_other_tensors_are_refused_by_name(tmp_path, change, words) -> None:
    """One that is missing, in excess or misshapen."""
    found = {**reference().state_dict(), **change}
    write(tmp_path, {name: one for name, one in found.items() if one is not None})

    with pytest.raises(InputError, match=words):
        load(tmp_path)


def test_weights_in_half_precision_are_run_in_float32(folder, tmp_path) -> None:
    """They are published in bfloat16, which the preset ``reference`` alone computes in."""
    halves = {name: one.bfloat16() for name, one in reference().state_dict().items()}
    write(tmp_path, halves)

    for preset, dtype in (("masked", torch.float32), ("reference", torch.bfloat16)):
        network = load(tmp_path, preset=preset).network
        assert {one.dtype for one in network.parameters()} == {dtype}


def test_another_configuration_is_refused(folder, tmp_path) -> None:
    """Llama's, for one."""
    write(tmp_path, reference().state_dict(), model_type="llama")

    with pytest.raises(InputError, match="another model"):
        load(tmp_path)
    assert json.loads((folder / "config.json").read_text("utf-8"))["model_type"] == "mistral"


def test_full_size() -> None:
    """264,467,840 numbers with the head: 528,935,680 bytes of bfloat16.

    The published file has 528,959,288 bytes (tcztzy/evo.cpp), the rest being its header.
    """
    with torch.device("meta"):
        network = mistral_network(MistralConfig(**PUBLISHED))
    numbers = sum(one.numel() for one in network.parameters()) + 512 * 640

    assert numbers == 264_467_840
    assert 0 < 528_959_288 - 2 * numbers < 50_000
    assert network.state_dict()["model.layers.22.self_attn.q_proj.weight"].shape == (4096, 640)

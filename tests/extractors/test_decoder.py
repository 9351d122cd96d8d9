"""DNA-GPT: its two tokenizers, its network, and the names in its checkpoint."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support import dnagpt_checkpoint as checkpoint
from support.command_line import FromTheCommandLine
from transformers import GPT2Config, GPT2Model

from geneb.errors import InputError, NotFoundError
from geneb.extractors.decoder import DecoderNetwork, DnaGptExtractor, DnaGptTokenizer
from geneb.extractors.options import ModelOptions
from geneb.extractors.registry import models
from geneb.testing.extractors import ExtractorContract, bases

SIZES = {"context": 24, "layers": 2, "width": checkpoint.WIDTH, "heads": 4}
STATIC, DYNAMIC = DnaGptTokenizer(dynamic=False), DnaGptTokenizer(dynamic=True)
FILE = "tiny.pth"


def small(*, dynamic: bool = False) -> dict[str, torch.Tensor]:
    size = (DYNAMIC if dynamic else STATIC).vocabulary_size
    return checkpoint.tensors(size, context=SIZES["context"], layers=SIZES["layers"])


def load(path: Path, *, dynamic: bool = False, **told) -> DnaGptExtractor:
    return DnaGptExtractor(path, ModelOptions(**told), file=FILE, dynamic=dynamic, **SIZES)


@pytest.fixture(scope="module")
def static(tmp_path_factory) -> Path:
    return checkpoint.write(tmp_path_factory.mktemp("static") / FILE, small())


@pytest.fixture(scope="module")
def dynamic(tmp_path_factory) -> Path:
    return checkpoint.write(tmp_path_factory.mktemp("dynamic") / FILE, small(dynamic=True))


class DnaGptContract(FromTheCommandLine, ExtractorContract):
    __test__ = False
    family = DnaGptExtractor
    layers = ("last", "0", "1")
    model_id: ClassVar[str]

    @classmethod
    def registered(cls):
        return (cls.model_id,)


class TestStaticContract(DnaGptContract):
    """Words of six letters; the limit of 24 tokens is 138 letters."""

    __test__ = True
    model_id = "dna_gpt0.1b_h"
    parameters = MappingProxyType({"file": FILE, "dynamic": False, **SIZES})

    @pytest.fixture(autouse=True)
    def _path(self, static):
        self.path, self.folder = static, static

    def make(self):
        return load(self.path)

    def variants(self):
        return (load(self.path, layer="1"), load(self.path, pooling="last"))

    def limit(self, extractor):
        return 23 * 6


class TestDynamicContract(DnaGptContract):
    """Words of up to six letters."""

    __test__ = True
    model_id = "dna_gpt3b_m"
    parameters = MappingProxyType({"file": FILE, "dynamic": True, **SIZES})

    @pytest.fixture(autouse=True)
    def _path(self, dynamic):
        self.path, self.folder = dynamic, dynamic

    def make(self):
        return load(self.path, dynamic=True)

    def limit(self, extractor):
        return 23 * 6


# Tokens.


@pytest.mark.parametrize(
    ("tokenizer", "sequence", "expected"),
    [
        # The first is the reference of an independent implementation. A word of NAGCT, as 01234:
        # ACGTNA is 132401 in base 5, 5351, behind 34 reserved tokens.
        (STATIC, "ACGTNAC", [5385, 0]),
        (STATIC, "AXA", [0]),
        (STATIC, "AAAAAX", [0]),
        (STATIC, "NNNNNN", [34]),
        (STATIC, "TTTTTTNNNNNA", [15_658, 35]),
        (STATIC, "acgtac", [0]),
        (STATIC, "ACGUAC", [0]),
        (STATIC, "", []),
        # 5351 behind 34 and the 3,905 shorter words; C alone is the fourth word of all.
        (DYNAMIC, "ACGTNAC", [9290, 37]),
        (DYNAMIC, "AXA", [0]),
        (DYNAMIC, "N", [34]),
        (DYNAMIC, "NN", [39]),
        (DYNAMIC, "TTTTT", [34 + 3905 - 1]),
        (DYNAMIC, "TTTTTT", [19_563]),
        (DYNAMIC, "ACGTßACGTAC漢", [0, 0]),
    ],
)
def test_words(tokenizer, sequence, expected) -> None:
    """Hand-worked words, rests and unknown letters."""
    (ids,) = tokenizer.encode([sequence])

    assert expected == ids.tolist()


def test_the_vocabularies_have_the_published_sizes() -> None:
    """15,659 and 19,564 tokens, as the checkpoints' embeddings have rows."""
    assert (STATIC.vocabulary_size, DYNAMIC.vocabulary_size) == (15_659, 19_564)


@given(st.text(alphabet="NAGCT", max_size=20))
def test_a_plain_dictionary_gives_the_same_words(sequence) -> None:
    """Words counted in the order of itertools, cut from the left."""
    listed = {
        "".join(word): number
        for number, word in enumerate(
            (word for length in range(1, 4) for word in product("NAGCT", repeat=length)), start=34
        )
    }
    pieces = [sequence[start : start + 6] for start in range(0, len(sequence), 6)]
    (ids,) = DYNAMIC.encode([sequence])

    assert len(pieces) == len(ids)
    for piece, number in zip(pieces, ids, strict=True):
        assert listed.get(piece, number) == number
        assert (len(piece) == 6) == (number >= 34 + 3905)


def test_the_limit_is_in_words(static) -> None:
    """A started word counts as one; ``<R>`` takes one place of the limit."""
    at, over = load(static).prepare(["A" * 138, "A" * 139])

    assert (at.length, at.truncated) == (24, False)
    assert (over.length, over.truncated) == (24, True)
    assert at.payload[0] == 21


# The network.


def test_the_network_is_gpt_2_s_without_biases(static) -> None:
    """Transformers' GPT-2 with its biases at zero gives the same hidden states."""
    found = small()
    config = GPT2Config(
        vocab_size=STATIC.vocabulary_size, n_positions=24, n_embd=32, n_layer=2, n_head=4,
        activation_function="gelu_new", layer_norm_epsilon=1e-5, attn_implementation="sdpa",
    )  # fmt: skip
    reference = GPT2Model(config).eval()
    state = {name: torch.zeros_like(value) for name, value in reference.state_dict().items()}
    for name, value in found.items():
        if name.startswith("transformer."):
            # GPT-2 keeps the matrices of its blocks the other way round.
            turned = ".attn." in name or ".mlp." in name
            state[name.removeprefix("transformer.")] = value.T if turned else value
    reference.load_state_dict(state)
    extractor = load(static)
    (item,) = extractor.prepare([bases(100, seed=8)])

    with torch.inference_mode():
        expected = reference(
            torch.from_numpy(item.payload)[None], output_hidden_states=True
        ).hidden_states
        ids = torch.from_numpy(item.payload)[None]
        states = extractor.network(ids, torch.ones_like(ids, dtype=torch.bool), [0, 1, 2])

    for number, hidden in states.items():
        # Another order of sums in float32.
        torch.testing.assert_close(hidden, expected[number], rtol=1e-5, atol=1e-5)


def test_the_mean_is_over_the_prefix_too(static) -> None:
    """An empty sequence is ``<R>`` alone, which enters every mean."""
    extractor = load(static)
    (item,) = extractor.prepare(["ACGTAC"])
    ids = torch.from_numpy(item.payload)[None]

    with torch.inference_mode():
        hidden = extractor.network(ids, ids > 0, [2])[2][0]

    np.testing.assert_allclose(
        extractor.embed(["ACGTAC"])[0], hidden.mean(dim=0), rtol=1e-6, atol=1e-6
    )
    np.testing.assert_allclose(extractor.embed([""])[0], hidden[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("model_id", "tensors", "numbers"),
    [("dna_gpt0.1b_h", 84, 113_925_120), ("dna_gpt3b_m", 372, 3_113_922_560)],
)
def test_full_size(model_id, tensors, numbers) -> None:
    """As many tensors and numbers as in the published files, of which the counts are known.

    455,700,480 bytes of float32 and 6,227,845,120 of bfloat16 (tcztzy/evo.cpp).
    """
    said = models()[model_id].parameters
    vocabulary = DnaGptTokenizer(dynamic=said["dynamic"]).vocabulary_size
    width = said["width"]
    with torch.device("meta"):
        network = DecoderNetwork(
            vocabulary=vocabulary,
            **{name: said[name] for name in ("context", "layers", "width", "heads")},
        )
    heads = (width + width + width**2) + (width**2 + 2 * width) + (width**2 + width)

    state = network.state_dict()
    assert tensors == len(state) + 9
    assert numbers == sum(one.numel() for one in state.values()) + heads + vocabulary * width
    assert "h.11.attn.c_attn.weight" in state


# The checkpoint.


def test_weights_in_half_precision_are_run_in_float32(tmp_path) -> None:
    """Those of the larger model are published in bfloat16."""
    path = checkpoint.write(
        tmp_path / FILE, {name: one.bfloat16() for name, one in small().items()}
    )

    extractor = load(path)

    assert {one.dtype for one in extractor.network.parameters()} == {torch.float32}
    assert extractor.describe().compute_dtype == "float32"


def test_a_file_and_its_folder_are_the_same(static) -> None:
    """Either may be named."""
    assert load(static).describe() == load(static.parent).describe()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"transformer.h.1.ln_2.weight": None}, "missing: h.1.ln_2.weight"),
        ({"transformer.h.1.ln_2.bias": torch.zeros(32)}, "not expected: h.1.ln_2.bias"),
        ({"transformer.wpe.weight": torch.zeros(25, 32)}, r"of another shape: wpe.weight \(25, 32"),
        ({"lm_head.weight": torch.zeros(3)}, "none of DNA-GPT's"),
    ],
)
def test_other_tensors_are_refused_by_name(tmp_path, change, words) -> None:
    """One that is missing, in excess, misshapen, or of another kind of model."""
    found = {name: one for name, one in {**small(), **change}.items() if one is not None}
    path = checkpoint.write(tmp_path / FILE, found)

    with pytest.raises(InputError, match=words):
        load(path)


def test_a_folder_without_the_file_names_it(tmp_path) -> None:
    """The published file's name is known."""
    with pytest.raises(NotFoundError, match=FILE):
        load(tmp_path)

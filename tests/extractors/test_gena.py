"""GENA-LM: the reference's figures with and without a last norm, runs of N, published layouts."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
import pytest
from support.encoder_checkpoints import gena
from support.encoder_family import (
    EncoderFamily,
    assert_as_reference,
    assert_published_size,
    golden,
    seeded_folder,
)
from support.native_checkpoint import bpe_tokenizer
from support.published_bert import BASE, SPECIALS, TINY, write_base_tokenizer
from tokenizers import Regex, normalizers, pre_tokenizers

from geneb.errors import InputError
from geneb.extractors.gena import GenaExtractor, own_name, read_design
from geneb.extractors.options import ModelOptions

LIMIT = 60
# The large model's configuration says nothing of the last norm, the others' that there is none.
LARGE = {**TINY, "pre_layer_norm": True, "layer_norm_eps": 1e-5}
BASE_SIZE = {**BASE, "vocab_size": 32_000, "pre_layer_norm": True, "last_layer_norm": False}
LARGE_SIZE = {
    **BASE,
    "vocab_size": 32_000,
    "hidden_size": 1024,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "intermediate_size": 4096,
    "layer_norm_eps": 1e-5,
    "pre_layer_norm": True,
}


def pretraining(config):
    return gena(config, pretraining=True)


def write_t2t_tokenizer(folder):
    """Write one as those of the T2T models: all letters, a dash, and runs of N that become it."""
    tokenizer = bpe_tokenizer((*SPECIALS, "-"), unknown="[UNK]", letters="ACGTN")
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Strip(), normalizers.Replace(Regex("N{10,}"), "-")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split("-", "isolated")
    tokenizer.save(str(folder / "tokenizer.json"))


class TestGenaBase(EncoderFamily):
    family = GenaExtractor
    parameters = MappingProxyType({"limit": LIMIT})
    config = {**TINY, "pre_layer_norm": True, "last_layer_norm": False}  # noqa: RUF012
    published_shapes = staticmethod(pretraining)
    model_ids = ("gena-lm-bert-base",)
    torch_file = True

    @classmethod
    def write_tokenizer(cls, folder):
        write_base_tokenizer(folder, at_white_space=False)

    def test_without_a_last_norm_the_last_state_is_a_sum(self):
        """It is not normalised, so its rows are of many sizes."""
        assert self.make().network.final_norm is None

    def test_the_policy_says_that_n_is_unknown(self):
        """As the file has it; the T2T models' file has it otherwise."""
        assert self.make().describe().parameters["letters"]["N"] == "unknown"

    def test_a_bert_with_its_norms_behind_is_refused(self, tmp_path):
        """The layout that everybody else uses would be another model."""
        seeded_folder(tmp_path, {"config": {**self.config, "pre_layer_norm": False}}, gena, 1)
        self.write_tokenizer(tmp_path)

        with pytest.raises(InputError, match="pre_layer_norm: this is the configuration"):
            GenaExtractor(tmp_path, ModelOptions(), limit=LIMIT)

    def test_fewer_positions_than_the_limit_are_refused(self):
        """A sequence of full length would stop a run halfway."""
        with pytest.raises(InputError, match="too few positions"):
            GenaExtractor(self.folder, ModelOptions(), limit=513)


class TestGenaLargeT2T(EncoderFamily):
    family = GenaExtractor
    parameters = MappingProxyType({"limit": LIMIT})
    config = LARGE
    published_shapes = staticmethod(gena)
    model_ids = ("gena-lm-bert-large-t2t", "gena-lm-bert-base-t2t-multi")

    @classmethod
    def write_tokenizer(cls, folder):
        write_t2t_tokenizer(folder)

    def test_a_last_norm_that_is_switched_off_is_refused_in_the_weights(self, tmp_path):
        """The switch and the tensors must agree."""
        figures = {"config": {**LARGE, "last_layer_norm": False}}
        seeded_folder(tmp_path, figures, lambda _: gena(LARGE), 1)
        self.write_tokenizer(tmp_path)

        with pytest.raises(InputError, match=r"not expected: final_norm"):
            GenaExtractor(tmp_path, ModelOptions(), limit=LIMIT)

    def test_a_run_of_n_is_one_gap(self):
        """From ten on, whatever its length; nine are nine letters. It is part of the policy."""
        model = self.make()
        nine, ten, hundred = model.prepare([f"ACGT{'N' * run}ACGT" for run in (9, 10, 100)])

        np.testing.assert_array_equal(ten.payload, hundred.payload)
        assert (ten.length, nine.length) == (5, 13)
        assert "gap" in model.describe().parameters["letters"]["N"]


@pytest.mark.parametrize("size", ["base", "large"])
def test_hidden_states_are_the_references(root, tmp_path, size):
    """Without and with the norm behind the last block, each with its epsilon."""
    figures = golden(root, "gena")
    seeded_folder(tmp_path, figures[size], gena, figures["seed"])
    write_base_tokenizer(tmp_path, at_white_space=False)

    model = GenaExtractor(tmp_path, ModelOptions(), limit=32)

    assert (model.network.final_norm is not None) == (size == "large")
    assert_as_reference(model, figures[size])


def test_epsilon_comes_from_the_configuration(tmp_path):
    """The large model's is ten million times that of the others."""
    found = {}
    for eps in (1e-12, 1e-5):
        folder = tmp_path / str(eps)
        seeded_folder(folder, {"config": {**LARGE, "layer_norm_eps": eps}}, gena, 1)
        write_base_tokenizer(folder, at_white_space=False)
        network = GenaExtractor(folder, ModelOptions(), limit=LIMIT).network
        found[eps] = {part.eps for name, part in network.named_modules() if name.endswith("norm")}

    assert found == {1e-12: {1e-12}, 1e-5: {1e-5}}


@pytest.mark.parametrize(
    ("file", "sequence", "expected"),
    [
        # Official ids, as recorded by tcztzy/evo.cpp.
        ("gena-lm-base", "ACGTNACGTNACGTN", [114, 9, 0, 114, 9, 0, 114, 9, 0]),
        (
            "gena-lm-base",
            "AAAACCCCGGGGTTTTACGTNACGTNNNNACGTTGCAACGTACGT",
            [2873, 211, 12176, 9, 0, 114, 9, 0, 0, 0, 0, 15426, 311, 418, 9],
        ),
        ("gena-lm-t2t", "ACGTNACGTNACGTN", [120, 5428, 120, 5428, 120, 5428]),
        ("gena-lm-t2t", "ACGTNNNNNNNNNN", [120, 15, 5]),
        # Lower case and U are unknown to both.
        ("gena-lm-base", "acU", [0, 0, 0]),
        ("gena-lm-t2t", "acU", [0, 0, 0]),
    ],
)
def test_the_published_tokenizers(real_data, tmp_path, file, sequence, expected):
    """The files themselves, within an extractor whose table has their 32,000 rows."""
    config = {**TINY, "vocab_size": 32_000, "pre_layer_norm": True, "num_hidden_layers": 1}
    seeded_folder(tmp_path, {"config": config}, gena, 1)
    source = real_data / "tokenizers" / file / "tokenizer.json"
    (tmp_path / "tokenizer.json").write_bytes(source.read_bytes())

    model = GenaExtractor(tmp_path, ModelOptions(), limit=LIMIT)

    (item,) = model.prepare([sequence])
    assert [1, *expected, 2] == item.payload.tolist()
    assert model.tokenizer.pad == 3
    knows_n = model.describe().parameters["letters"]["N"] != "unknown"
    assert knows_n == (file == "gena-lm-t2t")


@pytest.mark.parametrize(
    ("config", "shapes", "file_bytes"),
    # Sizes of the published files, from tcztzy/evo.cpp, configs/evidence.
    [
        (BASE_SIZE, pretraining(BASE_SIZE), 543_494_664),
        (BASE_SIZE, gena(BASE_SIZE), 541_124_033),
        (LARGE_SIZE, gena(LARGE_SIZE), 1_478_017_192),
    ],
    ids=["base", "base-t2t-multi", "large-t2t"],
)
def test_full_size(tmp_path, config, shapes, file_bytes):
    """The published names and shapes, counted against the size of the published file."""
    found = assert_published_size(
        tmp_path, config, shapes, file_bytes, read_design=read_design, own_name=own_name
    )

    assert found == pytest.approx({12: 110e6, 24: 336e6}[config["num_hidden_layers"]], rel=0.02)

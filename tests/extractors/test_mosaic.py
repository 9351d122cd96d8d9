"""DNABERT-2, DNABERT-S and Genomics-FM: reference's figures, tokens, pooling, published layouts."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
import pytest
import torch
from support.encoder_checkpoints import mosaic
from support.encoder_family import (
    EncoderFamily,
    assert_as_reference,
    assert_published_size,
    golden,
    hidden_states,
    seeded_folder,
)
from support.published_bert import BASE, TINY, write_base_tokenizer

from geneb.errors import InputError
from geneb.extractors.base import LAST, Batch
from geneb.extractors.mosaic import GenomicsFMExtractor, MosaicExtractor, own_name, read_design
from geneb.extractors.options import ModelOptions
from geneb.extractors.registry import load
from geneb.extractors.tokenizers import FileTokenizer
from geneb.testing.extractors import bases

LIMIT = 60
DNABERT_2 = {**TINY, "alibi_starting_size": 512}


def genomics_fm(config):
    return mosaic(config, positions=True)


def dnabert_s(config):
    return mosaic(config, masked_lm=False)


class TestMosaic(EncoderFamily):
    family = MosaicExtractor
    parameters = MappingProxyType({"limit": LIMIT, "pooling": "mean"})
    config = DNABERT_2
    published_shapes = staticmethod(mosaic)
    model_ids = ("dnabert2-no-flashattention",)
    torch_file = True

    @classmethod
    def registered(cls):
        """Also the model of the same family that is pooled otherwise."""
        return (*cls.model_ids, "DNABERT-S")

    @classmethod
    def write_tokenizer(cls, folder):
        write_base_tokenizer(folder, at_white_space=True)

    def variants(self):
        return [self.make(layer="0"), self.make(pooling="cls"), self.make(long_input="windows")]


class TestGenomicsFM(EncoderFamily):
    family = GenomicsFMExtractor
    parameters = MappingProxyType({"limit": LIMIT, "pooling": "mean"})
    config = {**TINY, "vocab_size": 20}  # noqa: RUF012  nobody changes it
    published_shapes = staticmethod(genomics_fm)
    model_ids = ("genomics-fm",)

    @classmethod
    def write_tokenizer(cls, folder):
        write_base_tokenizer(folder, at_white_space=True)

    def test_only_bases_reach_the_tokenizer(self):
        """Stripped, upper-cased, and an N for whatever is no base: one unknown token each."""
        model = self.make()

        cleaned, plain = model.prepare([" acgtRY-u\n", "ACGTNNNN"])

        np.testing.assert_array_equal(cleaned.payload, plain.payload)
        assert plain.payload.tolist()[-5:] == [0, 0, 0, 0, 2]

    def test_fewer_positions_than_the_limit_are_refused(self, tmp_path):
        """A sequence of full length would stop a run halfway."""
        config = {**self.config, "max_position_embeddings": LIMIT - 1}
        seeded_folder(tmp_path, {"config": config}, genomics_fm, 1)
        self.write_tokenizer(tmp_path)

        with pytest.raises(InputError, match="too few positions"):
            GenomicsFMExtractor(tmp_path, ModelOptions(), limit=LIMIT, pooling="cls")

    def test_the_class_is_not_that_of_dnabert_2(self):
        """A table of positions is not left out unnoticed."""
        with pytest.raises(InputError, match=r"not expected: embeddings.positions"):
            MosaicExtractor(self.folder, ModelOptions(), limit=LIMIT, pooling="cls")


@pytest.fixture
def dnabert_s_folder(tmp_path):
    seeded_folder(tmp_path, {"config": DNABERT_2}, dnabert_s, 3)
    write_base_tokenizer(tmp_path, at_white_space=True)
    return tmp_path


def test_dnabert_s_is_its_first_token(dnabert_s_folder):
    """Under names without a prefix, beside a pooler; its authors' mean can be asked for."""
    extractor = load("DNABERT-S", weights=str(dnabert_s_folder)).extractor
    (item,) = extractor.prepare([bases(40, 1)])
    state = hidden_states(extractor.network, item.payload.tolist())[-1].numpy()

    (found,) = extractor.forward(Batch([item], item.length + 3), (LAST,))[LAST]
    authors = load("DNABERT-S", weights=str(dnabert_s_folder), pooling="mean").extractor
    (mean,) = authors.forward(Batch([item], item.length + 3), (LAST,))[LAST]

    np.testing.assert_allclose(found, state[0], rtol=0, atol=1e-5)
    np.testing.assert_allclose(mean, state.mean(axis=0), rtol=0, atol=1e-5)
    assert np.abs(found - mean).max() > 0.1


def test_dnabert_s_does_not_depend_on_torchs_seed(dnabert_s_folder):
    """Layers that nothing was loaded into are what its published score came from."""
    vectors = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        vectors.append(
            load("DNABERT-S", weights=str(dnabert_s_folder)).extractor.embed([bases(40, 1)])
        )

    np.testing.assert_array_equal(*vectors)


@pytest.mark.parametrize(
    ("name", "family", "shapes"),
    [("mosaic", MosaicExtractor, mosaic), ("genomics_fm", GenomicsFMExtractor, genomics_fm)],
)
def test_hidden_states_are_the_references(root, tmp_path, name, family, shapes):
    """Also, for DNABERT-2, beyond the 512 tokens that the reference's table starts with."""
    figures = golden(root, name)
    seeded_folder(tmp_path, figures, shapes, figures["seed"])
    write_base_tokenizer(tmp_path, at_white_space=True)

    assert_as_reference(family(tmp_path, ModelOptions(), limit=32, pooling="mean"), figures)


def test_the_references_figures_go_beyond_its_table(root):
    """The case that a table of fixed size would fail is among them."""
    figures = golden(root, "mosaic")

    longest = max(len(case["ids"]) for case in figures["cases"])

    assert longest > figures["config"]["alibi_starting_size"]


@pytest.mark.parametrize(
    ("sequence", "expected"),
    [
        # Official ids of zhihan1996/DNABERT-2-117M, as recorded by tcztzy/evo.cpp.
        ("ACGTNACGTNACGTN", [5, 6, 1049, 0, 5, 6, 1049, 0, 5, 6, 1049, 0]),
        (
            "AAAACCCCGGGGTTTTACGTNACGTNNNNACGTTGCAACGTACGT",
            [39, 102, 92, 69, 6, 1049, 0, 5, 6, 1049, 0, 0, 0, 0, 5, 134, 66, 194, 6, 1049],
        ),
        # Unknown one by one, and white space left out.
        ("acgt", [0, 0, 0, 0]),
        ("A U\tA", [5, 0, 5]),
        ("", []),
    ],
)
def test_the_published_tokenizer(real_data, sequence, expected):
    """The file itself: case-sensitive, without N and U, split at white space."""
    tokenizer = FileTokenizer(
        real_data / "tokenizers" / "dnabert-2" / "tokenizer.json",
        pad="[PAD]",
        prefix=["[CLS]"],
        suffix=["[SEP]"],
        policy={},
        rows=4096,
    )

    (found,) = tokenizer.encode([sequence])

    assert expected == found.tolist()
    assert (tokenizer.prefix, tokenizer.suffix, tokenizer.pad) == ((1,), (2,), 3)
    assert tokenizer.vocabulary_size == 4096


@pytest.mark.parametrize(
    ("model", "config", "shapes", "file_bytes", "shared", "parameters"),
    # Sizes of the published files, from tcztzy/evo.cpp, configs/evidence. The head's matrix is the
    # embedding table, which a torch file holds once.
    [
        (
            "DNABERT-2",
            BASE,
            mosaic(BASE),
            468_354_983,
            ("cls.predictions.decoder.weight",),
            116_477_952,
        ),
        ("DNABERT-S", BASE, dnabert_s(BASE), 468_320_053, (), 116_477_952),
        (
            "Genomics-FM",
            {**BASE, "vocab_size": 7268},
            genomics_fm({**BASE, "vocab_size": 7268}),
            479_674_693,
            ("cls.predictions.decoder.weight",),
            119_307_264,
        ),
    ],
)
def test_full_size(tmp_path, model, config, shapes, file_bytes, shared, parameters):
    """The published names and shapes, counted against the size of the published file."""
    positions = "absolute" if model == "Genomics-FM" else "alibi"

    found = assert_published_size(
        tmp_path,
        config,
        shapes,
        file_bytes,
        read_design=lambda read: read_design(read, positions),
        own_name=own_name,
        shared=shared,
    )

    assert found == parameters

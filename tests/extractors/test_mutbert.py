"""MutBERT: the reference's figures, a vocabulary that must not be read, no limit, the layout."""

from __future__ import annotations

import pytest
from support.encoder_checkpoints import mutbert
from support.encoder_family import (
    EncoderFamily,
    assert_as_reference,
    assert_published_size,
    golden,
    seeded_folder,
)
from support.native_checkpoint import bpe_tokenizer
from support.published_bert import BASE, SPECIALS, TINY
from tokenizers import Tokenizer, models, pre_tokenizers

from geneb.errors import InputError
from geneb.extractors.mutbert import MutBertExtractor, own_name, read_design
from geneb.extractors.options import ModelOptions
from geneb.testing.extractors import bases

ROTARY = {"vocab_size": 9, "rope_theta": 10000.0, "rope_scaling": None, "pooler_type": "mean"}
PUBLISHED_VOCABULARY = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "A", "T", "C", "G")


def write_tokenizer(folder):
    """Write both files as they were published: they number the tokens differently."""
    vocabulary = {piece: number for number, piece in enumerate((*SPECIALS, *"ACGT"))}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token="[UNK]"))
    tokenizer.add_special_tokens(list(SPECIALS))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "vocab.txt").write_text("\n".join(PUBLISHED_VOCABULARY), encoding="utf-8")


class TestMutBert(EncoderFamily):
    family = MutBertExtractor
    config = {**TINY, **ROTARY, "max_position_embeddings": 64}  # noqa: RUF012  nobody changes it
    published_shapes = staticmethod(mutbert)
    model_ids = ("MutBERT",)
    torch_file = True

    @classmethod
    def write_tokenizer(cls, folder):
        write_tokenizer(folder)

    def test_ids_are_those_of_the_tokenizer_and_not_of_the_vocabulary(self):
        """A 5, C 6, G 7, T 8; N, U and lower case unknown, each by itself."""
        (item,) = self.make().prepare(["ACGTNUac T"])

        assert item.payload.tolist() == [1, 5, 6, 7, 8, 0, 0, 0, 0, 8, 2]
        assert self.make().tokenizer.pad == 3

    @pytest.mark.parametrize("letters", [61, 62, 63, 500])
    def test_nothing_is_cut(self, letters):
        """Not at the configuration's number of positions either, which turning does not need."""
        model = self.make()

        (item,) = model.prepare([bases(letters, seed=1)])

        assert model.max_length is None
        assert (item.length, item.truncated) == (letters + 2, False)

    def test_scaled_positions_are_refused(self, tmp_path):
        """They would load, and be turned by other angles."""
        scaling = {"type": "linear", "factor": 2.0}
        seeded_folder(tmp_path, {"config": {**self.config, "rope_scaling": scaling}}, mutbert, 1)
        write_tokenizer(tmp_path)

        with pytest.raises(InputError, match="rope_scaling: this is the configuration"):
            MutBertExtractor(tmp_path, ModelOptions())

    def test_a_tokenizer_with_more_tokens_is_refused(self, tmp_path):
        """An id beyond the table would stop a run halfway."""
        seeded_folder(tmp_path, {"config": self.config}, mutbert, 1)
        bpe_tokenizer(SPECIALS, unknown="[UNK]").save(str(tmp_path / "tokenizer.json"))

        with pytest.raises(InputError, match="no vector for"):
            MutBertExtractor(tmp_path, ModelOptions()).prepare(["ACGTN"])


def test_hidden_states_are_the_references(root, tmp_path):
    """Whose input is a mixture of tokens a place; one case is longer than its table of angles."""
    figures = golden(root, "mutbert")
    seeded_folder(tmp_path, figures, mutbert, figures["seed"])
    write_tokenizer(tmp_path)

    assert_as_reference(MutBertExtractor(tmp_path, ModelOptions()), figures)
    longest = max(len(case["ids"]) for case in figures["cases"])
    assert longest > figures["config"]["max_position_embeddings"]


def test_the_published_tokenizer(real_data, tmp_path):
    """The file itself gives what the one written here gives."""
    sequences = ["ACGTN", "acgt", "AC GT-U", bases(50, seed=4)]
    found = []
    for source in (None, real_data / "tokenizers" / "mutbert" / "tokenizer.json"):
        folder = tmp_path / ("written" if source is None else "published")
        seeded_folder(folder, {"config": TestMutBert.config}, mutbert, 1)
        write_tokenizer(folder)
        if source is not None:
            (folder / "tokenizer.json").write_bytes(source.read_bytes())
        items = MutBertExtractor(folder, ModelOptions()).prepare(sequences)
        found.append([item.payload.tolist() for item in items])

    assert found[0] == found[1]


def test_full_size(tmp_path):
    """The published names and shapes, counted against the size of the published file."""
    config = {**BASE, **ROTARY}

    # The size is from tcztzy/evo.cpp, configs/evidence.
    found = assert_published_size(
        tmp_path,
        config,
        mutbert(config),
        342_710_382,
        read_design=read_design,
        own_name=own_name,
    )

    assert found == pytest.approx(86e6, rel=0.02)

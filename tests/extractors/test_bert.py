"""GROVER and SpliceBERT: published layout, tokens, and windows."""

from __future__ import annotations

import itertools
import shutil
from typing import ClassVar

import numpy as np
import pytest
import torch
from support.family import NativeFamily, assert_full_size
from support.native_checkpoint import bpe_tokenizer, seeded
from tokenizers import pre_tokenizers
from transformers import BertConfig, BertForMaskedLM

from geneb.embedding.engine import Engine
from geneb.errors import InputError
from geneb.extractors.bert import GroverExtractor, SpliceBertExtractor, bert_network, own_name
from geneb.extractors.options import ModelOptions
from geneb.extractors.registry import models
from geneb.extractors.tokenizers import FileTokenizer
from geneb.testing.extractors import bases

LIMIT = 64
WINDOW, STEP = 64, 32
SPLICEBERT_VOCABULARY = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"NACGT")

TINY = {
    "architectures": ["BertForMaskedLM"],
    "model_type": "bert",
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "pad_token_id": 0,
    "position_embedding_type": "absolute",
    "torch_dtype": "float32",
}


class Bert(NativeFamily):
    """A published BERT file: a pooler and a head that are not used, and stored positions."""

    __test__ = False
    torch_file = True

    @classmethod
    def reference(cls):
        return seeded(BertForMaskedLM, BertConfig(**cls.config))

    @classmethod
    def published(cls, tensors):
        return tensors | {
            "bert.pooler.dense.weight": torch.zeros(32, 32),
            "bert.pooler.dense.bias": torch.zeros(32),
            "bert.embeddings.position_ids": torch.arange(cls.config["max_position_embeddings"]),
        }


class TestGrover(Bert):
    __test__ = True
    family = GroverExtractor
    parameters: ClassVar = {"limit": LIMIT}
    # Five special tokens, four letters and four merges; the empty piece has no row.
    config: ClassVar = TINY | {"vocab_size": 13, "max_position_embeddings": LIMIT}

    @classmethod
    def write_tokenizer(cls, folder):
        specials = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
        tokenizer = bpe_tokenizer(specials, unknown="[UNK]", letters="ACGT")
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
        tokenizer.save(str(folder / "tokenizer.json"))

    def test_special_tokens_stand_around_and_are_pooled(self):
        """[CLS] and [SEP] are part of the mean, as in the published extractor."""
        model = self.make()

        (item,) = model.prepare(["ACGTA"])

        assert item.payload.tolist() == [2, 11, 5, 3]
        np.testing.assert_allclose(
            model.embed(["ACGTA"])[0], self.hidden_states(item)[-1].mean(0), rtol=1e-5, atol=1e-5
        )

    @pytest.mark.parametrize("pieces", [LIMIT - 3, LIMIT - 2, LIMIT - 1])
    def test_the_limit_counts_special_tokens(self, pieces):
        """Each ACGT is one token; what is over is cut at the right, and [SEP] stays."""
        (item,) = self.make().prepare(["ACGT" * pieces])

        assert item.length == min(pieces + 2, LIMIT)
        assert item.truncated == (pieces > LIMIT - 2)
        assert [item.payload[0], item.payload[-2], item.payload[-1]] == [2, 11, 3]

    def test_n_and_lower_case_are_unknown(self):
        (item,) = self.make().prepare(["ANNc"])

        assert item.payload.tolist() == [2, 5, 1, 1, 1, 3]

    def test_positions_that_end_before_the_limit_are_refused(self):
        with pytest.raises(InputError, match="too few positions"):
            GroverExtractor(self.folder, ModelOptions(), limit=LIMIT + 1)


class TestSpliceBert(Bert):
    __test__ = True
    family = SpliceBertExtractor
    parameters: ClassVar = {"window": WINDOW, "window_step": STEP}
    config: ClassVar = TINY | {"vocab_size": 10, "max_position_embeddings": WINDOW + 2}

    @classmethod
    def write_tokenizer(cls, folder):
        (folder / "vocab.txt").write_text("\n".join(SPLICEBERT_VOCABULARY) + "\n", encoding="utf-8")

    def test_every_character_is_a_letter_of_the_model(self):
        """Both cases, U as T, IUPAC as N; what the published extractor refuses is N too."""
        (item,) = self.make().prepare(["ACGTUNacgtunRYé-漢"])

        letters = item.payload[1:-1].tolist()
        assert letters == [6, 7, 8, 9, 9, 5] * 2 + [5] * 5
        assert [item.payload[0], item.payload[-1]] == [2, 3]

    @pytest.mark.parametrize(
        ("length", "starts"),
        [
            (WINDOW - 1, None),
            (WINDOW, None),
            (WINDOW + 1, [0, 1]),
            (WINDOW + STEP, [0, STEP]),
            (2 * WINDOW + 5, [0, STEP, 2 * STEP, WINDOW + 5]),
        ],
    )
    def test_windows_begin_every_step_and_the_last_ends_the_sequence(self, length, starts):
        """In nucleotides; each has [CLS] and [SEP] of its own, and all count the same."""
        model = self.make()
        sequence = bases(length, seed=length)

        (item,) = model.prepare([sequence])

        if starts is None:
            assert not item.windows
            assert item.length == length + 2
            return
        pieces = [sequence[start : start + WINDOW] for start in starts]
        expected = [alone.payload for alone in model.prepare(pieces)]
        for window, payload in zip(item.windows, expected, strict=True):
            np.testing.assert_array_equal(window.payload, payload)
            assert window.weight == 1.0
        assert not item.truncated

    def test_windows_are_averaged_alike_in_float64(self):
        """Through the engine, beside other rows."""
        model = self.make()
        sequence = bases(2 * WINDOW + 5, seed=1)
        pieces = [sequence[start : start + WINDOW] for start in (0, STEP, 2 * STEP, WINDOW + 5)]
        expected = model.embed(pieces).astype(np.float64).mean(axis=0)
        engine = Engine(model, 4096)

        found = engine.embed(engine.prepare(["ACGT", sequence, bases(20, seed=2)]))

        # The pieces meet other rows in their batches: float32 rounding.
        np.testing.assert_allclose(found[1], expected, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(model.embed([sequence])[0], expected, rtol=1e-5, atol=1e-5)

    def test_it_can_be_told_to_cut(self):
        model = self.make(long_input="truncate")

        (item,) = model.prepare([bases(WINDOW + 1, seed=1)])

        assert item.truncated
        assert item.length == WINDOW + 2

    def test_the_description_tells_of_windows(self):
        parameters = self.make().describe().parameters

        assert parameters["windows"] == {"step": STEP, "weight": "equal"}
        assert parameters["letters"]["other characters"].startswith("N;")

    def test_a_vocabulary_without_a_letter_is_refused(self, tmp_path):
        shutil.copytree(self.folder, tmp_path, dirs_exist_ok=True)
        (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\nA\nC\nG\n")

        with pytest.raises(InputError, match="lacks a token"):
            SpliceBertExtractor(tmp_path, ModelOptions(), **self.parameters)


def test_the_real_tokenizer_of_grover(real_data):
    """Special tokens, single letters, N unknown; and nothing beyond the embeddings' 609 rows."""
    path = real_data / "tokenizers" / "grover" / "tokenizer.json"
    if not path.is_file():
        pytest.skip("the tokenizer is not among the real data")
    from tokenizers import Tokenizer as Backend

    tokenizer = FileTokenizer(
        path, pad="[PAD]", prefix=["[CLS]"], suffix=["[SEP]"], policy={}, rows=609
    )
    assert (tokenizer.pad, tokenizer.prefix, tokenizer.suffix) == (0, (2,), (3,))
    assert tokenizer.vocabulary_size == 610
    sequences = ["", "ACGTNACGTNACGTN", "acgt", *(bases(800, seed) for seed in range(5))]
    sequences += ["".join(word) for word in itertools.product("ACGTN", repeat=3)]

    found = tokenizer.encode(sequences)

    whole = Backend.from_file(str(path))
    for sequence, ids in zip(sequences, found, strict=True):
        assert [2, *ids, 3] == whole.encode(sequence).ids


def published_shapes(width: int, layers: int, vocabulary: int, positions: int) -> dict:
    """Return names and shapes of a published file, head included."""
    square, wide, inner = (width, width), (width,), 4 * width
    norm = {"weight": wide, "bias": wide}
    shapes = {
        "bert.embeddings.word_embeddings.weight": (vocabulary, width),
        "bert.embeddings.position_embeddings.weight": (positions, width),
        "bert.embeddings.token_type_embeddings.weight": (2, width),
        "cls.predictions.bias": (vocabulary,),
        "cls.predictions.transform.dense.weight": square,
        "cls.predictions.transform.dense.bias": wide,
    }
    norms = ["bert.embeddings.LayerNorm", "cls.predictions.transform.LayerNorm"]
    for layer in range(layers):
        block = f"bert.encoder.layer.{layer}"
        for name in ("self.query", "self.key", "self.value", "output.dense"):
            shapes |= {f"{block}.attention.{name}.weight": square}
            shapes |= {f"{block}.attention.{name}.bias": wide}
        shapes |= {
            f"{block}.intermediate.dense.weight": (inner, width),
            f"{block}.intermediate.dense.bias": (inner,),
            f"{block}.output.dense.weight": (width, inner),
            f"{block}.output.dense.bias": wide,
        }
        norms += [f"{block}.attention.output.LayerNorm", f"{block}.output.LayerNorm"]
    return shapes | {f"{name}.{part}": shape for name in norms for part, shape in norm.items()}


@pytest.mark.parametrize(
    ("width", "heads", "layers", "vocabulary", "positions", "count"),
    [
        # Parameters of the published class, counted by tcztzy/evo.cpp.
        (768, 12, 12, 609, 512, 86_511_201),
        # 19.4 million, computed from the configuration by whoever benchmarked it; with the head.
        (512, 16, 6, 10, 1026, 19_710_474),
    ],
)
def test_the_full_size_fits_the_published_names(width, heads, layers, vocabulary, positions, count):
    config = BertConfig(
        **TINY
        | {
            "hidden_size": width,
            "intermediate_size": 4 * width,
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "vocab_size": vocabulary,
            "max_position_embeddings": positions,
        }
    )
    published = published_shapes(width, layers, vocabulary, positions)

    assert_full_size(lambda: bert_network(config), published, own_name, count)


def test_the_registry_names_both():
    entries = models()

    assert entries["GROVER"].parameters == {"limit": 512}
    assert entries["splicebert-1024nt"].parameters == {"window": 1024, "window_step": 512}

"""The first DNABERT, the pattern of a contributed family: layout, and overlapping k-mers."""

from __future__ import annotations

import hashlib
import itertools
from typing import ClassVar

import pytest
import torch
from support.family import NativeFamily
from support.native_checkpoint import seeded
from transformers import BertConfig, BertForMaskedLM, BertTokenizer

from geneb.errors import InputError
from geneb.extractors.dnabert import DnabertExtractor, OverlappingKmers
from geneb.extractors.registry import models
from geneb.testing.extractors import bases

LIMIT = 64
SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def vocabulary(k: int) -> list[str]:
    """Return the published vocabulary by its rule."""
    return [*SPECIALS, *("".join(word) for word in itertools.product("ATCG", repeat=k))]


class TestDnabert(NativeFamily):
    family = DnabertExtractor
    parameters: ClassVar = {"limit": LIMIT}
    torch_file = True
    config: ClassVar = {
        "model_type": "bert",
        "vocab_size": len(vocabulary(3)),
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": LIMIT,
        "type_vocab_size": 2,
    }

    @classmethod
    def reference(cls):
        return seeded(BertForMaskedLM, BertConfig(**cls.config))

    @classmethod
    def published(cls, tensors):
        return tensors | {
            "bert.pooler.dense.weight": torch.zeros(32, 32),
            "bert.pooler.dense.bias": torch.zeros(32),
        }

    @classmethod
    def write_tokenizer(cls, folder):
        (folder / "vocab.txt").write_text("\n".join(vocabulary(3)), encoding="utf-8")

    def test_there_is_a_token_at_every_position(self):
        """AAA is the first k-mer, AAT the next; both stand between [CLS] and [SEP]."""
        (item,) = self.make().prepare(["AAAT"])

        assert item.payload.tolist() == [2, 5, 6, 3]

    @pytest.mark.parametrize("sequence", [bases(40, seed=1), "ACGTNACG", "acgtacgu", "AC", ""])
    def test_tokens_are_those_of_transformers_on_words(self, sequence):
        """The published code splits a sequence into words and gives them to BERT's tokenizer."""
        reference = BertTokenizer(str(self.folder / "vocab.txt"), do_lower_case=False)
        text = sequence.upper().replace("U", "T")
        words = " ".join(text[start : start + 3] for start in range(max(0, len(text) - 2)))

        (item,) = self.make().prepare([sequence])

        assert item.payload.tolist() == reference(words)["input_ids"]

    @pytest.mark.parametrize("tokens", [LIMIT - 3, LIMIT - 2, LIMIT - 1])
    def test_the_limit_counts_special_tokens(self, tokens):
        (item,) = self.make().prepare([bases(tokens + 2, seed=tokens)])

        assert item.length == min(tokens + 2, LIMIT)
        assert item.truncated == (tokens > LIMIT - 2)


@pytest.mark.parametrize("words", [["[PAD]", "[UNK]", "[CLS]", "AAA"], [*SPECIALS, "AAA", "AAAA"]])
def test_something_else_than_a_vocabulary_of_kmers_is_refused(tmp_path, words):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(words), encoding="utf-8")

    with pytest.raises(InputError, match="not a vocabulary of k-mers"):
        OverlappingKmers(path)


def test_the_rule_gives_the_published_vocabulary():
    """The digest is that of the file for k = 6 in the authors' repository."""
    text = "\n".join(vocabulary(6)) + "\n"

    found = hashlib.sha256(text.encode()).hexdigest()

    assert found == "d8f61c247fc10f9b8c7f6baf4d31876f30076d4aaf9f31ff47b9e68badd62e61"


def test_the_registry_names_it():
    assert models()["dnabert-6"].parameters == {"limit": 512}

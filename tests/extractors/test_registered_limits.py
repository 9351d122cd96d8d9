"""How many bases the registry says that a model looks at, against its tokenizer."""

from __future__ import annotations

import pytest
from support.encoder_checkpoints import nucleotide_vocabulary

from geneb.extractors import biofm
from geneb.extractors.decoder import DnaGptTokenizer
from geneb.extractors.kmer_tokenizers import GeneratorTokenizer
from geneb.extractors.lucaone import gene_tokenizer
from geneb.extractors.nucleotide_tokenizer import read_nucleotide_tokenizer
from geneb.extractors.registry import models
from geneb.testing.extractors import bases

LETTERS_A_TOKEN = {
    "esm:EsmExtractor": 6,
    "nucleotide_v2:NucleotideV2Extractor": 6,
    "lucaone:LucaOneExtractor": 1,
    "llama:GeneratorExtractor": 6,
    "decoder:DnaGptExtractor": 6,
    "biofm:BioFmExtractor": 1,
}
COUNTED = [name for name, model in models().items() if model.family in LETTERS_A_TOKEN]


def tokenizer_of(model_id, folder):
    """Return the model's tokenizer, and how many letters are a token of a clean sequence."""
    model = models()[model_id]
    k = 3 if "3mer" in model_id else LETTERS_A_TOKEN[model.family]
    module = model.family.partition(":")[0]
    if module in ("esm", "nucleotide_v2"):
        path = folder / "vocab.txt"
        path.write_text(nucleotide_vocabulary(k), encoding="utf-8")
        return read_nucleotide_tokenizer(path, 1 << 13), k
    if module == "decoder":
        return DnaGptTokenizer(dynamic=model.parameters["dynamic"]), k
    made = {"lucaone": gene_tokenizer, "llama": GeneratorTokenizer, "biofm": biofm.tokenizer}
    return made[module](), k


@pytest.mark.parametrize("model_id", COUNTED)
def test_so_many_bases_fill_the_limit(model_id, tmp_path):
    """With the special tokens around them; one token's letters more are one token too many."""
    model = models()[model_id]
    tokenizer, k = tokenizer_of(model_id, tmp_path)
    limit = model.parameters.get("limit", model.parameters.get("context"))
    specials = len(tokenizer.prefix) + len(tokenizer.suffix)

    fitting, over = tokenizer.encode([bases(model.bases, 1), bases(model.bases + k, 1)])

    assert len(fitting) + specials == limit
    assert len(over) + specials == limit + 1


def test_every_model_with_a_number_of_bases_is_counted():
    """But for the baselines, which have no tokens."""
    said = {name for name, model in models().items() if model.bases}

    assert said - {"onehot128"} == set(COUNTED)

"""Nucleotide Transformer v1 and Agro-NT: published layout, 6-mers, token dropout, limits."""

from __future__ import annotations

import hashlib
import itertools
from typing import ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.family import NativeFamily, assert_full_size
from support.native_checkpoint import seeded, write_checkpoint
from transformers import EsmConfig, EsmForMaskedLM, EsmTokenizer

from geneb.errors import InputError
from geneb.extractors.base import LAST, Batch
from geneb.extractors.esm import EsmExtractor, esm_network, own_name
from geneb.extractors.nucleotide_tokenizer import read_nucleotide_tokenizer
from geneb.extractors.options import ModelOptions
from geneb.extractors.registry import models
from geneb.extractors.tokenizers import KmerTokenizer, read_vocabulary
from geneb.testing.extractors import bases

KMERS = ["".join(letters) for letters in itertools.product("ATCG", repeat=6)]
VOCABULARY = ["<unk>", "<pad>", "<mask>", "<cls>", *KMERS, *"ATCGN", "<eos>", "<bos>"]
LIMIT = 24

NT = {
    "architectures": ["EsmForMaskedLM"],
    "model_type": "esm",
    "vocab_size": 4105,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": LIMIT + 2,
    "position_embedding_type": "absolute",
    "emb_layer_norm_before": False,
    "layer_norm_eps": 1e-12,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "token_dropout": True,
    "mask_token_id": 2,
    "pad_token_id": 1,
    "tie_word_embeddings": False,
    "torch_dtype": "float32",
}


class TestNucleotideTransformer(NativeFamily):
    family = EsmExtractor
    parameters: ClassVar = {"limit": LIMIT}
    config = NT
    torch_file = True

    @classmethod
    def reference(cls):
        return seeded(EsmForMaskedLM, EsmConfig(**cls.config))

    @classmethod
    def published(cls, tensors):
        places = torch.arange(LIMIT + 2)[None]
        return tensors | {"esm.embeddings.position_ids": places}

    @classmethod
    def write_tokenizer(cls, folder):
        (folder / "vocab.txt").write_text("\n".join(VOCABULARY), encoding="utf-8")

    @pytest.mark.parametrize("kmers", [LIMIT - 2, LIMIT - 1, LIMIT])
    def test_the_limit_counts_the_first_token(self, kmers):
        """``<cls>`` and limit - 1 tokens go in; one more is cut at the right."""
        sequence = bases(6 * kmers, seed=1)

        (item,) = self.make().prepare([sequence])

        assert item.length == min(kmers + 1, LIMIT)
        assert item.truncated == (kmers >= LIMIT)
        expected = self.make().prepare([sequence[: 6 * (LIMIT - 1)]])[0].payload
        np.testing.assert_array_equal(item.payload, expected)

    def test_padding_to_the_limit_is_harmless(self):
        """The published extractor pads every row to the limit; its mask makes that no matter."""
        model = self.make()
        items = model.prepare([bases(40, seed=2)])

        short = model.forward(Batch(items, items[0].length), (LAST,))[LAST]
        long = model.forward(Batch(items, LIMIT), (LAST,))[LAST]

        # Sums of another length: float32 rounding of numbers about 1.
        np.testing.assert_allclose(long, short, atol=1e-5)

    def test_first_token_can_be_taken(self):
        """Pooling ``cls`` is the vector of ``<cls>``."""
        sequence = bases(50, seed=3)
        model = self.make(pooling="cls")
        (item,) = model.prepare([sequence])

        np.testing.assert_allclose(
            model.embed([sequence])[0], self.hidden_states(item)[-1][0], rtol=1e-5, atol=1e-5
        )

    def test_windows_cover_what_is_too_long(self):
        """Asked for, they are LIMIT - 1 tokens each, the last anchored to the end."""
        model = self.make(long_input="windows")
        sequence = bases(6 * 60, seed=4)
        whole = KmerTokenizer.encode(model.tokenizer, [sequence])[0]

        (item,) = model.prepare([sequence])

        windows = [window.payload[1:] for window in item.windows]
        expected = [whole[:23], whole[23:46], whole[37:]]
        for found, wanted in zip(windows, expected, strict=True):
            np.testing.assert_array_equal(found, wanted)
        assert not item.truncated

    def test_positions_that_end_before_the_limit_are_refused(self):
        """An older configuration says 1,024 tokens, and has 1,002 positions."""
        with pytest.raises(InputError, match="too few positions"):
            EsmExtractor(self.folder, ModelOptions(), limit=LIMIT + 1)


def test_agro_nt_has_no_token_dropout(tmp_path):
    """The same family, with the embeddings as they are."""
    config = NT | {"token_dropout": False}
    reference = seeded(EsmForMaskedLM, EsmConfig(**config))
    write_checkpoint(tmp_path, config, reference.state_dict(), torch_file=True)
    TestNucleotideTransformer.write_tokenizer(tmp_path)
    model = EsmExtractor(tmp_path, ModelOptions(), limit=LIMIT)
    (item,) = model.prepare([bases(70, seed=1)])
    with torch.inference_mode():
        output = reference(
            input_ids=torch.from_numpy(item.payload)[None], output_hidden_states=True
        )

    found = model.embed([bases(70, seed=1)])[0]

    expected = output.hidden_states[-1][0].mean(dim=0).numpy()
    # The same class on the same numbers.
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_token_dropout_scales_the_embeddings_at_inference_too():
    """By 1 - 0.15 x 0.8, whatever the padding; a port that forgets it is wrong everywhere."""
    ids = torch.tensor([[3, 10, 20, 30, 1, 1]])
    inside = ids != 1
    network = seeded(esm_network, EsmConfig(**NT))
    plain = seeded(esm_network, EsmConfig(**(NT | {"token_dropout": False})))
    words = network.model.embeddings.word_embeddings(ids)[:, :4]

    with torch.inference_mode():
        scaled = network(ids, inside, [0])[0][:, :4]
        unscaled = plain(ids, inside, [0])[0][:, :4]

    torch.testing.assert_close(unscaled - scaled, 0.12 * words)


def test_the_generated_vocabulary_is_the_published_one():
    """By its digest, so that what is tested here is tested on the real tokens."""
    text = "\n".join(VOCABULARY).encode()

    assert hashlib.sha256(text).hexdigest() == (
        "f1b544e27897936b50bbd925850fa8a08b421c33bb9c26e3711c140c061d0d4c"
    )


def test_the_real_vocabulary_gives_published_ids(real_data, tmp_path):
    """Ids that a third party recorded from the published tokenizer."""
    path = real_data / "tokenizers" / "nt-v1" / "vocab.txt"
    if not path.is_file():
        pytest.skip("the tokenizer is not among the real data")
    assert list(read_vocabulary(path)) == VOCABULARY
    tokenizer = KmerTokenizer(read_vocabulary(path), k=6, unknown=0, pad=1, policy={})

    (ids,) = tokenizer.encode(["ATTCCGATTCCGATTCCG"])

    assert ids.tolist() == [367, 367, 367]


@pytest.fixture(scope="module")
def both_tokenizers(tmp_path_factory):
    """Transformers' own and ours, of the generated vocabulary."""
    folder = tmp_path_factory.mktemp("vocabulary")
    TestNucleotideTransformer.write_tokenizer(folder)
    # The published tokenizer has no end token, so that none is added.
    native = EsmTokenizer(str(folder / "vocab.txt"), eos_token=None)
    return native, read_nucleotide_tokenizer(folder / "vocab.txt", 4105)


@given(sequence=st.text(alphabet="ACGTNacRU\u00e9-", max_size=60))
def test_tokens_are_those_of_transformers(both_tokenizers, sequence):
    """Whatever stands in a sequence, but for white space, at which Transformers splits."""
    native, own = both_tokenizers

    (found,) = own.encode([sequence])

    assert [*own.prefix, *found.tolist()] == native(sequence).input_ids


def test_tokens_beyond_the_embeddings_are_never_produced(tmp_path):
    """The published vocabulary lists two that have no vector; as letters they are unknown."""
    TestNucleotideTransformer.write_tokenizer(tmp_path)
    tokenizer = read_nucleotide_tokenizer(tmp_path / "vocab.txt", 4105)

    (ids,) = tokenizer.encode(["ACGTAC<eos><bos>N"])
    assert max(ids) < 4105
    # A 6-mer, one unknown for what follows, N.
    assert [KMERS.index("ACGTAC") + 4, 0, 4104] == ids.tolist()


@pytest.mark.parametrize(
    "lines",
    [["<unk>", "<pad>"], ["<unk>", "<pad>", "<cls>"], ["<unk>", "A", "<pad>", "C", "<unk>"]],
)
def test_a_vocabulary_that_lacks_something_is_one_message(tmp_path, lines):
    (tmp_path / "vocab.txt").write_text("\n".join(lines), encoding="utf-8")

    with pytest.raises(InputError, match="vocabulary"):
        read_nucleotide_tokenizer(tmp_path / "vocab.txt", 100)


def published_shapes(width: int, inner: int, layers: int, positions: int) -> dict:
    """Return names and shapes of a published file, head included."""
    square, wide = (width, width), (width,)
    shapes = {
        "esm.embeddings.word_embeddings.weight": (4105, width),
        "esm.embeddings.position_embeddings.weight": (positions, width),
        "esm.encoder.emb_layer_norm_after.weight": wide,
        "esm.encoder.emb_layer_norm_after.bias": wide,
        "lm_head.dense.weight": square,
        "lm_head.dense.bias": wide,
        "lm_head.layer_norm.weight": wide,
        "lm_head.layer_norm.bias": wide,
        "lm_head.decoder.weight": (4105, width),
        "lm_head.bias": (4105,),
        "esm.contact_head.regression.weight": (1, layers * 20),
        "esm.contact_head.regression.bias": (1,),
    }
    for layer in range(layers):
        block = f"esm.encoder.layer.{layer}"
        for name in ("attention.self.query", "attention.self.key", "attention.self.value"):
            shapes |= {f"{block}.{name}.weight": square, f"{block}.{name}.bias": wide}
        shapes |= {
            f"{block}.attention.output.dense.weight": square,
            f"{block}.attention.output.dense.bias": wide,
            f"{block}.attention.LayerNorm.weight": wide,
            f"{block}.attention.LayerNorm.bias": wide,
            f"{block}.intermediate.dense.weight": (inner, width),
            f"{block}.intermediate.dense.bias": (inner,),
            f"{block}.output.dense.weight": (width, inner),
            f"{block}.output.dense.bias": wide,
            f"{block}.LayerNorm.weight": wide,
            f"{block}.LayerNorm.bias": wide,
        }
    return shapes


@pytest.mark.parametrize(
    ("width", "inner", "layers", "positions", "count"),
    [
        # Parameters of the published class, counted by tcztzy/evo.cpp.
        (2560, 10240, 32, 1002, 2_547_801_226),
        # The published file holds 3,965,239,677 bytes, names and pickle included.
        (1500, 5120, 40, 1026, 991_261_206),
    ],
)
def test_the_full_size_fits_the_published_names(width, inner, layers, positions, count):
    config = EsmConfig(
        **NT
        | {
            "hidden_size": width,
            "intermediate_size": inner,
            "num_hidden_layers": layers,
            "num_attention_heads": 20,
            "max_position_embeddings": positions,
        }
    )
    published = published_shapes(width, inner, layers, positions)

    assert_full_size(lambda: esm_network(config), published, own_name, count)


def test_the_registry_names_both():
    """With the limits of the pinned revisions."""
    entries = models()

    assert entries["nucleotide-transformer-2.5b-multi-species"].parameters == {"limit": 1000}
    assert entries["agro-nucleotide-transformer-1b"].parameters == {"limit": 1024}

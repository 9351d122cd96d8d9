"""Model folders in the layout of the hub: what is read, what is refused, and the same numbers."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from support.command import geneb
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from geneb import open_store
from geneb.errors import InputError, NotFoundError
from geneb.extractors import registry
from geneb.extractors.base import LAST, Batch
from geneb.extractors.hf import ARCHITECTURES, HuggingFaceExtractor
from geneb.extractors.options import ModelOptions
from geneb.testing.extractors import ExtractorContract, bases

SPECIALS = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "[PAD]": 3}
VOCABULARY = {**SPECIALS, **{letter: 4 + place for place, letter in enumerate("ACGTN")}}
MERGES = ["AC", "GT", "ACGT", "TT"]
SIZES = {
    "vocab_size": len(VOCABULARY) + len(MERGES),
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 128,
    "pad_token_id": 3,
}
# What some configurations call these, and what they need besides.
OTHERS = {
    "distilbert": {"hidden_dim": 48},
    "electra": {"embedding_size": 16},
    "esm": {"token_dropout": False, "position_embedding_type": "rotary"},
    "gpt2": {"n_inner": 48},
    "mistral": {"num_key_value_heads": 2},
    "mixtral": {"num_key_value_heads": 2, "num_local_experts": 4, "num_experts_per_tok": 2},
    "modernbert": {"global_attn_every_n_layers": 2, "local_attention": 16},
    "qwen3": {"head_dim": 8, "num_key_value_heads": 2},
    "roformer": {"embedding_size": 32},
}


def write_tokenizer(folder: Path, *, around: bool = True, **config) -> None:
    """A byte-pair tokenizer over bases, with ``[CLS] ... [SEP]`` unless told otherwise."""
    vocabulary = {**VOCABULARY, **{pair: 9 + place for place, pair in enumerate(MERGES)}}
    merges = [("A", "C"), ("G", "T"), ("AC", "GT"), ("T", "T")]
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(list(SPECIALS))
    if around:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
        )
    tokenizer.save(str(folder / "tokenizer.json"))
    said = {"pad_token": "[PAD]", "model_max_length": 10**30, **config}
    (folder / "tokenizer_config.json").write_text(json.dumps(said), "utf-8")


def head_class(model_type: str) -> type:
    """The class that a language model of this type is trained and saved as."""
    architecture = ARCHITECTURES[model_type]
    stem = architecture.model.removesuffix("Model")
    names = (f"{stem}ForCausalLM", f"{stem}LMHeadModel") if architecture.causal else ()
    return next(
        getattr(transformers, name)
        for name in (*names, f"{stem}ForMaskedLM")
        if hasattr(transformers, name)
    )


def make_model(model_type: str, *, headless: bool = False, **changes):
    """A small model with random numbers, as Transformers constructs it."""
    architecture = ARCHITECTURES[model_type]
    sizes = {**SIZES, **OTHERS.get(model_type, {}), **changes}
    config = architecture.config_class(**sizes)
    cls = getattr(transformers, architecture.model) if headless else head_class(model_type)
    torch.manual_seed(20230814)
    model = cls(config).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():  # biases and norms begin as zeros and ones
            if "embed_positions" not in name:  # sines and cosines, never trained
                weight.add_(0.1 * torch.randn(weight.shape))
    return model


def write_folder(folder: Path, model_type: str = "mistral", **changes) -> Path:
    """A folder as ``save_pretrained`` writes it."""
    folder.mkdir(exist_ok=True, parents=True)
    make_model(model_type, **changes).save_pretrained(folder)
    write_tokenizer(folder)
    return folder


def edit_config(folder: Path, **changes) -> None:
    """Set fields of ``config.json``."""
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **changes}), "utf-8")


def load(folder: Path, **told) -> HuggingFaceExtractor:
    return HuggingFaceExtractor(folder, ModelOptions(**told))


@pytest.fixture(scope="module")
def mistral(tmp_path_factory) -> Path:
    return write_folder(tmp_path_factory.mktemp("mistral"), "mistral")


@pytest.fixture(scope="module")
def mixtral(tmp_path_factory) -> Path:
    return write_folder(tmp_path_factory.mktemp("mixtral"), "mixtral")


@pytest.fixture(scope="module")
def bert(tmp_path_factory) -> Path:
    return write_folder(tmp_path_factory.mktemp("bert"), "bert")


@pytest.fixture
def folder(mistral, tmp_path) -> Path:
    """A copy of a folder, to be spoiled."""
    return Path(shutil.copytree(mistral, tmp_path / "model"))


class HuggingFaceContract(ExtractorContract):
    layers = (LAST, "0", "1")
    sequences = tuple(bases(length, length) for length in (50, 12, 12, 101, 33, 60))

    def make(self):
        return load(self.folder)


class TestMixtureOfExperts(HuggingFaceContract):
    """Experts are chosen for each token by itself, so that neighbours do not matter."""

    @pytest.fixture(autouse=True)
    def _folder(self, mixtral):
        self.folder = mixtral

    def variants(self):
        return (load(self.folder, layer="1"), load(self.folder, pooling="last"))


class TestMaskedModel(HuggingFaceContract):
    """A model that looks both ways sees no padding."""

    @pytest.fixture(autouse=True)
    def _folder(self, bert):
        self.folder = bert


# The same numbers as Transformers.


@pytest.mark.parametrize("headless", [False, True], ids=["with head", "without head"])
@pytest.mark.parametrize("model_type", ARCHITECTURES)
def test_vectors_are_those_of_transformers(tmp_path, model_type, headless) -> None:
    """The mean of the last hidden state, of a folder that Transformers wrote itself."""
    folder = write_folder(tmp_path, model_type, headless=headless)
    cls = getattr(transformers, ARCHITECTURES[model_type].model)
    sequence = bases(70, seed=4)

    extractor = load(folder)
    vector = extractor.embed([sequence])[0]

    (item,) = extractor.prepare([sequence])
    with torch.inference_mode(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reference = cls.from_pretrained(folder, dtype="float32").eval()
        hidden = reference(torch.from_numpy(item.payload)[None]).last_hidden_state[0]
    expected = hidden.mean(dim=0).numpy()
    # The mean may be summed in another order.
    np.testing.assert_allclose(vector, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


def test_the_published_layout_of_experts(mixtral, tmp_path) -> None:
    """One expert's tensors are in the file each by itself, and all of them are used."""
    names = load_file(mixtral / "model.safetensors").keys()

    assert "model.layers.1.block_sparse_moe.experts.3.w2.weight" in names
    before = load(mixtral).embed(["ACGTACGTAC"])
    folder = Path(shutil.copytree(mixtral, tmp_path / "model"))
    for part in ("w1", "w2", "w3"):
        tensors = load_file(mixtral / "model.safetensors")
        name = f"model.layers.0.block_sparse_moe.experts.{part}.weight"
        for expert in range(4):
            tensors[name.replace("experts.", f"experts.{expert}.")] *= 2
        save_file(tensors, folder / "model.safetensors", {"format": "pt"})
        assert not np.allclose(before, load(folder).embed(["ACGTACGTAC"]))


def test_a_real_model_gives_its_golden_numbers(real_data) -> None:
    """Mistral-DNA 1M: the numbers were written down from Transformers' own loader, to 4 places."""
    folder = real_data / "weights" / "mistral-dna-1m-tf0"
    if not folder.is_dir():
        pytest.skip(f"there is no {folder}")
    extractor = load(folder)
    sequence = "ACGTTGCAACGTAGCTAGCTAGGATCCA" * 8

    (item,) = extractor.prepare([sequence])
    vector = extractor.embed([sequence])[0]

    assert item.payload[:9].tolist() == [1, 5, 134, 66, 194, 105, 105, 33, 144]
    assert item.length == 59
    assert extractor.max_length == 256
    np.testing.assert_allclose(vector[:4], [-0.2653, 0.3027, -0.3479, 0.5829], rtol=0, atol=1e-4)
    assert pytest.approx(float(np.linalg.norm(vector)), abs=1e-4) == 4.7790


def test_a_real_mixture_keeps_rows_apart(real_data) -> None:
    """Real routers decide the same in a padded batch as alone."""
    folder = real_data / "weights" / "mistral-dna-1m-tf0"
    if not folder.is_dir():
        pytest.skip(f"there is no {folder}")
    extractor = load(folder)
    items = extractor.prepare([bases(length, seed=length) for length in range(20, 420, 20)])

    together = extractor.forward(Batch(items, 256), (LAST,))[LAST]

    for item, vector in zip(items, together, strict=True):
        alone = extractor.forward(Batch([item], item.length), (LAST,))[LAST][0]
        # 1e-5 of the row's root mean square, as the contract has it.
        assert np.abs(alone - vector).max() <= 1e-5 * np.sqrt(np.mean(alone**2))


def test_half_precision_weights_are_computed_in_float32(folder) -> None:
    """The file's dtype is not the one that is computed in, unless it is asked for."""
    tensors = load_file(folder / "model.safetensors")
    half = {name: tensor.bfloat16() for name, tensor in tensors.items()}
    save_file(half, folder / "model.safetensors", {"format": "pt"})
    edit_config(folder, dtype="bfloat16")

    plain, asked = load(folder), load(folder, dtype="bfloat16")

    assert plain.describe().compute_dtype == "float32"
    assert asked.describe().compute_dtype == "bfloat16"
    assert not np.array_equal(plain.embed(["ACGTTGCA"]), asked.embed(["ACGTTGCA"]))


# Tokens and limits.


def test_the_template_s_tokens_are_around_every_sequence(mistral) -> None:
    """[CLS] in front and [SEP] behind, byte pairs between."""
    first, empty = load(mistral).prepare(["ACGTTTN", ""])

    assert first.payload.tolist() == [1, 11, 12, 8, 2]
    assert empty.payload.tolist() == [1, 2]


def test_a_tokenizer_without_a_template_adds_nothing(folder) -> None:
    """No special tokens; an empty sequence is zeros."""
    write_tokenizer(folder, around=False)
    extractor = load(folder)

    assert extractor.prepare(["ACGTTTN"])[0].payload.tolist() == [11, 12, 8]
    assert not extractor.embed([""]).any()


@pytest.mark.parametrize(
    ("model_type", "told", "expected"),
    [
        ("mistral", {}, 128),
        ("mistral", {"model_max_length": 40}, 40),
        ("mistral", {"model_max_length": 500}, 128),
        ("roberta", {}, 124),
        ("gpt2", {}, 128),
    ],
)
def test_the_limit_is_the_smaller_one(tmp_path, model_type, told, expected) -> None:
    """Of the model's positions, of which some begin behind the padding's, and the tokenizer's."""
    folder = write_folder(tmp_path, model_type)
    write_tokenizer(folder, **told)
    extractor = load(folder)
    room = expected - 2

    items = extractor.prepare(["A" * (room - 1), "A" * room, "A" * (room + 1)])

    assert expected == extractor.max_length
    assert [expected - 1, expected, expected] == [item.length for item in items]
    assert [item.truncated for item in items] == [False, False, True]
    extractor.forward(Batch(items, expected), (LAST,))


def test_a_limit_without_room_is_refused(folder) -> None:
    """Two special tokens leave nothing of a limit of two."""
    write_tokenizer(folder, model_max_length=2)

    with pytest.raises(InputError, match="no room for a sequence"):
        load(folder)


# What is refused.


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"pad_token_id": 69, "vocab_size": 69}, ("padding token lies outside", "0 to 68", "69")),
        ({"pad_token_id": -1}, ("padding token lies outside",)),
        ({"vocab_size": 6, "pad_token_id": 3}, ("tokens that the model has no vectors for", "AC")),
        ({"vocab_size": 12}, ("tokens that the model has no vectors for", "TT: 12")),
        ({"vocab_size": 40}, ("of another shape", "embed_tokens")),
        ({"num_hidden_layers": 3}, ("missing", "layers.2.")),
        ({"num_hidden_layers": 1}, ("not expected", "layers.1.")),
        ({"model_type": "mamba"}, ("architecture is not known", "mixtral", "mamba")),
        ({"model_type": ["llama"]}, ("architecture is not known",)),
        (
            {"model_type": "custom", "auto_map": {"AutoModel": "modeling.Custom"}},
            ("without the code that comes with it", "--extractor"),
        ),
        ({"quantization_config": {"quant_method": "gptq"}}, ("quantised",)),
        ({"hidden_size": "wide"}, ("cannot be used",)),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused(folder, changes, words) -> None:
    """Each mistake is one message that names the field, or the tensors."""
    edit_config(folder, **changes)

    with pytest.raises(InputError) as caught:
        load(folder)

    assert [word for word in words if word not in str(caught.value)] == []


def test_code_that_comes_with_weights_is_not_run(folder) -> None:
    """Also when the configuration names some."""
    (folder / "modeling.py").write_text("raise SystemExit('this is never run')", "utf-8")
    edit_config(folder, auto_map={"AutoModel": "modeling.Custom"})

    assert load(folder).embed(["ACGT"]).shape == (1, 32)


def test_models_that_pad_with_another_token_than_their_tokenizer(tmp_path) -> None:
    """An encoder may count positions by the padding's id, so the two must agree."""
    folder = write_folder(tmp_path, "roberta")
    write_tokenizer(folder, pad_token="[SEP]")

    with pytest.raises(InputError, match="pad with different tokens"):
        load(folder)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("tokenizer.json", "no fast tokenizer"),
        ("model.safetensors", "no weights in this folder"),
        ("config.json", "no such file"),
    ],
)
def test_a_file_that_is_not_there_is_named(folder, name, problem) -> None:
    """Each of the three files is needed."""
    (folder / name).unlink()

    with pytest.raises(NotFoundError, match=problem):
        load(folder)


def test_a_tokenizer_that_names_no_padding(folder) -> None:
    """Some token has to be named; any of the usual ones will do, as text or as a mapping."""
    path = folder / "tokenizer_config.json"
    path.unlink()
    with pytest.raises(InputError, match="no token is named"):
        load(folder)

    path.write_text(json.dumps({"eos_token": {"content": "[SEP]"}}), "utf-8")
    assert load(folder).tokenizer.pad == 2

    path.write_text("[]", "utf-8")
    with pytest.raises(InputError, match="not a tokenizer's configuration"):
        load(folder)


def test_a_tokenizer_that_is_not_for_dna(folder) -> None:
    """A vocabulary that makes nothing of ACGT is of no use here."""
    Tokenizer(models.BPE({"[PAD]": 0, "x": 1}, [])).save(str(folder / "tokenizer.json"))

    with pytest.raises(InputError, match="cannot be used for DNA"):
        load(folder)


@pytest.mark.parametrize("lost", ["experts.0.w1", "experts.1.w3", "experts.3.w1", "gate"])
def test_a_mixture_that_is_not_whole_is_refused(mixtral, tmp_path, lost) -> None:
    """A tensor of an expert, a whole expert's first, or the router's is missing."""
    folder = Path(shutil.copytree(mixtral, tmp_path / "model"))
    tensors = load_file(folder / "model.safetensors")
    del tensors[f"model.layers.1.block_sparse_moe.{lost}.weight"]
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})

    with pytest.raises(InputError, match=r"not whole|not expected"):
        load(folder)


# Names.


def test_a_folder_s_model_needs_a_name_of_its_own(mistral) -> None:
    """None, and a built-in model's, will not do."""
    loaded = registry.load("hf", weights=str(mistral))

    assert registry.named(loaded, "mine") == "mine"
    with pytest.raises(InputError, match="a name of its own"):
        registry.named(loaded, None)
    with pytest.raises(InputError, match="name of a built-in model"):
        registry.named(loaded, "KMER4")
    with pytest.raises(InputError, match="no weights of its own"):
        registry.load("hf")


def test_a_folder_is_embedded_under_its_name(mistral, demo_data, tmp_path) -> None:
    """On the command line: the store says what ``--model-id`` said."""
    (tmp_path / "data").mkdir()
    csv = min(demo_data.glob("*.csv"))
    lines = csv.read_text("utf-8").splitlines(keepends=True)
    train = [line for line in lines if line.rstrip().endswith("train")][:20]
    test = [line for line in lines if line.rstrip().endswith("test")][:10]
    (tmp_path / "data" / csv.name).write_text("".join([lines[0], *train, *test]), "utf-8")
    store = tmp_path / "x.zarr"

    outcome = geneb(
        "embed", "--model", "hf", "--weights", mistral, "--model-id", "mine",
        "--data", tmp_path / "data", "--available", "--store", store,
    )  # fmt: skip

    assert outcome.code == 0, outcome.err
    assert open_store(store).model_id == "mine"

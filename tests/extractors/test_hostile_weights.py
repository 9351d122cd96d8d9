"""Weights, configurations and tokenizers that were made to do harm: each is one message."""

from __future__ import annotations

import json
import logging
import os
import pickle  # noqa: TID251 - to write what must not be read
import random
import shutil
import zipfile
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from support.cispliceai_graph import constants
from support.graphdef_writer import graph
from support.native_checkpoint import whitespace_bpe
from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers
from transformers import BertConfig, BertModel

from geneb.errors import InputError, NotFoundError
from geneb.extractors import cispliceai, hf, native
from geneb.extractors.checkpoints import Checkpoint, load_strictly, parameters_on_meta, read_tensors
from geneb.extractors.configs import MOST_LAYERS
from geneb.extractors.options import ModelOptions
from geneb.extractors.tokenizers import FileTokenizer
from geneb.extractors.torch_extractor import Network

WEIGHTS = "model.safetensors"
TORCH = "pytorch_model.bin"
SIZES = {
    "vocab_size": 14,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 32,
    "pad_token_id": 3,
}


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("bert")
    torch.manual_seed(1)
    BertModel(BertConfig(**SIZES), add_pooling_layer=False).save_pretrained(folder)
    whitespace_bpe().save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text('{"pad_token": "[PAD]"}', "utf-8")
    return folder


@pytest.fixture
def folder(made, tmp_path) -> Path:
    """A copy, to be spoiled."""
    return Path(shutil.copytree(made, tmp_path / "model"))


def load(folder: Path) -> hf.HuggingFaceExtractor:
    return hf.HuggingFaceExtractor(folder, ModelOptions())


def edit(path: Path, **changes) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **changes}), "utf-8")


class Harm:
    """What a pickle can hold: a call that is made when it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


# Files of weights.


@pytest.mark.parametrize("form", ["zip", "legacy", "pickle"])
def test_no_code_in_a_torch_file_is_run(tmp_path, form) -> None:
    """Nor does the message say how it could be."""
    done, path = tmp_path / "done", tmp_path / TORCH
    if form == "pickle":
        path.write_bytes(pickle.dumps(Harm(done)))
    else:
        torch.save({"a": Harm(done)}, path, _use_new_zipfile_serialization=form == "zip")

    with pytest.raises(InputError, match="cannot be read as weights") as caught:
        read_tensors(path)

    assert not done.exists()
    assert "`False`" not in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"version https://git-lfs.github.com/spec/v1\n", b"PK\3\4x"])
@pytest.mark.parametrize("name", [TORCH, WEIGHTS])
def test_other_files_are_refused(tmp_path, name, data) -> None:
    """Empty, a pointer in the place of the file, cut off."""
    (tmp_path / name).write_bytes(data)

    with pytest.raises(InputError, match="cannot be read as weights"):
        read_tensors(tmp_path / name)


@pytest.mark.parametrize(
    "content",
    [
        {1: torch.zeros(2)},
        {None: torch.zeros(2)},
        {("a", 1): torch.zeros(2)},
        {"a": "text"},
        {"a": torch.zeros(2).to_sparse()},
        {"a": torch.empty(2, device="meta")},
        {"state_dict": {"state_dict": {"a": torch.zeros(2)}}},
        [torch.zeros(2)],
    ],
)
def test_what_is_no_mapping_of_names_to_plain_tensors_is_refused(tmp_path, content) -> None:
    """Whatever a torch file may hold besides."""
    torch.save(content, tmp_path / TORCH)

    with pytest.raises(InputError, match="something else than weights"):
        read_tensors(tmp_path / TORCH)


def test_tensors_are_no_larger_than_their_file(tmp_path) -> None:
    """One number can be any size, and any number of tensors; two that are tied are usual."""
    table = torch.zeros(1000, 100)
    torch.save({"embedding": table, "head": table}, tmp_path / "tied.bin")
    torch.save({"a": torch.zeros(1).expand(10**6, 10**6)}, tmp_path / "swollen.bin")
    torch.save({str(number): table for number in range(20)}, tmp_path / "shared.bin")

    assert set(read_tensors(tmp_path / "tied.bin")) == {"embedding", "head"}
    for name in ("swollen.bin", "shared.bin"):
        with pytest.raises(InputError, match="larger than the file"):
            read_tensors(tmp_path / name)


class Small(Network):
    layers = 1

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(2, 3))


@pytest.mark.parametrize(
    "dtype",
    [torch.int64, torch.int8, torch.uint8, torch.bool, torch.complex64, torch.float8_e4m3fn],
)
def test_weights_are_numbers_of_full_meaning(dtype) -> None:
    """Quantised ones mean nothing without their scale."""
    with parameters_on_meta("here"):
        network = Small()

    with pytest.raises(InputError, match=r"of another kind: weight torch\."):
        load_strictly(
            network, {"weight": torch.ones(2, 3).to(dtype)}, where="here", dtype=torch.float32
        )


@pytest.mark.parametrize(
    ("dtype", "number"),
    [(torch.float32, float("nan")), (torch.bfloat16, -float("inf")), (torch.float64, 1e300)],
)
def test_weights_are_finite(dtype, number) -> None:
    """Also in what is computed in; otherwise a run would stop at its first sequence."""
    with parameters_on_meta("here"):
        network = Small()
    weight = torch.ones(2, 3, dtype=dtype)
    weight[1, 2] = number

    with pytest.raises(InputError, match="NaN or infinity"):
        load_strictly(network, {"weight": weight}, where="here", dtype=torch.float32)


def test_names_of_tensors_are_shown_harmless(folder) -> None:
    """Escapes are spelt out, and a name of a million letters is cut."""
    tensors = load_file(folder / WEIGHTS)
    names = {"\x1b[2J\u202e": torch.zeros(1), "x" * 10**6: torch.zeros(1)}
    save_file({**tensors, **names}, folder / WEIGHTS)

    with pytest.raises(InputError, match="not expected") as caught:
        load(folder)

    assert "\\x1b[2J" in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 2000


def test_safetensors_go_before_torch_files(folder) -> None:
    """In shards too; the digest is that of the files that are read."""
    tensors = load_file(folder / WEIGHTS)
    shard = "model-00001-of-00001.safetensors"
    (folder / WEIGHTS).rename(folder / shard)
    index = {"weight_map": dict.fromkeys(tensors, shard)}
    (folder / f"{WEIGHTS}.index.json").write_text(json.dumps(index), "utf-8")
    before = Checkpoint(folder).sha256()

    torch.save({"another": torch.zeros(2)}, folder / TORCH)

    assert [path.name for path in Checkpoint(folder).files] == [shard]
    assert before == Checkpoint(folder).sha256()


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "", ".", "a\x1b[2J", "a\0b"])
def test_an_index_leads_nowhere_else(folder, name) -> None:
    """A shard is a name in the folder."""
    (folder / WEIGHTS).unlink()
    index = {"weight_map": {"a": name}}
    (folder / f"{WEIGHTS}.index.json").write_text(json.dumps(index), "utf-8")

    with pytest.raises(InputError, match="cannot be the name of a file of weights") as caught:
        load(folder)
    assert "\x1b" not in str(caught.value)


def test_weights_that_change_while_they_are_read(folder, monkeypatch) -> None:
    """Their digest would be another than that of what was loaded, whatever their times say."""
    status, filled = (folder / WEIGHTS).stat(), hf.load_native

    def load_and_change(*arguments, **options):
        network = filled(*arguments, **options)
        tensors = {name: tensor * 2 for name, tensor in load_file(folder / WEIGHTS).items()}
        save_file(tensors, folder / "new")
        os.utime(folder / "new", ns=(status.st_atime_ns, status.st_mtime_ns))
        (folder / "new").replace(folder / WEIGHTS)
        return network

    monkeypatch.setattr(hf, "load_native", load_and_change)
    with pytest.raises(InputError, match="changed while they were read"):
        load(folder)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
@pytest.mark.parametrize("kind", ["loop", "folder", "pipe", "device", "nowhere"])
def test_what_is_no_file_is_refused(folder, name, kind) -> None:
    """Without waiting for a pipe, and without following a link for ever."""
    path = folder / name
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to({"loop": path, "device": "/dev/zero", "nowhere": "/none"}[kind])

    with pytest.raises((InputError, NotFoundError)):
        load(folder)


# Configurations.


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"num_hidden_layers": 10**9}, "1 to 1,024"),
        ({"num_hidden_layers": MOST_LAYERS + 1}, "1 to 1,024"),
        ({"max_position_embeddings": 10**9}, "bytes of positions and masks"),
        ({"hidden_size": 10**12}, "makes no model"),
        ({"vocab_size": 10**30}, "makes no model"),
        ({"hidden_act": "\x1b[2J"}, "makes no model"),
        ({"num_attention_heads": -2}, "1 to 1,024"),
    ],
)
def test_sizes_without_bounds_are_refused(folder, changes, words) -> None:
    """Before anything of that size is made."""
    edit(folder / "config.json", **changes)

    with pytest.raises(InputError, match="configuration") as caught:
        load(folder)
    assert words in str(caught.value)
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    "name",
    [
        *("_attn_implementation", "_attn_implementation_internal", "attn_implementation"),
        *("_experts_implementation", "experts_implementation"),
    ],
)
def test_no_configuration_names_code_to_run(folder, name) -> None:
    """Transformers would fetch such a repository, and run what is in it."""
    edit(folder / "config.json", **{name: "somebody/kernel"})

    model = load(folder).network.model

    assert model.config._attn_implementation == "sdpa"
    assert "somebody/kernel" not in vars(model.config).values()


def test_fields_that_are_of_no_matter_do_no_harm(folder) -> None:
    """A thousand million labels, a dtype that is none, a method's name."""
    expected = load(folder).embed(["ACGT"])
    edit(
        folder / "config.json",
        num_labels=10**9,
        id2label={"x": 1},
        dtype="\x1b",
        chunk_size_feed_forward=7,
        to_dict=1,
    )

    assert (expected == load(folder).embed(["ACGT"])).all()


def test_what_transformers_says_is_shown_harmless() -> None:
    """It repeats a configuration's text in its warnings."""
    record = logging.LogRecord("transformers", logging.WARNING, "", 0, "%s", ("a\x1b[2J\nb",), None)

    assert native._InOneLine().filter(record)
    assert record.getMessage() == "a\\x1b[2J b"
    handlers = logging.getLogger("transformers").handlers
    assert any(isinstance(f, native._InOneLine) for one in handlers for f in one.filters)


# Tokenizers.


def tokenizer(tmp_path: Path, made: Tokenizer, **changes) -> FileTokenizer:
    path = tmp_path / "tokenizer.json"
    made.save(str(path))
    edit(path, **changes)
    return FileTokenizer(path, pad="[PAD]", policy={}, rows=14)


@pytest.mark.parametrize(
    "normalizer",
    [
        normalizers.Sequence([normalizers.Replace("A", "A" * 100)] * 4),
        normalizers.Prepend("A" * 10**6),
    ],
)
def test_a_tokenizer_that_swells_a_text_is_refused(tmp_path, normalizer) -> None:
    """Four steps of a hundred letters each make a hundred million of one."""
    swelling = whitespace_bpe()
    swelling.normalizer = normalizer

    with pytest.raises(InputError, match="much longer"):
        tokenizer(tmp_path, swelling)


@pytest.mark.parametrize(
    "pattern",
    [
        "(([ACGT]+)+)+Z",
        "(A|C|AC)*Z",
        r"(.*)\1Z",
        "((A{1,9}){1,9}){1,9}",
        "(?:(?:A*)B?)*",
        "A" * 10**5,
    ],
)
def test_expressions_that_may_not_end_are_refused(tmp_path, pattern) -> None:
    """Where a repeated group varies in itself, there are exponentially many ways to try."""
    slow = whitespace_bpe()
    slow.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), "isolated")

    with pytest.raises(InputError, match="time without bounds"):
        tokenizer(tmp_path, slow)


@pytest.mark.parametrize(
    "pattern",
    [
        r"[^\r\n\p{L}]?\p{L}+|\p{N}{1,3}|\s*[\r\n]+|\s+(?!\S)",
        "(?i:'s|'t)?",
        ".{6}",
        "(ACG)+",
        r"[(+]*\)+",
    ],
)
def test_usual_expressions_are_read(tmp_path, pattern) -> None:
    """Those of published tokenizers, and groups that do not vary."""
    usual = whitespace_bpe()
    usual.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), "isolated")

    assert len(tokenizer(tmp_path, usual).encode(["ACGTACGT"])[0])


def test_a_tokenizer_that_chooses_at_random_is_refused(tmp_path) -> None:
    """Its vectors could not be made again."""
    model = json.loads(whitespace_bpe().to_str())["model"]

    with pytest.raises(InputError, match="at random"):
        tokenizer(tmp_path, whitespace_bpe(), model={**model, "dropout": 0.1})


@pytest.mark.parametrize(
    ("part", "changes"),
    [
        ("model", {"continuing_subword_prefix": "##"}),
        ("model", {"unk_token": "<none>"}),
        ("pre_tokenizer", {"type": "FixedLength", "length": 0}),
    ],
)
def test_what_the_library_does_not_foresee_is_one_message(tmp_path, part, changes) -> None:
    """It panics, which is no Exception."""
    before = json.loads(whitespace_bpe().to_str())[part]

    with pytest.raises(InputError, match="tokenizer"):
        tokenizer(tmp_path, whitespace_bpe(), **{part: {**before, **changes}}).encode(["xACGT"])


@pytest.mark.parametrize("number", [14, 2**32 - 1])
def test_special_tokens_have_vectors(folder, number) -> None:
    """An id beyond the table would be an error of torch's, long after the start."""
    edit(
        folder / "tokenizer.json",
        post_processor={"type": "BertProcessing", "cls": ["[CLS]", 1], "sep": ["[SEP]", number]},
    )

    with pytest.raises(InputError, match="no vector for"):
        load(folder)


# Wheels.


def test_a_damaged_wheel_is_read_or_refused(tmp_path) -> None:
    """Whatever zipfile raises."""
    path, draws = tmp_path / "cispliceai-1.2.2-py3-none-any.whl", random.Random(5)
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(cispliceai.GRAPH_IN_WHEEL, graph(constants(1))[:300])
    whole, refused = path.read_bytes(), 0
    for _ in range(1500):
        damaged = bytearray(whole)
        for _ in range(draws.randint(1, 4)):
            damaged[draws.randrange(len(whole) - 200, len(whole))] = draws.choice([0, 255, 77])
        path.write_bytes(damaged)
        try:
            cispliceai.read_graph(path)
        except (InputError, NotFoundError):
            refused += 1

    assert refused > 500


@pytest.mark.parametrize("compression", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_wheels_are_compressed_as_wheels_are(tmp_path, compression) -> None:
    """LZMA would take as much memory as its header says."""
    path = tmp_path / "cispliceai-1.2.2-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", compression) as wheel:
        wheel.writestr(cispliceai.GRAPH_IN_WHEEL, b"x")

    with pytest.raises(InputError, match="cannot be read as a wheel"):
        cispliceai.read_graph(path)

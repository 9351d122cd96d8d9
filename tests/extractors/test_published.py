"""Published-style extractor files run unmodified, and what goes wrong with them is said clearly."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from geneb.base.canonical import file_sha256
from geneb.errors import InputError, WorkError
from geneb.extractors.registry import load
from geneb.testing import ExtractorContract

# As the published files are: the harness's own base, printing, batches with a loop.
PUBLISHED = """
from typing import List
import numpy as np
from .base import BaseEmbeddingExtractor

print("loading")


class Published(BaseEmbeddingExtractor):
    def __init__(self, name_model: str, device="cpu"):
        print("constructing")
        self.told = (name_model, device)

    def extract_embeddings(self, sequences: List[str], batch_size: int = 4) -> np.ndarray:
        print("running")
        rows = []
        for start in range(0, len(sequences), batch_size):
            for sequence in sequences[start : start + batch_size]:
                rows.append([len(sequence), sequence.count("G")])
        return np.array(rows, dtype=np.float64)
"""


def returning(expression: str) -> str:
    """A class without a base whose every call returns the value of an expression."""
    return f"""
import numpy as np

class Published:
    def __init__(self, name_model, device="cpu"):
        pass

    def extract_embeddings(self, sequences, batch_size=8):
        return {expression}
"""


@pytest.fixture
def write(tmp_path):
    """Write an extractor file; return the spec of its class."""

    def write(source: str) -> str:
        (tmp_path / "published.py").write_text(source, encoding="utf-8")
        return f"{tmp_path / 'published.py'}:Published"

    return write


class TestPublishedContract(ExtractorContract):
    """The adapter, around a file that is used for measuring."""

    @pytest.fixture(autouse=True)
    def _spec(self, root):
        self.spec = f"{root / 'tools' / 'measure' / 'random_convolution.py'}:RandomConvolution"

    def make(self):
        return load(self.spec).extractor

    def variants(self):
        return [load(self.spec, weights="another").extractor]


class TestPublishedByLengthContract(ExtractorContract):
    """The adapter as it is where a class says nothing of its batching."""

    @pytest.fixture(autouse=True)
    def _spec(self, write):
        self.spec = write(PUBLISHED)

    def make(self):
        return load(self.spec).extractor


def test_a_published_file_runs_unmodified(write, tmp_path):
    """Relative import, name_model, device, float64: all as the published harness has it."""
    loaded = load(write(PUBLISHED), weights="lab/model")

    vectors = loaded.extractor.embed(["ACGG", "", "G"])

    assert loaded.model_id == "Published"
    assert vectors.dtype == np.float32
    np.testing.assert_array_equal([[4, 2], [0, 0], [1, 1]], vectors)


def test_what_it_describes(write, tmp_path):
    """The file's digest, the class, its model and its own batch size; what is unknown as such."""
    description = load(write(PUBLISHED), weights="lab/model").extractor.describe()

    assert file_sha256(tmp_path / "published.py") == description.file
    assert description.parameters == {
        "class": "Published",
        "name_model": "lab/model",
        "batch_size": 4,
        "limit": None,
    }
    assert description.weights is None
    assert description.compute_dtype == "unstated"


def test_local_weights_are_described_by_their_content(write, tmp_path):
    """Never by where they lie: the same folder elsewhere is the same model."""
    spec = write(PUBLISHED)
    for place in ("here", "there"):
        folder = tmp_path / place / "model"
        folder.mkdir(parents=True)
        (folder / "weights.bin").write_bytes(b"weights")
        (folder / ".cache").mkdir()
        (folder / ".cache" / place).write_text(place)

    here, there = (
        load(spec, weights=str(tmp_path / place / "model")).extractor.describe()
        for place in ("here", "there")
    )
    (folder / "weights.bin").write_bytes(b"other weights")
    changed = load(spec, weights=str(folder)).extractor.describe()

    renamed = tmp_path / "here" / "another-name"
    (tmp_path / "here" / "model").rename(renamed)

    assert here == there == load(spec, weights=str(renamed)).extractor.describe()
    assert here.parameters["name_model"] is None
    assert here.weights != changed.weights


@pytest.mark.parametrize(
    ("weights", "told"),
    [
        ("lab/model", "lab/model"),
        ("https://user:word@host.example/model?token=1", "https://host.example/model"),
        ("s3://key:secret@bucket/model", "s3://bucket/model"),
        ("/home/somebody/secret project/model.bin", "model.bin"),
    ],
)
def test_weights_elsewhere_are_told_without_secrets(write, weights, told):
    """Fingerprint and messages get what may be told to others; the class gets all."""
    extractor = load(write(PUBLISHED), weights=weights).extractor
    source = PUBLISHED.replace("self.told =", "raise ValueError; self.told =")

    assert told == extractor.describe().parameters["name_model"]
    assert weights == extractor._model.told[0]
    with pytest.raises(InputError) as caught:
        load(write(source), weights=weights)
    assert repr(told) in caught.value.expected
    assert weights == told or weights not in str(caught.value)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "unstated"])
def test_what_a_class_computes_in_is_what_it_declares(write, dtype):
    """Half precision is allowed more, so it must be said."""
    source = PUBLISHED.replace(
        "    def __init__", f"    compute_dtype = {dtype!r}\n    def __init__"
    )

    assert dtype == load(write(source)).extractor.describe().compute_dtype


@pytest.mark.parametrize("declared", ["'fp8'", "16", "['float16']"])
def test_a_compute_dtype_that_does_not_exist_is_refused(write, declared):
    """With those that do."""
    source = PUBLISHED.replace(
        "    def __init__", f"    compute_dtype = {declared}\n    def __init__"
    )

    with pytest.raises(InputError, match="a compute_dtype that does not exist") as caught:
        load(write(source))

    assert caught.value.expected == "float32 or bfloat16 or float16 or unstated"


def test_an_exit_in_a_class_is_a_failure(write):
    """sys.exit() must not end geneb as if all were well."""
    source = PUBLISHED.replace("self.told =", "raise SystemExit; self.told =")
    running = load(write(returning("exit()"))).extractor

    with pytest.raises(WorkError, match="extract_embeddings failed") as caught:
        running.embed(["A"])
    assert "SystemExit" in caught.value.found
    with pytest.raises(InputError, match="could not be constructed"):
        load(write(source))


def test_a_file_with_the_class_s_name_is_not_its_weights(write, tmp_path, monkeypatch):
    """Only what was asked for as weights is looked at."""
    monkeypatch.chdir(tmp_path)
    spec = write(PUBLISHED)
    before = load(spec).extractor.describe()
    (tmp_path / "Published").write_text("something")

    assert before == load(spec).extractor.describe()


def test_device_and_model_reach_the_class(write):
    """The model is named after the class where nothing else is said."""
    assert load(write(PUBLISHED), device="cuda:1").extractor._model.told == ("Published", "cuda:1")
    assert load(write(PUBLISHED), weights="w").extractor._model.told == ("w", "cpu")


def test_the_batch_is_the_engine_s(write):
    """A class gets the batch whole, and its batch_size is that of the batch."""
    source = returning("np.full((len(sequences), 1), batch_size)")

    assert load(write(source)).extractor.embed(["A", "C", "G"]).tolist() == [[3], [3], [3]]


def test_arguments_that_a_class_does_not_take_are_left_out(write):
    """Neither device nor batch_size need exist."""
    source = (
        returning("np.ones((len(sequences), 2))")
        .replace(', device="cpu"', "")
        .replace(", batch_size=8", "")
    )

    extractor = load(write(source)).extractor

    assert extractor.embed(["A"]).shape == (1, 2)
    assert extractor.describe().parameters["batch_size"] is None
    with pytest.raises(InputError, match="cannot be told its device"):
        load(write(source), device="cuda:0")


@pytest.mark.parametrize(
    ("declared", "expected"),
    [("", "equal-length"), ("masked", "masked"), ("alone", "alone")],
)
def test_batching_is_what_the_class_declares(write, declared, expected):
    """Rows of one length at a time where it declares nothing."""
    line = f"    batching = {declared!r}\n" if declared else ""
    source = PUBLISHED.replace("    def __init__", f"{line}    def __init__")

    assert load(write(source)).extractor.batching == expected


def test_a_batching_that_does_not_exist_is_refused(write):
    """With those that do."""
    source = PUBLISHED.replace("    def __init__", "    batching = 'sorted'\n    def __init__")

    with pytest.raises(InputError) as caught:
        load(write(source))

    assert caught.value.expected == "masked or equal-length or alone"


def test_stdout_is_kept_for_data(write):
    """print, sys.__stdout__, subprocesses and descriptor 1 all end up on stderr."""
    source = PUBLISHED.replace(
        'print("running")',
        'import os, sys; sys.__stdout__.write("original\\n"); os.system("echo child"); '
        'os.write(1, b"descriptor\\n"); print("running")',
    )
    code = (
        "import sys; from geneb.extractors.registry import load; print('before');"
        "load(sys.argv[1]).extractor.embed(['A']); print('after')"
    )

    done = subprocess.run(
        [sys.executable, "-c", code, write(source)], capture_output=True, text=True, check=True
    )

    assert done.stdout == "before\nafter\n"
    said = ["child", "constructing", "descriptor", "loading", "original", "running"]
    assert said == sorted(done.stderr.split())


def test_a_process_without_stdout_can_run(write):
    """As under a service manager."""
    code = (
        "import sys; from geneb.extractors.registry import load;"
        "load(sys.argv[1]).extractor.embed(['A']); sys.stderr.write('done')"
    )

    done = subprocess.run(
        ["bash", "-c", '"$0" -c "$1" "$2" >&-', sys.executable, code, write(PUBLISHED)],
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stderr.endswith("done")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("[[1, 2], [3, 4]]", [[1, 2], [3, 4]]),
        ("[np.ones(2), np.zeros(2)]", [[1, 1], [0, 0]]),
        ("np.array([[1], [2]], dtype=np.int64)", [[1], [2]]),
        ("np.array([[1], [2]], dtype=np.float16)", [[1], [2]]),
        ("np.asfortranarray([[1.0, 2.0], [3.0, 4.0]])", [[1, 2], [3, 4]]),
        ("np.array([[1e300], [2]])", [[np.inf], [2]]),
    ],
)
def test_numbers_of_any_kind_become_float32(write, expression, expected):
    """Infinity included: whether rows are finite is the engine's business."""
    vectors = load(write(returning(expression))).extractor.embed(["A", "C"])

    assert vectors.dtype == np.float32
    assert vectors.flags.c_contiguous
    np.testing.assert_array_equal(expected, vectors)


def test_a_buffer_that_is_used_again_does_no_harm(write):
    """What an earlier batch returned stays as it was."""
    source = returning("self.fill(sequences)") + (
        "    buffer = np.zeros((1, 1), dtype=np.float32)\n"
        "    def fill(self, sequences):\n"
        "        self.buffer[:] = len(sequences[0])\n"
        "        return self.buffer\n"
    )
    extractor = load(write(source)).extractor

    first = extractor.embed(["A"])
    extractor.embed(["ACGT"])

    assert first.tolist() == [[1]]


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("np.ones((1, 4))", "shape (1, 4)"),
        ("np.ones((3, 4))", "shape (3, 4)"),
        ("np.ones(2)", "shape (2,)"),
        ("np.ones((2, 3, 4))", "shape (2, 3, 4)"),
        ("np.ones((2, 0))", "shape (2, 0)"),
        ("[]", "shape (0,)"),
        ("[[1, 2], [3]]", "rows of unequal length"),
        ("np.array([[None], [1]])", "or other things"),
        ("None", "or other things"),
        ("[{}, {}]", "or other things"),
        ("np.array([['a'], ['b']])", "<U1"),
        ("np.array([[True], [False]])", "bool"),
        ("np.array([[1j], [2]])", "complex128"),
    ],
)
def test_anything_but_one_vector_a_sequence_is_an_error(write, expression, found):
    """The message names the class, what was expected and what came."""
    extractor = load(write(returning(expression))).extractor

    with pytest.raises(WorkError) as caught:
        extractor.embed(["A", "C"])

    assert caught.value.where == "published.py:Published"
    assert found in caught.value.found


def test_a_failure_while_running_names_its_line(write):
    """An error of the user's code is told in one sentence."""
    extractor = load(write(returning("sequences[99]"))).extractor

    with pytest.raises(WorkError) as caught:
        extractor.embed(["A"])

    assert caught.value.found == "IndexError: list index out of range (line 9 of published.py)"


@pytest.mark.parametrize("error", ["MemoryError", "OutOfMemoryError"])
def test_running_out_of_memory_is_passed_on(write, error):
    """The engine answers it with smaller batches."""
    source = returning("self.fail()") + (
        "    def fail(self):\n"
        f"        raise {error}('too much')\n"
        "class OutOfMemoryError(RuntimeError):\n"
        "    pass\n"
    )
    extractor = load(write(source)).extractor

    with pytest.raises((MemoryError, RuntimeError)) as caught:
        extractor.embed(["A"])

    assert type(caught.value).__name__ == error


@pytest.mark.parametrize(
    ("source", "found", "fix"),
    [
        ("x = 1 / 0", "ZeroDivisionError: division by zero (line 1", None),
        ("\n\ndef f(:", "SyntaxError: invalid syntax (line 3", None),
        ("import no_such_package_at_all", "No module named", "provides no_such_package_at_all"),
        ("import transformers_.x", "No module named", "provides transformers_"),
        ("from .other import x", "No module named", "one file"),
        ("raise SystemExit(3)", "SystemExit: 3 (line 1", None),
        ("x = '\0'", "null bytes", None),
        ("def f():\n    raise KeyError('k')\nf()", "KeyError: 'k' (line 2", None),
    ],
)
def test_a_file_that_cannot_be_run_says_why(write, source, found, fix):
    """Type, message and the line of the user's file; and for a package how to get it."""
    with pytest.raises(InputError) as caught:
        load(write(source))

    assert found in caught.value.found
    assert fix is None or fix in caught.value.fix


def test_a_package_that_an_extra_brings_is_offered_as_that(write):
    """The whole command, ready to be copied."""
    with pytest.raises(InputError) as caught:
        load(write("raise ModuleNotFoundError('No module', name='safetensors.torch')"))

    assert caught.value.fix == "python -m pip install 'geneb[models]'"


def test_a_failed_file_can_be_mended_and_loaded(write):
    """A failed attempt leaves nothing behind."""
    for source in ("x = 1 / 0", "x = 1 / 0"):
        with pytest.raises(InputError):
            load(write(source))

    assert load(write(PUBLISHED)).model_id == "Published"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("", "no class at all"),
        ("from pathlib import Path as Published", "no class at all"),
        ("from .base import BaseEmbeddingExtractor as Published", "no class at all"),
        ("class One: ...\nclass Two: ...", "the classes One, Two"),
        ("class One: ...\ndef Published(): ...", "the classes One"),
    ],
)
def test_a_missing_class_lists_those_that_are_there(write, source, found):
    """Only the file's own: what it imports is not told apart by its digest."""
    with pytest.raises(InputError) as caught:
        load(write(source))

    assert "defines no class Published" in str(caught.value)
    assert caught.value.found == found


def test_a_class_of_another_kind_is_refused(write):
    """It says what an extractor class has."""
    with pytest.raises(InputError) as caught:
        load(write("class Published:\n    pass"))

    assert "extract_embeddings" in caught.value.expected


def test_a_constructor_s_failure_names_its_line(write):
    """Weights that are not there, most often."""
    source = PUBLISHED.replace("self.told =", "open('nowhere'); self.told =")

    with pytest.raises(InputError) as caught:
        load(write(source))

    assert "FileNotFoundError" in caught.value.found
    assert "of published.py" in caught.value.found


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("many", ["tensor", "[row for row in tensor]"])
def test_torch_tensors_are_taken(write, dtype, many):
    """From a graph, in bfloat16, one tensor or a list of them."""
    pytest.importorskip("torch")
    source = returning("self.make(sequences)") + (
        "    def make(self, sequences):\n"
        "        import torch\n"
        "        tensor = torch.ones(len(sequences), 3, requires_grad=True) * 2\n"
        f"        tensor = tensor.to(torch.{dtype})\n"
        f"        return {many}\n"
    )

    vectors = load(write(source)).extractor.embed(["A", "C"])

    assert vectors.dtype == np.float32
    np.testing.assert_array_equal(np.full((2, 3), 2), vectors)

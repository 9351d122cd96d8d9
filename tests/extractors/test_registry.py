"""The registry: built-in models, and classes in users' files."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

from geneb.errors import InputError, NotFoundError
from geneb.extractors.base import Extractor
from geneb.extractors.registry import load, model_class, model_ids, models, named, parse_registry
from geneb.testing import ExtractorContract

EXTRACTOR = """
import numpy as np
from geneb.extractors.base import SimpleExtractor

class Mine(SimpleExtractor):
    name = "mine"

    def embed(self, sequences):
        return np.array([[len(s), s.count("G")] for s in sequences], dtype=np.float32)
"""

BASELINES = [*(f"kmer{k}" for k in range(1, 9)), "onehot128"]

ENTRY = """
[models.one]
display = "One"
description = "One."
family = "kmer:KmerExtractor"
parameters = { k = 1 }
"""


@pytest.fixture
def write(tmp_path):
    """Write an extractor file; return the spec of its class."""

    def write(source: str, class_name: str = "Mine", name: str = "mine.py") -> str:
        (tmp_path / name).write_text(source, encoding="utf-8")
        return f"{tmp_path / name}:{class_name}"

    return write


@pytest.mark.parametrize("model_id", BASELINES)
class TestRegisteredContract(ExtractorContract):
    @pytest.fixture(autouse=True)
    def _model_id(self, model_id):
        self.model_id = model_id

    def make(self):
        return load(self.model_id).extractor


def test_the_baselines_are_there():
    """k-mers from 1 to 8 and one-hot letters, first in the registry's order."""
    assert model_ids()[: len(BASELINES)] == BASELINES


@pytest.mark.parametrize("k", range(1, 9))
def test_a_k_mer_model_has_its_k(k):
    """The id says what the parameters do."""
    assert load(f"kmer{k}").extractor.describe().parameters["k"] == k


@pytest.mark.parametrize("model_id", model_ids())
def test_every_entry_is_what_its_class_says(model_id):
    """An extractor; with weights, unless it is a baseline; with the presets that are stated."""
    cls, model = model_class(model_id), models()[model_id]

    assert issubclass(cls, Extractor)
    assert cls.needs_weights == (model_id not in BASELINES)
    if cls.needs_weights:
        assert list(getattr(cls, "presets", ("masked",))) == model.presets


def test_models_are_told_apart_by_people():
    """No two have one name; all say how their vectors come about, but for the generic one."""
    assert len({model.display.casefold() for model in models().values()}) == len(models())
    for model_id, model in models().items():
        assert model.generic or (model.dim and model.recipe), model_id


@pytest.mark.parametrize("model_id", BASELINES)
def test_a_baseline_is_loaded_by_its_id(model_id):
    assert load(model_id).model_id == model_id


def test_an_unknown_model_gets_suggestions():
    """The near ones, and where all are listed."""
    with pytest.raises(InputError) as caught:
        load("kmer66")

    assert "did you mean kmer6" in caught.value.fix
    assert "geneb model list --runnable" in caught.value.expected


def test_a_model_without_weights_takes_none():
    """Better said than left out in silence."""
    with pytest.raises(InputError, match="cannot be told its weights"):
        load("kmer3", weights="somewhere")


def test_a_model_for_the_cpu_takes_no_other_device():
    """A run on a device that is not used would be recorded as one on it."""
    with pytest.raises(InputError, match="cannot be told its device"):
        load("kmer3", device="cuda:0")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[models.one", "not TOML"),
        (ENTRY + ENTRY, "not TOML"),
        (ENTRY + 'weight = "x"', "weight"),
        (ENTRY.replace('display = "One"', ""), "display"),
        (ENTRY.replace('"One"', "1"), "display"),
        (ENTRY.replace("kmer:KmerExtractor", "os:system"), "family"),
        (ENTRY.replace("kmer:KmerExtractor", "..os.path:Join"), "family"),
        (ENTRY.replace("k = 1", "k = [1]"), "parameters"),
        (ENTRY.replace("models.one", 'models."../one"'), "name of a model"),
        (ENTRY + "[extra]", "extra"),
        ("", "models"),
    ],
)
def test_a_faulty_registry_is_refused(text, words):
    """With the entry and the field that are wrong."""
    with pytest.raises(InputError) as caught:
        parse_registry(text, "registry.toml")

    assert words in str(caught.value)


def test_a_registry_is_read_as_it_stands():
    """One entry, its parameters typed."""
    (model,) = parse_registry(ENTRY, "registry.toml").values()

    assert model.parameters == {"k": 1}


def test_an_extractor_in_a_file_is_used_directly(write):
    """It tells the digest of its file, and is otherwise itself."""
    spec = write(EXTRACTOR)

    loaded = load(spec)

    assert loaded.model_id == "Mine"
    assert loaded.extractor.name == "mine"
    assert type(loaded.extractor).__name__ == "Mine"
    assert hashlib.sha256(EXTRACTOR.encode()).hexdigest() == loaded.extractor.describe().file
    np.testing.assert_array_equal([[4, 2]], loaded.extractor.embed(["ACGG"]))


def test_a_changed_file_is_another_extractor(write):
    """Within one process, too: neither code nor digest is remembered."""
    load(write(EXTRACTOR))

    changed = load(write(EXTRACTOR.replace('"G"', '"C"'))).extractor

    np.testing.assert_array_equal([[4, 1]], changed.embed(["ACGG"]))
    assert load(write(EXTRACTOR)).extractor.describe().file != changed.describe().file


def test_device_and_weights_reach_a_class_that_takes_them(write):
    """And only those that it takes."""
    spec = write(
        EXTRACTOR.replace(
            "    def embed",
            "    def __init__(self, device='cpu', weights=None):\n"
            "        self.told = (device, weights)\n\n    def embed",
        )
    )

    assert load(spec, device="cuda:1", weights="w").extractor.told == ("cuda:1", "w")
    assert load(spec).extractor.told == ("cpu", None)


def test_a_file_cannot_take_a_built_in_name(write):
    """Whatever the case, for file systems that do not tell it apart."""
    with pytest.raises(InputError, match="name of a built-in model"):
        load(write(EXTRACTOR.replace("Mine", "Kmer6"), "Kmer6"))


@pytest.mark.parametrize("name", ["kmer6", "Kmer6", "ONEHOT128"])
def test_a_file_cannot_be_given_a_built_in_name(write, name):
    """Not by ``--model-id`` either."""
    with pytest.raises(InputError, match="name of a built-in model"):
        named(load(write(EXTRACTOR)), name)


def test_a_file_s_class_is_named_by_its_user(write):
    """Its own name where nothing is said; a name that cannot be one is refused."""
    loaded = load(write(EXTRACTOR))

    assert named(loaded, None) == "Mine"
    assert named(loaded, "my-model") == "my-model"
    with pytest.raises(InputError, match="name of a model"):
        named(loaded, "../x")


def test_a_built_in_model_keeps_its_name():
    """``--model-id`` is for extractors of one's own."""
    assert named(load("kmer4"), "kmer4") == named(load("kmer4"), None) == "kmer4"
    with pytest.raises(InputError, match="keeps its name") as caught:
        named(load("kmer4"), "other")

    assert caught.value.found == "other"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('name = "mine"', ""), "has no name"),
        (('name = "mine"', 'name = "mine"; max_length = 0'), "max_length"),
        (('name = "mine"', 'name = "mine"; max_length = "512"'), "max_length"),
        (("    def embed", "    def __init__(self): exit()\n    def embed"), "SystemExit"),
        (("    def embed", "    def describe(self): exit()\n    def embed"), "SystemExit"),
        (('name = "mine"', 'name = "../mine"'), "name of a model family"),
        (('name = "mine"', 'name = "mine"; numerics_version = "2"'), "numerics_version"),
        (('name = "mine"', 'name = "mine"; batching = "sorted"'), "batching"),
        (("def embed", "def embedd"), "abstract method"),
        (("    def embed", "    def __init__(self, k): ...\n    def embed"), "argument: 'k'"),
        (
            ("    def embed", "    def describe(self): return {}\n    def embed"),
            "could not be constructed or described",
        ),
    ],
)
def test_a_faulty_extractor_class_is_refused(write, change, words):
    """Before anything is started."""
    with pytest.raises(InputError) as caught:
        load(write(EXTRACTOR.replace(*change)))

    assert words in str(caught.value)


def test_a_constructor_s_failure_names_its_line(write):
    """The user's own file and line, and the message."""
    source = EXTRACTOR.replace(
        "    def embed", "    def __init__(self):\n        self.n = 1 / 0\n\n    def embed"
    )

    with pytest.raises(InputError) as caught:
        load(write(source))

    line = source.splitlines().index("        self.n = 1 / 0") + 1
    assert f"ZeroDivisionError: division by zero (line {line} of mine.py)" == caught.value.found


def test_a_spec_is_all_that_another_process_needs(write):
    """A new process loads the same numbers from the same string."""
    spec = write(EXTRACTOR)
    code = (
        "import sys; from geneb.extractors.registry import load;"
        "print(load(sys.argv[1]).extractor.embed(['GGA']).tolist())"
    )

    done = subprocess.run(
        [sys.executable, "-c", code, spec], capture_output=True, text=True, check=True
    )

    assert done.stdout == "[[3.0, 2.0]]\n"


def test_nothing_is_left_beside_the_file(write, tmp_path):
    """No __pycache__ in a folder that may be read-only, or somebody else's."""
    load(write(EXTRACTOR))

    assert [path.name for path in tmp_path.iterdir()] == ["mine.py"]


def test_a_linked_file_is_followed(write, tmp_path):
    """The user named it."""
    write(EXTRACTOR)
    (tmp_path / "link.py").symlink_to(tmp_path / "mine.py")

    assert load(f"{tmp_path / 'link.py'}:Mine").model_id == "Mine"


@pytest.mark.parametrize("spec", ["mine.py", "mine:Mine", "mine.py:", "mine.txt:Mine", "m.py:a b"])
def test_a_malformed_spec_is_refused(spec):
    """The message shows the form."""
    with pytest.raises(InputError) as caught:
        load(spec)

    assert caught.value.expected == "path/to/file.py:ClassName"


def test_a_missing_file_is_named():
    """As a file that is not found."""
    with pytest.raises(NotFoundError, match="no such file"):
        load("nowhere/mine.py:Mine")


def test_a_folder_is_no_file(tmp_path):
    """Whatever its name."""
    (tmp_path / "mine.py").mkdir()

    with pytest.raises(InputError):
        load(f"{tmp_path / 'mine.py'}:Mine")


def test_the_package_of_user_files_offers_no_neighbours(write, tmp_path):
    """One file is one digest: what stands beside it is not imported."""
    shutil.copy(__file__, tmp_path / "helpers.py")

    with pytest.raises(InputError) as caught:
        load(write("from .helpers import anything\n" + EXTRACTOR))

    assert "one file" in caught.value.fix

"""CI-SpliceAI: published numbers, padding that does not leak, and weights from strangers."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from support import graphdef_writer as write
from support.cispliceai_graph import CHANNELS, constants
from support.command import check_mistake, geneb

from geneb.base.canonical import file_sha256
from geneb.errors import InputError, NotFoundError
from geneb.extractors import cispliceai
from geneb.extractors.base import LAST, Batch
from geneb.extractors.cispliceai import (
    GRAPH_IN_WHEEL,
    GRAPH_NAME,
    CISpliceAIExtractor,
    CISpliceAINetwork,
    read_graph,
)
from geneb.extractors.options import ModelOptions
from geneb.testing.extractors import ExtractorContract, bases

KERNEL = "model_1/conv1d_7/conv1d/ExpandDims_1/ReadVariableOp/resource"
NORM = "model_1/batch_normalization_5/batchnorm"


def load(path: Path, networks: int = 1, **told) -> CISpliceAIExtractor:
    return CISpliceAIExtractor(path, ModelOptions(**told), networks=networks)


def write_graph(path: Path, networks: int = 5, **changes) -> Path:
    """A graph file; of each change, None takes a constant out."""
    found = {**constants(networks), **changes}
    path.write_bytes(write.graph({name: one for name, one in found.items() if one is not None}))
    return path


def write_wheel(path: Path, name: str = GRAPH_IN_WHEEL, content: bytes = b"graph") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr("cispliceai/__init__.py", "raise SystemExit('this is never run')")
        wheel.writestr(name, content)
    return path


@pytest.fixture(scope="module")
def graph(tmp_path_factory) -> Path:
    """A graph of five networks with random numbers."""
    return write_graph(tmp_path_factory.mktemp("cispliceai") / GRAPH_NAME)


@pytest.fixture(scope="module")
def published() -> Path:
    """The wheel that was published; it is not among the project's own files."""
    told = os.environ.get("GENEB_CISPLICEAI")
    data = Path(os.environ.get("GENEB_TEST_DATA", Path(__file__).parents[3] / "shared" / "data"))
    found = [Path(told)] if told else sorted((data / "weights").glob("cispliceai*.whl"))
    if not found or not found[0].exists():
        pytest.skip(
            "the wheel cispliceai==1.2.2 is not here; name it in GENEB_CISPLICEAI, or put it into "
            "the folder weights of GENEB_TEST_DATA"
        )
    return found[0]


class TestCISpliceAIContract(ExtractorContract):
    """Rows of all lengths meet in one batch, and none is changed by it."""

    layers = (LAST, "0", "2")

    @pytest.fixture(autouse=True)
    def _graph(self, graph):
        self.graph = graph

    def make(self):
        return load(self.graph)

    def variants(self):
        return (load(self.graph, networks=2), load(self.graph, layer="1"))


# The published numbers.


def test_the_published_network_gives_its_golden_numbers(published, root) -> None:
    """The first four numbers and the norm of one vector, which were written down to 4 places."""
    golden = json.loads((root / "tests" / "golden" / "cispliceai.json").read_text("utf-8"))
    extractor = load(published, networks=5)

    vector = extractor.embed([golden["unit"] * golden["repeats"]])[0]

    assert golden["graph_sha256"] == extractor.describe().weights
    assert vector.shape == (5 * CHANNELS,)
    np.testing.assert_allclose(vector[:4], golden["first"], rtol=0, atol=2e-4)
    assert golden["norm"] == pytest.approx(np.linalg.norm(vector[:CHANNELS]), abs=2e-3)


def test_published_weights_keep_rows_apart(published) -> None:
    """With real weights too, whose biases are large, padding does not leak into a row."""
    extractor = load(published)
    items = extractor.prepare([bases(length, seed=length) for length in (40, 300, 77)])

    together = extractor.forward(Batch(items, 512), (LAST,))[LAST]

    for item, vector in zip(items, together, strict=True):
        alone = extractor.forward(Batch([item], item.length), (LAST,))[LAST][0]
        # 1e-5 of the row's root mean square, as the contract has it.
        assert np.abs(alone - vector).max() <= 1e-5 * np.sqrt(np.mean(alone**2))


# The network.


def test_the_network_is_what_its_description_says(graph) -> None:
    """A plain loop over the constants, with NumPy alone, gives the same vector."""
    sequence = bases(31, seed=1)

    vector = load(graph, networks=2).embed([sequence])[0]

    expected = np.concatenate([_plain(sequence, constants(2), name) for name in ("", "_1")])
    # Sums of some hundred products in float32 against float64.
    np.testing.assert_allclose(vector, expected, rtol=2e-4, atol=2e-4)


def test_the_networks_have_the_published_size() -> None:
    """696,739 trained numbers each: the published count; 99 of them are the head, left out."""
    with torch.device("meta"):
        network = CISpliceAINetwork(1)
    statistics = sum(
        tensor.numel()
        for name, tensor in network.state_dict().items()
        if name.endswith((".mean", ".variance"))
    )
    head = 3 * CHANNELS + 3

    assert sum(one.numel() for one in network.parameters()) - statistics + head == 696_739


def test_joined_networks_stand_side_by_side(graph) -> None:
    """Each network's 32 numbers are the same whatever it is joined with."""
    sequence = [bases(60, seed=3)]

    one, five = load(graph).embed(sequence), load(graph, networks=5).embed(sequence)

    assert five.shape == (1, 5 * CHANNELS)
    assert one.tobytes() == five[:, :CHANNELS].tobytes()
    assert len({five[0, start : start + CHANNELS].tobytes() for start in range(0, 160, 32)}) == 5


def test_letters(graph) -> None:
    """Lower case is upper case; N, U and whatever else are alike, and are not padding's length."""
    lower, upper, unknown, uracil, shorter = load(graph).embed(
        ["acgtacgtac", "ACGTACGTAC", "ACGTNCGTAC", "ACGTUCGTAC", "ACGTACGTA"]
    )

    assert upper.tobytes() == lower.tobytes()
    assert unknown.tobytes() == uracil.tobytes()
    assert not np.allclose(upper, unknown)
    assert not np.allclose(upper, shorter)


def test_half_precision_is_near(graph) -> None:
    """In bfloat16 the vectors are those of float32 to two digits, and float32 all the same."""
    sequence = [bases(90, seed=5)]

    full, half = load(graph).embed(sequence), load(graph, dtype="bfloat16").embed(sequence)

    assert np.float32 == half.dtype
    # bfloat16 keeps 8 bits, and errors add up over 33 convolutions.
    assert np.linalg.norm(full - half) <= 0.05 * np.linalg.norm(full)
    assert not np.array_equal(full, half)


# Weights.


def test_the_wheel_the_graph_and_a_folder_are_the_same_model(graph, tmp_path) -> None:
    """What is described is the graph's content, wherever it was found."""
    folder = tmp_path / "folder"
    folder.mkdir()
    wheel = write_wheel(folder / "cispliceai-1.2.2-py3-none-any.whl", content=graph.read_bytes())

    described = [load(path).describe() for path in (graph, graph.parent, wheel, folder)]

    assert all(one == described[0] for one in described)
    assert file_sha256(graph) == described[0].weights


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({KERNEL: None}, ("missing: networks.0.units.2.convolutions.0.weight",)),
        ({f"{NORM}/mul/ReadVariableOp/resource": None}, ("missing: networks.0.units.2.norms.0",)),
        ({KERNEL: np.ones((11, 32, 31))}, ("of another shape", "units.2.convolutions.0.weight")),
        ({"model_1/dense/kernel": np.ones(3)}, ("not expected: model_1/dense/kernel",)),
        ({"model_1/conv1d_0/BiasAdd/ReadVariableOp/resource": np.ones(32)}, ("not expected",)),
        ({f"{NORM}/add/y": np.float32(1e-5)}, ("another epsilon", f"{NORM}/add/y")),
    ],
)
def test_other_constants_are_refused_by_name(tmp_path, changes, words) -> None:
    """A constant that is missing, in excess, misshapen or another is named."""
    path = write_graph(tmp_path / GRAPH_NAME, networks=1, **changes)

    with pytest.raises(InputError) as caught:
        load(path)

    assert [word for word in words if word not in str(caught.value)] == []


def test_networks_that_are_not_there_are_missing(tmp_path) -> None:
    """A graph of one network does not make two."""
    path = write_graph(tmp_path / GRAPH_NAME, networks=1)

    with pytest.raises(InputError, match=r"missing: networks\.1\.skips"):
        load(path, networks=2)


@pytest.mark.parametrize("networks", [0, 6])
def test_there_are_five_networks(graph, networks) -> None:
    """No other number can be joined."""
    with pytest.raises(InputError, match="five networks"):
        load(graph, networks=networks)


def test_wheels_of_strangers(tmp_path, monkeypatch) -> None:
    """No wheel, one without the graph, and one that would grow beyond bounds are refused."""
    broken = tmp_path / "broken.whl"
    broken.write_bytes(b"PK\x03\x04 and no more")
    other = write_wheel(tmp_path / "other.whl", name=f"../{GRAPH_NAME}")
    bomb = write_wheel(tmp_path / "bomb.whl", content=b"\0" * 200_000)
    monkeypatch.setattr(cispliceai, "_MAX_GRAPH_BYTES", 100_000)

    assert bomb.stat().st_size < 1000
    with pytest.raises(InputError, match="cannot be read as a wheel"):
        read_graph(broken)
    with pytest.raises(NotFoundError, match="does not hold the weights"):
        read_graph(other)
    with pytest.raises(InputError, match="too large"):
        read_graph(bomb)


def test_a_damaged_wheel_is_refused(tmp_path) -> None:
    """A flipped byte within the graph is found by the archive's checksum."""
    wheel = write_wheel(tmp_path / "cispliceai.whl", content=bytes(range(256)) * 20)
    data = bytearray(wheel.read_bytes())
    data[data.index(GRAPH_IN_WHEEL.encode()) + len(GRAPH_IN_WHEEL) + 30] ^= 0xFF
    wheel.write_bytes(data)

    with pytest.raises(InputError, match="cannot be read as a wheel"):
        read_graph(wheel)


def test_wheels_with_very_many_entries_are_refused(tmp_path, monkeypatch) -> None:
    """The number of entries has a limit."""
    monkeypatch.setattr(cispliceai, "_MAX_WHEEL_ENTRIES", 1)

    with pytest.raises(InputError, match="too many entries"):
        read_graph(write_wheel(tmp_path / "many.whl"))


def test_a_folder_without_weights_says_what_to_get(tmp_path, demo_data) -> None:
    """On the command line: one message, with the command that gets the weights."""
    outcome = geneb(
        "embed", "--model", "ci-spliceai-1", "--weights", tmp_path, "--data", demo_data,
        "--store", tmp_path / "x.zarr", "--available",
    )  # fmt: skip

    check_mistake(outcome, "no weights of CI-SpliceAI", "pip download --no-deps cispliceai==1.2.2")


def _plain(sequence: str, found: dict[str, np.ndarray], suffix: str) -> np.ndarray:
    """The mean of the summed skips, in float64, from the description of the network."""

    def convolve(layer: int, hidden: np.ndarray, dilation: int = 1) -> np.ndarray:
        name = f"model_1/conv1d_{layer}"
        kernel = found[f"{name}/conv1d{suffix}/ExpandDims_1/ReadVariableOp/resource"]
        half = (len(kernel) - 1) // 2 * dilation
        padded = np.pad(hidden, ((half, half), (0, 0)))
        taps = [
            padded[tap * dilation : tap * dilation + len(hidden)] @ kernel[tap]
            for tap in range(len(kernel))
        ]
        return sum(taps) + found[f"{name}/BiasAdd{suffix}/ReadVariableOp/resource"]

    def normalise(layer: int, hidden: np.ndarray) -> np.ndarray:
        name = f"model_1/batch_normalization_{layer}/batchnorm{suffix}"
        variance, scale, mean, shift = (
            found[f"{name}/{part}/resource"]
            for part in (
                "ReadVariableOp",
                "mul/ReadVariableOp",
                "ReadVariableOp_1",
                "ReadVariableOp_2",
            )
        )
        return (hidden - mean) / np.sqrt(variance + 1e-3) * scale + shift

    hidden = convolve(1, np.eye(4)[["ACGT".index(letter) for letter in sequence]])
    total = convolve(2, hidden)
    layer = norm = 0
    for group, dilation in enumerate((1, 4, 10, 25)):
        layer = 3 + 9 * group
        for _ in range(4):
            inner = hidden
            for _ in range(2):
                norm += 1
                inner = convolve(layer, np.maximum(normalise(norm, inner), 0), dilation)
                layer += 1
            hidden = hidden + inner
        total = total + convolve(layer, hidden)
    return total.mean(axis=0)

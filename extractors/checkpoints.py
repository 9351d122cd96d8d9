"""Reading published weights: strict about every tensor, and without running anybody's code.

Weights are safetensors, or torch files that are read with ``weights_only=True``; whole, or in
shards that an index names.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from geneb.base.cache import remembered_sha256
from geneb.base.canonical import digest
from geneb.base.files import check_name, read_json
from geneb.errors import InputError, NotFoundError

CONFIG = "config.json"
_WHOLE = ("model.safetensors", "pytorch_model.bin", "pytorch_model.pt")
_INDEXES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
_SHOWN = 8


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

    def config(self) -> dict[str, Any]:
        """Return what ``config.json`` says."""
        # What lies in the hub's cache is a folder of links.
        config = read_json((self.folder / CONFIG).resolve(), repeats=True)
        if not isinstance(config, dict):
            raise InputError("this is not a configuration", where=str(self.folder / CONFIG))
        return config

    def sha256(self) -> str:
        """Return the digest of the weights' files and of the configuration, by their names."""
        described = [*self.files, *(path for path in (self.folder / CONFIG,) if path.is_file())]
        return digest({path.name: remembered_sha256(path) for path in described})

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
        found = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except Exception as error:  # both libraries raise a dozen kinds for what is wrong in a file
        raise InputError(
            "this file cannot be read as weights",
            where=str(path),
            expected="safetensors, or a torch file that holds nothing but tensors",
            found=f"{type(error).__name__}: {str(error)[:300]}",
        ) from error
    # Training frameworks put the weights beside other things, under this name.
    if isinstance(found, Mapping) and isinstance(found.get("state_dict"), Mapping):
        found = found["state_dict"]
    if not isinstance(found, Mapping) or not all(
        isinstance(tensor, torch.Tensor) for tensor in found.values()
    ):
        raise InputError(
            "this file holds something else than weights",
            where=str(path),
            expected="a mapping of names to tensors",
        )
    return dict(found)


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
        If a tensor is missing, unexpected or of another shape; the message lists them.
    """
    expected = {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}
    found = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    faults = [
        ("missing", expected.keys() - found.keys()),
        ("not expected", found.keys() - expected.keys()),
        (
            "of another shape",
            {
                f"{name} {found[name]} instead of {expected[name]}"
                for name in expected.keys() & found.keys()
                if expected[name] != found[name]
            },
        ),
    ]
    if any(names for _, names in faults):
        raise InputError(
            "these weights do not fit the model",
            where=where,
            expected=f"{len(expected):,} tensors",
            found="; ".join(f"{kind}: {_listed(names)}" for kind, names in faults if names),
            fix="take the weights of this model at the revision that `geneb model show` names",
        )
    module.load_state_dict(
        {
            name: tensor.to(dtype) if tensor.is_floating_point() else tensor
            for name, tensor in tensors.items()
        },
        assign=True,
    )
    _check_filled(module, where)
    for name, buffer in module.named_buffers():
        if buffer.is_floating_point() and name in expected:
            buffer.data = buffer.data.to(dtype)
    module.requires_grad_(requires_grad=False)
    module.eval()


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
            raise InputError("two tensors stand for the same one", where=where, found=name)
        result[new] = tensor
    return result


@contextlib.contextmanager
def parameters_on_meta() -> Iterator[None]:
    """Build networks whose parameters have no memory yet; buffers are computed as always.

    Buffers that are in no checkpoint, such as the frequencies of rotary positions, then hold what
    their constructor computes, which building the whole network on torch's meta device and
    filling it later would lose.
    """
    register = nn.Module.register_parameter

    def register_on_meta(self: nn.Module, name: str, param: nn.Parameter | None) -> None:
        if param is not None:
            param = nn.Parameter(param.to("meta"), requires_grad=param.requires_grad)
        register(self, name, param)

    nn.Module.register_parameter = register_on_meta
    try:
        yield
    finally:
        nn.Module.register_parameter = register


def _weight_files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise NotFoundError("there is no such folder of weights", where=str(folder))
    for name in _WHOLE:
        if (folder / name).is_file():
            return [folder / name]
    for name in _INDEXES:
        if (folder / name).is_file():
            return [folder / shard for shard in _shards(folder / name)]
    raise NotFoundError(
        "there are no weights in this folder",
        where=str(folder),
        expected=", ".join((*_WHOLE, *_INDEXES)),
    )


def _shards(index: Path) -> list[str]:
    content = read_json(index.resolve())
    names = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
        raise InputError("this is not an index of weights", where=str(index))
    # A name from a stranger's file becomes a path.
    return [check_name(name, "file of weights") for name in sorted(set(names.values()))]


def _listed(names: set[str]) -> str:
    shown = sorted(names)[:_SHOWN]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(shown) + more

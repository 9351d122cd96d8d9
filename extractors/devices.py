"""Where a model can run."""

from __future__ import annotations

from dataclasses import dataclass

from geneb.base.env import free_memory_bytes, importable, memory_bytes, processor
from geneb.base.text import plain
from geneb.errors import InputError

AUTO = "auto"
CPU = "cpu"


@dataclass(frozen=True)
class Device:
    """One place where a model can run.

    Attributes
    ----------
    name
        What ``--device`` takes: ``cpu``, ``cuda:0``, ``mps``.
    description
        What it is.
    memory_bytes
        How much memory it has; None where it does not say.
    """

    name: str
    description: str
    memory_bytes: int | None = None


def available_devices() -> list[Device]:
    """Return the devices of this machine: the CPU, and what torch sees where it is installed.

    Raises
    ------
    ImportError, OSError
        If torch is installed and cannot be imported.
    """
    devices = [Device(CPU, processor(), memory_bytes())]
    if importable("torch"):
        devices += _torch_devices()
    return devices


def _torch_devices() -> list[Device]:
    import torch

    devices = []
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        devices.append(Device(f"cuda:{index}", properties.name, properties.total_memory))
    if torch.backends.mps.is_available():
        devices.append(Device("mps", "Apple GPU, memory shared with the CPU"))
    return devices


def best_device() -> str:
    """Return what ``auto`` stands for: a CUDA device, else Apple's GPU, else the CPU."""
    if not importable("torch"):
        return CPU
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else CPU


def check_device(name: str) -> None:
    """Make sure that a network can be moved to a device.

    Raises
    ------
    InputError
        If this machine has no such device.
    """
    if name == CPU:
        return
    there = [device.name for device in available_devices()]
    if name not in there and not (name == "cuda" and "cuda:0" in there):
        raise InputError(
            "there is no such device on this machine",
            where="device",
            expected=", ".join([AUTO, *there]),
            found=plain(name, limit=80),
        )


def free_memory(name: str) -> int:
    """Return how many bytes are free on a device; on those that share it, the machine's."""
    if name.startswith("cuda"):
        import torch

        return torch.cuda.mem_get_info(torch.device(name))[0]
    return free_memory_bytes()

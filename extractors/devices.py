"""Where a model can run."""

from __future__ import annotations

from dataclasses import dataclass

from geneb.base.env import importable, memory_bytes, processor


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
    devices = [Device("cpu", processor(), memory_bytes())]
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

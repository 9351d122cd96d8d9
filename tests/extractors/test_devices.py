"""Where a model runs: what ``auto`` comes to, and devices that are not there."""

from __future__ import annotations

import pytest

from geneb.base.env import free_memory_bytes, memory_bytes
from geneb.errors import InputError
from geneb.extractors import devices, registry
from geneb.extractors.devices import Device, best_device, check_device, free_memory
from geneb.extractors.options import ModelOptions
from geneb.extractors.registry import load

PLACED = """
from geneb.extractors.base import Description, SimpleExtractor

class Placed(SimpleExtractor):
    name = "placed"

    def __init__(self, device="nowhere"):
        self.device = device

    def embed(self, sequences):
        raise NotImplementedError

class Unplaced(Placed):
    def __init__(self):
        super().__init__("wherever")
"""


@pytest.fixture
def placed(tmp_path):
    """A file with a class that can be told its device, and one that cannot."""
    (tmp_path / "placed.py").write_text(PLACED, encoding="utf-8")
    return str(tmp_path / "placed.py")


@pytest.mark.parametrize(
    ("cuda", "mps", "expected"),
    [(True, False, "cuda"), (False, True, "mps"), (False, False, "cpu")],
)
def test_auto_is_the_best_that_there_is(monkeypatch, cuda, mps, expected):
    """A CUDA device before Apple's GPU before the CPU."""
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)

    assert best_device() == expected


def test_without_torch_auto_is_the_cpu(monkeypatch):
    """Classes of one's own may take a device and need no torch."""
    monkeypatch.setattr(devices, "importable", lambda _: False)

    assert best_device() == "cpu"


def test_a_class_is_told_what_auto_came_to(monkeypatch, placed):
    """One that can be told gets the device, the other is not asked about."""
    monkeypatch.setattr(registry, "best_device", lambda: "cuda")

    told, untold = (load(f"{placed}:{name}", device="auto") for name in ("Placed", "Unplaced"))

    assert (told.extractor.device, told.device) == ("cuda", "cuda")
    assert (untold.extractor.device, untold.device) == ("wherever", "cpu")


def test_nobody_looks_for_a_gpu_that_is_of_no_use(monkeypatch):
    """k-mers are counted on the CPU."""
    monkeypatch.setattr(registry, "best_device", lambda: pytest.fail("asked"))

    assert load("kmer3", device="auto").device == "cpu"


@pytest.mark.parametrize("name", ["cuda", "cuda:1", "mps", "tpu", "cuda:x", ""])
def test_a_device_that_is_not_there_is_refused(monkeypatch, name):
    """With those that are."""
    monkeypatch.setattr(devices, "_torch_devices", list)

    with pytest.raises(InputError, match="no such device") as caught:
        check_device(name)

    assert caught.value.expected == "auto, cpu"


def test_a_device_that_is_there_passes(monkeypatch):
    """By its number; the first one also without."""
    monkeypatch.setattr(devices, "_torch_devices", lambda: [Device("cuda:0", "a GPU")])

    for name in ("cpu", "cuda", "cuda:0"):
        check_device(name)


def test_options_of_a_model_run_on_the_cpu_by_themselves():
    """Only embedding asks for the best device."""
    assert ModelOptions().device == "cpu"


def test_memory_is_free_within_what_there_is():
    """The machine's, for everything that shares it."""
    assert 0 < free_memory_bytes() <= memory_bytes()
    assert 0 < free_memory("cpu") <= memory_bytes()

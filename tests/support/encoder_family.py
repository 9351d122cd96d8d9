"""What every family on our own encoder must do, as tests to subclass; a reference's figures."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from geneb.errors import InputError
from geneb.extractors.checkpoints import Checkpoint
from geneb.extractors.configs import Config
from geneb.extractors.encoder import Encoder, EncoderDesign
from geneb.extractors.options import ModelOptions
from geneb.extractors.registry import load, models
from geneb.extractors.torch_extractor import TorchExtractor
from support.encoder_checkpoints import Shapes, seeded_tensors
from support.family import NativeFamily, assert_full_size
from support.native_checkpoint import write_checkpoint

SEED = 5
# What a published file has beyond its numbers: the name, shape and place of each tensor. 110 to
# 430 bytes each were found, safetensors being the shorter.
_BYTES_A_TENSOR = 450
_BYTES_A_NUMBER = 4


class EncoderFamily(NativeFamily):
    """The contract, strictness, layers, pooling and limits, and the registry's entries.

    What `NativeFamily` compares with are here the network's own hidden states, unpadded; they are
    compared with those of the reference implementation by `assert_as_reference`.

    Attributes
    ----------
    published_shapes
        The names and shapes of the published file, for a configuration.
    model_ids
        The models of the registry that the family runs with these parameters.
    another
        What a configuration of another model says.
    """

    published_shapes: ClassVar[Callable[[Mapping[str, Any]], Shapes]]
    model_ids: ClassVar[tuple[str, ...]]
    another: ClassVar[Mapping[str, Any]] = {"model_type": "t5"}

    @classmethod
    def registered(cls):
        return cls.model_ids

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def checkpoint(cls, tmp_path_factory):
        cls.folder = tmp_path_factory.mktemp(cls.__name__)
        tensors = seeded_tensors(cls.published_shapes(cls.config), SEED)
        write_checkpoint(cls.folder, cls.config, tensors, torch_file=cls.torch_file)
        cls.write_tokenizer(cls.folder)

    def hidden_states(self, item) -> list[np.ndarray]:
        network = self.make().network
        return [state.numpy() for state in hidden_states(network, item.payload.tolist())]

    def test_the_configuration_of_another_model_is_refused(self, tmp_path):
        """Whatever loads must be the model that the registry means."""
        write_checkpoint(tmp_path, {**self.config, **self.another}, self.tensors())
        self.write_tokenizer(tmp_path)

        with pytest.raises(InputError, match="the configuration of another model"):
            self.family(tmp_path, ModelOptions(), **self.parameters)

    def test_its_models_load_from_the_registry(self):
        """By their ids, with the parameters that stand there."""
        for model_id in self.model_ids:
            extractor = load(model_id, weights=str(self.folder)).extractor

            assert type(extractor) is self.family
            told = models()[model_id].parameters
            assert extractor.max_length == told.get("limit")
            assert extractor.pooling == told.get("pooling", "mean")


def hidden_states(network: Encoder, ids: list[int]) -> list[torch.Tensor]:
    """Return all hidden states of one row, without padding."""
    with torch.inference_mode():
        found = network(
            torch.tensor([ids]),
            torch.ones(1, len(ids), dtype=torch.bool),
            range(network.layers + 1),
        )
    return [found[number][0] for number in sorted(found)]


def golden(root: Path, name: str) -> dict[str, Any]:
    """Return figures of a reference implementation."""
    return json.loads((root / "tests" / "golden" / f"{name}.json").read_text(encoding="utf-8"))


def seeded_folder(
    folder: Path, figures: Mapping[str, Any], shapes: Callable[..., Shapes], seed: int
) -> Path:
    """Write the checkpoint that the figures were made with."""
    write_checkpoint(folder, figures["config"], seeded_tensors(shapes(figures["config"]), seed))
    return folder


def assert_as_reference(extractor: TorchExtractor, figures: Mapping[str, Any]) -> None:
    """Compare hidden states, behind two places of padding, with those of the reference."""
    assert figures["cases"]
    for case in figures["cases"]:
        ids = torch.tensor([[*case["ids"], extractor.tokenizer.pad, extractor.tokenizer.pad]])
        inside = torch.arange(ids.shape[1])[None] < len(case["ids"])
        wanted = sorted(int(number) for number in case["layers"])
        with torch.inference_mode():
            found = extractor.network(ids, inside, wanted)
        for number in wanted:
            expected = case["layers"][str(number)]
            # Float32 in another order of sums, on numbers of about 1.
            np.testing.assert_allclose(
                found[number][0].numpy()[expected["places"]],
                np.array(expected["vectors"], dtype=np.float32),
                rtol=0,
                atol=1e-5,
            )


def assert_published_size(
    folder: Path,
    config: Mapping[str, Any],
    shapes: Shapes,
    file_bytes: int,
    *,
    read_design: Callable[[Config], EncoderDesign],
    own_name: Callable[[str], str | None],
    shared: tuple[str, ...] = (),
) -> int:
    """Build a published configuration without memory: its tensors are those of the published file.

    Parameters
    ----------
    shapes
        Of the published file.
    file_bytes
        Its size, which says how many numbers are in it.
    shared
        Tensors that the file holds once for two names.

    Returns
    -------
    int
        The encoder's parameters.
    """
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(dict(config)), encoding="utf-8")
    (folder / "model.safetensors").touch()
    design = read_design(Config(Checkpoint(folder)))

    assert_full_size(lambda: Encoder(design), shapes, own_name, _numbers(shapes))
    held = {name: shape for name, shape in shapes.items() if name not in shared}
    beyond = file_bytes - _BYTES_A_NUMBER * _numbers(held)
    assert 0 < beyond < _BYTES_A_TENSOR * len(shapes)
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in Encoder(design).parameters())


def _numbers(shapes: Shapes) -> int:
    return sum(int(np.prod(shape)) for shape in shapes.values())

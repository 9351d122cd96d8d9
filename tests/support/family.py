"""What every family that is run by a class of Transformers must do, as tests to subclass."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from geneb.errors import InputError
from geneb.extractors.base import LAST, Batch
from geneb.extractors.options import ModelOptions
from geneb.extractors.torch_extractor import TorchExtractor
from geneb.testing import ExtractorContract
from geneb.testing.extractors import bases
from support.command_line import FromTheCommandLine
from support.native_checkpoint import write_checkpoint


class NativeFamily(FromTheCommandLine, ExtractorContract):
    """The contract, and: strictness, parity with Transformers, layers, pooling, limits.

    Attributes
    ----------
    family
        The extractor's class.
    parameters
        What the registry would construct it with.
    config
        ``config.json``, in the published form.
    torch_file
        Whether the published weights are a torch file.
    """

    family: ClassVar[type[TorchExtractor]]
    parameters: ClassVar[Mapping[str, Any]] = {}
    config: ClassVar[Mapping[str, Any]]
    torch_file: ClassVar[bool] = False
    folder: Path

    # What a subclass says.

    @classmethod
    def reference(cls) -> torch.nn.Module:
        """Return Transformers' own model with its head, in evaluation mode."""
        raise NotImplementedError

    @classmethod
    def write_tokenizer(cls, folder: Path) -> None:
        """Write the tokenizer's files, where there are any."""

    @classmethod
    def published(cls, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return the reference's tensors as they were published."""
        return tensors

    # The rest is the same for all.

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def checkpoint(cls, tmp_path_factory):
        cls.folder = tmp_path_factory.mktemp(cls.__name__)
        tensors = cls.published(dict(cls.reference().state_dict()))
        write_checkpoint(cls.folder, cls.config, tensors, torch_file=cls.torch_file)
        cls.write_tokenizer(cls.folder)

    def make(self, **told: Any) -> TorchExtractor:
        return self.family(self.folder, ModelOptions(**told), **self.parameters)

    def hidden_states(self, item) -> list[np.ndarray]:
        """Return the reference's hidden states of one unpadded row, each (tokens, dim)."""
        with torch.inference_mode():
            output = self.reference()(
                input_ids=torch.from_numpy(item.payload)[None], output_hidden_states=True
            )
        return [state[0].numpy() for state in output.hidden_states]

    def tensors(self) -> dict[str, torch.Tensor]:
        if self.torch_file:
            return torch.load(self.folder / "pytorch_model.bin", weights_only=True)
        return load_file(self.folder / "model.safetensors")

    def altered(self, folder: Path, tensors: dict[str, torch.Tensor]) -> TorchExtractor:
        """Return an extractor of other weights."""
        write_checkpoint(folder, self.config, tensors, torch_file=self.torch_file)
        self.write_tokenizer(folder)
        return self.family(folder, ModelOptions(), **self.parameters)

    @pytest.mark.parametrize("seed", range(3))
    def test_every_layer_is_what_transformers_gives(self, seed):
        """A single row without padding: the masked mean of each hidden state, from 0 to last."""
        model = self.make()
        (item,) = model.prepare([bases(60 + seed, seed)])
        names = [str(number) for number in range(model.layer_count)]

        found = model.forward(Batch([item], item.length), [*names, LAST])

        states = self.hidden_states(item)
        assert len(states) == model.layer_count
        for name, state in zip(names, states, strict=True):
            # The same class on the same numbers; how many rows it looks at may change its sums.
            np.testing.assert_allclose(found[name][0], state.mean(axis=0), rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(found[names[-1]], found[LAST])

    def test_pooling_can_be_chosen(self):
        """``last`` and ``max`` are those of the hidden state, whatever the padding is."""
        sequence = bases(64, seed=8)
        (item,) = self.make().prepare([sequence])
        state = self.hidden_states(item)[-1]

        for pooling, expected in (("last", state[-1]), ("max", state.max(axis=0))):
            model = self.make(pooling=pooling)
            items = model.prepare([sequence])
            width = min(item.length + 3, model.max_length or item.length + 3)
            found = model.forward(Batch(items, width), (LAST,))[LAST][0]
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)

    def test_sequences_tell_apart(self):
        """A constant would keep the contract."""
        vectors = self.make().embed([bases(48, seed) for seed in range(4)])

        assert len(np.unique(vectors.round(3), axis=0)) == 4

    def test_a_missing_tensor_is_refused_by_name(self, tmp_path):
        tensors = self.tensors()
        name = next(name for name in tensors if ".1." in name and name.endswith("weight"))
        del tensors[name]

        with pytest.raises(InputError, match=r"missing: .*\.1\.") as caught:
            self.altered(tmp_path, tensors)
        assert "not expected" not in str(caught.value)

    def test_an_additional_tensor_is_refused_by_name(self, tmp_path):
        tensors = self.tensors() | {"a.stranger": torch.zeros(2)}

        with pytest.raises(InputError, match=r"not expected: .*a\.stranger"):
            self.altered(tmp_path, tensors)

    def test_a_misshapen_tensor_is_refused_by_name(self, tmp_path):
        tensors = self.tensors()
        name = next(name for name in tensors if ".1." in name and name.endswith("weight"))
        tensors[name] = torch.zeros(3, 5)

        with pytest.raises(InputError, match=r"of another shape: .*\.1\..*\(3, 5\) instead of"):
            self.altered(tmp_path, tensors)

    def test_weights_in_half_precision_are_run_in_float32(self, tmp_path):
        """What a checkpoint is stored in says nothing about what is computed in."""
        tensors = {
            name: tensor.bfloat16() if tensor.is_floating_point() else tensor
            for name, tensor in self.tensors().items()
        }

        model = self.altered(tmp_path, tensors)

        assert model.describe().compute_dtype == "float32"
        assert {parameter.dtype for parameter in model.network.parameters()} == {torch.float32}

    def test_bfloat16_can_be_asked_for(self):
        """The vectors are near those of float32, and float32's own can be had."""
        sequences = [bases(40, seed) for seed in range(3)]
        half = self.make(dtype="bfloat16")
        items = half.prepare(sequences)
        batch = Batch(items, max(item.length for item in items))
        expected = self.make().forward(batch, (LAST,))[LAST]

        found = half.forward(batch, (LAST,))[LAST]

        assert half.describe().compute_dtype == "bfloat16"
        # bfloat16 has 8 bits: 0.4 % a number, more after a few layers.
        np.testing.assert_allclose(found, expected, atol=0.1 * np.abs(expected).max())
        assert (found != expected).any()

    def test_the_configuration_of_another_model_is_refused(self, tmp_path):
        """Whatever loads must be the model that the registry means."""
        tensors = self.tensors()
        write_checkpoint(tmp_path, {**self.config, "model_type": "t5"}, tensors)
        self.write_tokenizer(tmp_path)

        with pytest.raises(InputError, match="the configuration of another model"):
            self.family(tmp_path, ModelOptions(), **self.parameters)

    @pytest.mark.parametrize(
        "fault", [{"num_attention_heads": 7}, {"hidden_size": "wide"}, {"num_hidden_layers": None}]
    )
    def test_a_configuration_that_makes_no_model_is_one_message(self, tmp_path, fault):
        """A stranger's file is no reason for a traceback."""
        config = {**self.config, **fault}
        write_checkpoint(tmp_path, config, self.tensors())
        self.write_tokenizer(tmp_path)

        with pytest.raises(InputError, match="configuration"):
            self.family(tmp_path, ModelOptions(), **self.parameters)

    def test_the_description_changes_with_the_weights(self, tmp_path):
        """Two checkpoints never share a store."""
        tensors = self.tensors()
        name = next(name for name in tensors if ".1." in name and name.endswith("weight"))
        tensors[name] = tensors[name] + 1

        other = self.altered(tmp_path, tensors)

        assert other.describe().weights != self.make().describe().weights
        assert other.describe().tokenizer == self.make().describe().tokenizer

    def test_config_is_the_published_form(self):
        """It is JSON, and has none of what only new versions write."""
        assert json.loads(json.dumps(self.config)) == self.config
        assert not {"rope_parameters", "dtype", "layer_types"} & self.config.keys()


class RotaryFamily(NativeFamily):
    """The same for decoders with rotary positions."""

    def test_tokens_look_back_only(self):
        """What stands behind changes no earlier hidden state: why padding needs no mask."""
        model = self.make()
        (item,) = model.prepare([bases(48, seed=1)])
        ids = torch.from_numpy(item.payload)[None]
        half, last = ids.shape[1] // 2, model.layer_count - 1

        with torch.inference_mode():
            whole = model.network(ids, torch.ones_like(ids, dtype=torch.bool), [last])[last]
            cut = model.network(ids[:, :half], torch.ones(1, half, dtype=torch.bool), [last])[last]

        # The same sums over fewer rows of a product: float32 rounding.
        torch.testing.assert_close(cut, whole[:, :half], rtol=1e-5, atol=1e-5)

    def test_padding_on_the_left_gives_the_same(self):
        """As some published extractors pad, with a mask: rotary positions are distances."""
        (item,) = self.make().prepare([bases(40, seed=5)])
        ids = torch.from_numpy(np.concatenate([np.zeros(9, np.int64), item.payload]))[None]
        mask = (torch.arange(ids.shape[1]) >= 9).long()[None]
        with torch.inference_mode():
            output = self.reference()(input_ids=ids, attention_mask=mask, output_hidden_states=True)

        found = self.make().embed([bases(40, seed=5)])[0]

        # Cosines of other angles: float32 rounding of positions, a little more than of sums.
        expected = output.hidden_states[-1][0, 9:].mean(dim=0).numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)

    def test_the_base_of_rotary_positions_is_the_configuration_s(self):
        """A new version that knows another name only would fall back to 10,000.

        That is what configurations without a base mean.
        """
        width = self.config["hidden_size"] // self.config["num_attention_heads"]
        expected = self.config.get("rope_theta", 10_000.0) ** -(np.arange(0, width, 2) / width)

        frequencies = self.make().network.model.rotary_emb.inv_freq

        np.testing.assert_allclose(frequencies.numpy(), expected, rtol=1e-6)


Shapes = dict[str, tuple[int, ...]]


def decoder_shapes(config: Mapping[str, Any]) -> Shapes:
    """Return names and shapes of a published ``LlamaForCausalLM`` or ``MistralForCausalLM``."""
    width, inner = config["hidden_size"], config["intermediate_size"]
    keys = width // config["num_attention_heads"] * config["num_key_value_heads"]
    shapes: Shapes = {
        "model.embed_tokens.weight": (config["vocab_size"], width),
        "model.norm.weight": (width,),
        "lm_head.weight": (config["vocab_size"], width),
    }
    for layer in range(config["num_hidden_layers"]):
        block = f"model.layers.{layer}"
        shapes |= {
            f"{block}.self_attn.q_proj.weight": (width, width),
            f"{block}.self_attn.k_proj.weight": (keys, width),
            f"{block}.self_attn.v_proj.weight": (keys, width),
            f"{block}.self_attn.o_proj.weight": (width, width),
            f"{block}.mlp.gate_proj.weight": (inner, width),
            f"{block}.mlp.up_proj.weight": (inner, width),
            f"{block}.mlp.down_proj.weight": (width, inner),
            f"{block}.input_layernorm.weight": (width,),
            f"{block}.post_attention_layernorm.weight": (width,),
        }
    return shapes


def assert_full_size(
    build: Callable[[], torch.nn.Module],
    published: Shapes,
    renamed: Callable[[str], str | None],
    count: int,
) -> None:
    """A network of published size has the published tensors, and they the published numbers."""
    with torch.device("meta"):
        network = build()

    own = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    assert {renamed(name): shape for name, shape in published.items() if renamed(name)} == own
    assert sum(int(np.prod(shape)) for shape in published.values()) == count

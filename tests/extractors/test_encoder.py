"""The encoder by itself: against Transformers' own classes, positions, padding, names, faults."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.encoder_family import hidden_states
from support.native_checkpoint import seeded
from transformers import BertConfig, BertModel, EsmConfig, EsmModel

from geneb.errors import InputError
from geneb.extractors.checkpoints import Checkpoint
from geneb.extractors.configs import Config
from geneb.extractors.encoder import BERT_NAMES, Encoder, EncoderDesign, alibi_slopes, renaming
from geneb.extractors.nucleotide_v2 import own_name as esm_name

POST = EncoderDesign(
    vocabulary=12,
    width=24,
    layers=3,
    heads=3,
    inner=40,
    positions="absolute",
    pre_norm=False,
    eps=1e-6,
    position_rows=64,
    type_rows=2,
)
DESIGNS = {
    "absolute": POST,
    "rotary": replace(POST, positions="rotary", pre_norm=True, final_norm=True, type_rows=0),
    "alibi": replace(POST, positions="alibi", gated=True, inner_bias=False, fused=True),
}
IDS = [1, 5, 7, 3, 11, 6, 2, 8]


def seeded_encoder(design):
    """Return an encoder with weights that are always the same."""
    return seeded(Encoder, design)


def filled(design, model, own_name):
    """Return an encoder with the weights of one of Transformers' models."""
    encoder = Encoder(design).eval()
    named = {own_name(name): tensor for name, tensor in model.state_dict().items()}
    named.pop(None, None)
    encoder.load_state_dict(named, strict=True)
    return encoder


def assert_alike(encoder, model):
    with torch.inference_mode():
        expected = model(input_ids=torch.tensor([IDS]), output_hidden_states=True).hidden_states
    found = hidden_states(encoder, IDS)
    assert len(expected) == len(found)
    for one, other in zip(expected, found, strict=True):
        # Float32 in another order of sums, on numbers of about 1.
        torch.testing.assert_close(other, one[0], rtol=0, atol=1e-5)


def test_with_norms_behind_it_is_transformers_bert():
    """Learnt positions, token types, plain feed-forward part: all hidden states."""
    config = BertConfig(
        vocab_size=12,
        hidden_size=24,
        num_hidden_layers=3,
        num_attention_heads=3,
        intermediate_size=40,
        max_position_embeddings=64,
        layer_norm_eps=1e-6,
    )
    model = seeded(lambda given: BertModel(given, add_pooling_layer=False), config)

    own_name = renaming(BERT_NAMES, prefix="", left_out=("embeddings.position_ids",))

    assert_alike(filled(POST, model, own_name), model)


def test_with_norms_in_front_and_turned_it_is_transformers_esm():
    """Rotary positions, a last norm, no norm of the embeddings: all hidden states."""
    config = EsmConfig(
        vocab_size=12,
        hidden_size=24,
        num_hidden_layers=3,
        num_attention_heads=3,
        intermediate_size=40,
        position_embedding_type="rotary",
        emb_layer_norm_before=False,
        token_dropout=False,
        pad_token_id=0,
        mask_token_id=4,
        layer_norm_eps=1e-6,
    )
    model = seeded(lambda given: EsmModel(given, add_pooling_layer=False), config)
    design = replace(DESIGNS["rotary"], embedding_norm=False)

    assert_alike(filled(design, model, lambda name: esm_name(f"esm.{name}")), model)


@pytest.mark.parametrize("positions", DESIGNS)
def test_padding_changes_no_hidden_state(positions):
    """Whatever token stands in it, and beside a longer row."""
    encoder = seeded_encoder(DESIGNS[positions])
    ids = torch.tensor([[*IDS[:5], 9, 10, 0], IDS])
    inside = torch.tensor([[True] * 5 + [False] * 3, [True] * 8])
    with torch.inference_mode():
        found = encoder(ids, inside, range(4))

    for number, expected in enumerate(hidden_states(encoder, IDS[:5])):
        torch.testing.assert_close(found[number][0, :5], expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("positions", DESIGNS)
def test_order_matters(positions):
    """Each of the three ways tells where a token stands."""
    encoder = seeded_encoder(DESIGNS[positions])
    swapped = [IDS[0], IDS[2], IDS[1], *IDS[3:]]

    straight, other = (hidden_states(encoder, ids)[-1] for ids in (IDS, swapped))

    assert (straight.mean(dim=0) - other.mean(dim=0)).abs().max() > 1e-3


def test_the_penalty_on_distance_is_the_same_in_both_directions():
    """A sequence read backwards has its hidden states backwards."""
    encoder = seeded_encoder(DESIGNS["alibi"])

    forwards = hidden_states(encoder, IDS)[-1]
    backwards = hidden_states(encoder, IDS[::-1])[-1]

    torch.testing.assert_close(forwards, backwards.flip(0), rtol=0, atol=1e-5)


def test_turning_keeps_both_directions_apart():
    """Rotary positions tell before from behind."""
    encoder = seeded_encoder(DESIGNS["rotary"])

    forwards = hidden_states(encoder, IDS)[-1]
    backwards = hidden_states(encoder, IDS[::-1])[-1]

    assert (forwards - backwards.flip(0)).abs().max() > 1e-3


@pytest.mark.parametrize(
    ("heads", "expected"),
    [
        (1, [2.0**-8]),
        (8, [2.0**-number for number in range(1, 9)]),
        # 8 of 8 heads, then the first, third, fifth and seventh of 16.
        (
            12,
            [*(2.0**-number for number in range(1, 9)), 2.0**-0.5, 2.0**-1.5, 2.0**-2.5, 2.0**-3.5],
        ),
        (3, [2.0**-4, 2.0**-8, 2.0**-2]),
    ],
)
def test_slopes(heads, expected):
    """As the paper on ALiBi has them, worked by hand."""
    assert alibi_slopes(heads) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("positions", DESIGNS)
def test_layers_behind_the_wanted_ones_are_not_run(positions):
    """And what is given does not depend on what else is wanted."""
    encoder = seeded_encoder(DESIGNS[positions])
    run = []
    for block in encoder.blocks:
        block.register_forward_hook(lambda *_: run.append(1))
    ids, inside = torch.tensor([IDS]), torch.ones(1, len(IDS), dtype=torch.bool)
    with torch.inference_mode():
        every = encoder(ids, inside, range(4))
        run.clear()
        first = encoder(ids, inside, [1])

    assert len(run) == 1
    assert list(first) == [1]
    torch.testing.assert_close(first[1], every[1], rtol=0, atol=0)


def test_positions_are_exact_in_half_precision():
    """Angles and penalties are computed in float32: bfloat16 has no whole numbers beyond 256."""
    design = replace(DESIGNS["rotary"], layers=1)
    encoder = seeded_encoder(design)
    half = seeded_encoder(design).to(torch.bfloat16)
    # As `load_strictly` leaves them: they are in no checkpoint.
    half._frequencies = encoder._frequencies
    ids = [IDS[place % 8] for place in range(600)]

    expected, found = (hidden_states(model, ids)[-1].float() for model in (encoder, half))

    # bfloat16 has 8 bits, 0.4 % a number; a wrong angle would change numbers by their size.
    assert (expected - found).abs().max() < 0.1 * expected.abs().max()


@pytest.mark.parametrize(
    "change", [{"heads": 5}, {"width": 9, "heads": 3, "positions": "rotary"}, {"heads": 48}]
)
def test_a_width_that_heads_do_not_divide_is_refused(change):
    """A configuration is a stranger's."""
    with pytest.raises(InputError, match="makes no encoder"):
        replace(POST, **change)


def test_names():
    """Numbers go where they stood; what is not known stays as it is, to be refused by its name."""
    own_name = renaming(BERT_NAMES, prefix="bert.", left_out=("cls.",), left_out_ends=("_ids",))

    assert own_name("bert.encoder.layer.11.output.dense.bias") == (
        "blocks.11.feed_forward.outer.bias"
    )
    assert own_name("embeddings.LayerNorm.weight") == "embeddings.norm.weight"
    assert own_name("cls.predictions.bias") is None
    assert own_name("bert.embeddings.position_ids") is None
    assert own_name("bert.encoder.layer.0.strange.weight") == "bert.encoder.layer.0.strange.weight"


json_values = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()


@settings(max_examples=40, deadline=None)
@given(value=json_values)
def test_a_field_is_a_size_or_one_message(tmp_path_factory, value):
    """No value of a stranger's configuration comes through that is no size, and none is a crash."""
    if isinstance(value, float) and not np.isfinite(value):
        return
    folder = tmp_path_factory.mktemp("config")
    (folder / "model.safetensors").touch()
    (folder / "config.json").write_text(json.dumps({"size": value}), encoding="utf-8")
    config = Config(Checkpoint(folder))

    try:
        found = config.whole("size")
    except InputError as error:
        assert "config.json, size" in str(error)
        assert type(value) is not int or not 0 < value <= 1 << 24
    else:
        assert type(value) is int
        assert found == value


def config_of(tmp_path, **values):
    (tmp_path / "model.safetensors").touch()
    (tmp_path / "config.json").write_text(json.dumps(values), encoding="utf-8")
    return Config(Checkpoint(tmp_path))


@pytest.mark.parametrize("value", [None, 0, -1e-5, "1e-5", True])
def test_an_epsilon_is_above_zero(tmp_path, value):
    """Whatever else stands there is one message."""
    with pytest.raises(InputError, match="a number above 0"):
        config_of(tmp_path, eps=value).positive("eps")


def test_flags_are_true_or_false(tmp_path):
    """A number is no flag, and a missing one has the default."""
    config = config_of(tmp_path, yes=True, number=1)

    assert config.flag("yes", default=False)
    assert config.flag("none", default=True)
    with pytest.raises(InputError, match="true or false"):
        config.flag("number", default=False)


def test_a_check_tells_flags_from_numbers(tmp_path):
    """1 is 1.0, but neither is true; a missing field is none of them."""
    config = config_of(tmp_path, scale=1, on=True)

    config.check(scale=1.0, on=True, missing=None)
    for wanted in ({"scale": True}, {"on": 1}, {"missing": False}):
        with pytest.raises(InputError, match="the configuration of another model"):
            config.check(**wanted)


def test_a_kind_may_be_left_out_but_not_be_another(tmp_path):
    """Some published configurations do not name theirs."""
    config_of(tmp_path).check_kind("bert")
    config_of(tmp_path, model_type="bert").check_kind("bert")

    with pytest.raises(InputError, match="model_type"):
        config_of(tmp_path, model_type="t5").check_kind("bert")

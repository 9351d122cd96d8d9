"""Loading a model for a run, and the name under which what it is run as is known.

A model run otherwise than it is meant to be run gives other vectors and other scores. They are
known under a name of their own: the model's, a plus, and what is other than by default, such as
``GROVER+layer_03`` or ``GROVER+cls+windows``. So the layers of a model are told apart wherever
models are: in results folders, in tables, in submissions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from geneb.base.files import check_name
from geneb.embedding.layers import ALL_LAYERS, layer_name
from geneb.errors import InputError
from geneb.extractors.base import LAST, Extractor
from geneb.extractors.devices import AUTO, check_device
from geneb.extractors.registry import Loaded, load, named

# What of `ModelOptions` names a recipe, and what an extractor's description calls it.
_RECIPE = {"layer": "layer", "pooling": "pooling", "preset": "preset", "long_input": "long input"}


def load_model(model: str, told: Mapping[str, Any], *, every_layer: bool = False) -> Loaded:
    """Load a model on a device of this machine.

    Parameters
    ----------
    model
        A model id, or ``path/to/file.py:ClassName``.
    told
        Fields of `geneb.extractors.options.ModelOptions`, with ``auto`` as the default of
        ``device``.
    every_layer
        Whether ``all`` may stand for a layer.

    Raises
    ------
    GenebError
        If there is no such model or device, or the model cannot be loaded.
    """
    told = {"device": AUTO, **told}
    if told.get("layer") == ALL_LAYERS:
        if not every_layer:
            raise InputError(
                "one layer is looked at here",
                found="--layer all",
                fix="name one by its number, and its own store",
            )
        told["layer"] = None
    loaded = load(model, **told)
    # An extractor of somebody's own may take any word for a device.
    check_device(loaded.device)
    return loaded


def recipe_name(
    loaded: Loaded, model_id: str | None, told: Mapping[str, Any], layer: str = LAST
) -> str:
    """Return the name under which a model's vectors are known, as it is run here.

    Parameters
    ----------
    model_id
        The name that a user asks for; None for the model's own.
    told
        How the model is run, see `load_model`.
    layer
        A layer's number in the place of the one that the extractor gives as its own.

    Raises
    ------
    InputError
        If it cannot be a name, see `geneb.extractors.registry.named`.
    """
    name = "+".join([named(loaded, model_id), *_departures(loaded.extractor, told, layer)])
    return check_name(name, "model")


def _departures(extractor: Extractor, told: Mapping[str, Any], layer: str) -> list[str]:
    """Return what is other than by default; where that is not known, what was asked for."""
    stated = dict(extractor.describe().parameters)
    if layer != LAST:
        stated["layer"] = int(layer)
    departures = []
    for option, parameter in _RECIPE.items():
        asked, default = told.get(option), extractor.defaults.get(parameter)
        value = stated.get(parameter, asked)
        departs = asked is not None if default is None else value not in (None, default)
        if departs:
            departures.append(_text(extractor, option, value))
    return departures


def _text(extractor: Extractor, option: str, value: Any) -> str:
    if option != "layer":
        return str(value)
    count = extractor.layer_count
    return f"layer_{value}" if count is None else layer_name(value, count)

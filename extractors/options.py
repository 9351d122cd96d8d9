"""What a user can say of how a model is run."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from geneb.errors import InputError

Dtype = Literal["float32", "bfloat16", "float16"]
Pooling = Literal["mean", "cls", "last", "max"]
LongInput = Literal["truncate", "windows"]
Preset = Literal["masked", "reference"]


@dataclass(frozen=True)
class ModelOptions:
    """How a model is run where it is not run as its registry entry says.

    None stands for the model's own default throughout.

    Attributes
    ----------
    device
        ``cpu``, ``cuda``, ``cuda:1``, ``mps``, or ``auto`` for the best that there is.
    weights
        A file, a folder or a hub id in the place of the model's own.
    revision
        The commit of the hub repository; needed for a hub id that is not the model's own.
    dtype
        What the model computes in. Pooling is float32 always.
    layer
        ``last``, or the number of a hidden state as text: 0 is the embedding layer, and the
        largest is what the last block gives after the final norm, if there is one.
    pooling
        How the vectors of the tokens become one.
    preset
        ``masked``: padding never enters a mean. ``reference``: as the published numbers were
        made, where that is another thing.
    long_input
        What is done with a sequence longer than the model's limit: ``truncate`` cuts at the
        right; ``windows`` embeds pieces, the last of them anchored to the end, and averages.
    tf32
        Whether products of float32 matrices may be computed in TF32 on a GPU.
    deterministic
        Whether torch is told to refuse operations without a deterministic form.
    compile
        Whether the network goes through ``torch.compile``. That changes the order in which
        numbers are summed, as another machine does: it is recorded with the run and is not part
        of the fingerprint. The canary is embedded by the compiled network, and must agree with
        the store's.
    """

    device: str = "cpu"
    weights: str | None = None
    revision: str | None = None
    dtype: Dtype | None = None
    layer: str | None = None
    pooling: Pooling | None = None
    preset: Preset | None = None
    long_input: LongInput | None = None
    tf32: bool = False
    deterministic: bool = False
    compile: bool = False

    def __post_init__(self) -> None:
        """Check the choices.

        Raises
        ------
        InputError
            If one is not among those that there are.
        """
        for name, kind in _CHOICES.items():
            value = getattr(self, name)
            if value is not None and value not in get_args(kind):
                raise InputError(
                    f"there is no such {name}",
                    expected=", ".join(get_args(kind)),
                    found=str(value),
                )

    def told(self) -> dict[str, Any]:
        """Return what differs from the defaults."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if getattr(self, field.name) != field.default
        }


_CHOICES = {"dtype": Dtype, "pooling": Pooling, "long_input": LongInput, "preset": Preset}

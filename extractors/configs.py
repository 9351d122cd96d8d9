"""Fields of a published ``config.json``, each of the kind that a network is built from."""

from __future__ import annotations

from typing import Any

from geneb.base.text import plain
from geneb.errors import InputError
from geneb.extractors.checkpoints import CONFIG, Checkpoint

# Far beyond any model's; what is larger would only fill the memory.
_LARGEST = 1 << 24
MOST_LAYERS = 1024
"""Of a network, and of an attention's heads: each is an object, whatever the weights are."""


class Config:
    """What ``config.json`` says, read with messages that name the field.

    Parameters
    ----------
    checkpoint
        Where it lies.

    Raises
    ------
    NotFoundError, InputError
        If there is no such file, or it is not a mapping.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._values = checkpoint.config()
        self._where = str(checkpoint.folder / CONFIG)

    def whole(self, name: str, most: int = _LARGEST) -> int:
        """Return a field that is a whole number from 1 to ``most``.

        Raises
        ------
        InputError
            If it is missing or something else.
        """
        value = self._values.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= most:
            raise self._fault(name, f"a whole number from 1 to {most:,}", value)
        return value

    def positive(self, name: str) -> float:
        """Return a field that is a number above 0, such as the epsilon of a norm.

        Raises
        ------
        InputError
            If it is missing or something else.
        """
        value = self._values.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            raise self._fault(name, "a number above 0", value)
        return float(value)

    def flag(self, name: str, *, default: bool) -> bool:
        """Return a field that is true or false.

        Raises
        ------
        InputError
            If it is something else.
        """
        value = self._values.get(name, default)
        if not isinstance(value, bool):
            raise self._fault(name, "true or false", value)
        return value

    def check(self, **expected: Any) -> None:
        """Refuse a configuration that asks for something that the network here does not do.

        Raises
        ------
        InputError
            If a field is missing or has another value.
        """
        for name, value in expected.items():
            found = self._values.get(name)
            # False is 0 and True is 1 in comparisons, but not in a configuration.
            if found != value or isinstance(found, bool) is not isinstance(value, bool):
                raise self._fault(name, str(value), found)

    def check_kind(self, kind: str) -> None:
        """Refuse another ``model_type``; some published configurations do not name theirs.

        Raises
        ------
        InputError
            If there is another one.
        """
        if "model_type" in self._values:
            self.check(model_type=kind)

    def _fault(self, name: str, expected: str, found: Any) -> InputError:
        return InputError(
            "this is the configuration of another model",
            where=f"{self._where}, {name}",
            expected=expected,
            found=plain(str(found), limit=80),
            fix="take the weights that `geneb model show` names",
        )


def bert_sizes(config: Config) -> dict[str, Any]:
    """Return the sizes that descendants of BERT name alike, as an encoder's design names them.

    Raises
    ------
    InputError
        If one is missing or is no size.
    """
    return {
        "vocabulary": config.whole("vocab_size"),
        "width": config.whole("hidden_size"),
        "layers": config.whole("num_hidden_layers", MOST_LAYERS),
        "heads": config.whole("num_attention_heads", MOST_LAYERS),
        "inner": config.whole("intermediate_size"),
        "eps": config.positive("layer_norm_eps"),
    }

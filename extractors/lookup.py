"""What is said where a model's id is not known."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from geneb.base.text import name_some, plain
from geneb.errors import InputError


def no_such_model(wanted: str, known: Mapping[str, str], *, expected: str) -> InputError:
    """Return the error that names the models that were probably meant.

    Parameters
    ----------
    wanted
        What a user wrote: a part of an id or of a name, in any spelling, finds the model.
    known
        Id to name for people.
    expected
        What could have been written.
    """
    part = _letters(wanted)
    near = [
        model_id
        for model_id, display in known.items()
        if part and (part in _letters(model_id) or part in _letters(display))
    ]
    near = near or difflib.get_close_matches(wanted, known, n=3)
    return InputError(
        "there is no such model",
        where=plain(wanted),
        expected=expected,
        fix=f"did you mean {name_some(near)}?" if near else "geneb model list",
    )


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()

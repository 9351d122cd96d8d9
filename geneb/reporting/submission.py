"""A submission: one model's scores in the published schema, and its file.

The models here are the one source of the schema: files are checked against them, packed with
them, and ``leaderboard/submission.schema.json`` is exported from them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from importlib.resources import files
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model

from geneb.base.canonical import pretty_json
from geneb.base.files import MAX_NAME, PARTIAL, check_name
from geneb.base.text import plain
from geneb.benchmark.spec import load_spec
from geneb.results import METRICS, Summary

SCHEMA_VERSION = "1.0"
# Every version that has made submissions; a release adds its own. The second spelling is that of
# one published submission.
HARNESS_VERSIONS = ("geneb-0.1.0", "GENEB-0.1.0")
ENDING = ".json"
EVIDENCE_ENDING = ".evidence.json"
# A complete submission in full precision has about 40 kB.
MAX_BYTES = 1 << 20
MAX_PARAMS = 10**13

_DEVICE_NAMES = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])([.].*)?", re.IGNORECASE)
_RESERVED = (".evidence", ".json", PARTIAL)
# Letters and marks that nothing is drawn for (fillers, joiners, variation selectors, the empty
# braille cell), and spaces other than the plain one: two names could look the same.
_BLANK = re.compile(
    "[\u00a0\u034f\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200a\u202f\u205f\u2800\u3000"
    "\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
# In a text's categories: a pile of accents covers the lines above and below.
_MARKS = re.compile("(^|Zs)M[ne]|(M[ne]){3}")
_SCORES = re.compile(r'\{\n +("MCC": .+),\n +("Acc": .+),\n +("F1": .+)\n +\}')


def check_model_id(name: str) -> str:
    """Return a model's id if a submission's file can be named after it, on any file system.

    Raises
    ------
    ValueError
        Also `geneb.errors.InputError`; what `geneb.base.files.check_name` refuses, names of
        devices (``CON``) and endings that mean another kind of file.
    """
    check_name(name, "model")
    if _DEVICE_NAMES.fullmatch(name):
        raise ValueError("some systems take this name for a device")
    if name.lower().endswith(_RESERVED):
        raise ValueError(f"an id does not end in {', '.join(_RESERVED)}: other files do")
    return name


def _check_text(text: str) -> str:
    if plain(text, limit=len(text)) != text:
        raise ValueError("there are control or invisible characters in it")
    if _BLANK.search(text):
        raise ValueError("there are spaces in it that only look like one, or like nothing")
    if text != text.strip():
        raise ValueError("it begins or ends with a space")
    if _MARKS.search("".join(map(unicodedata.category, text))):
        raise ValueError("there are more than two accents on one letter, or one on none")
    return text


ModelId = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_NAME,
        json_schema_extra={"pattern": "^[A-Za-z0-9][A-Za-z0-9._+-]*$"},
    ),
    AfterValidator(check_model_id),
]
ShortText = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(_check_text)]
LongText = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_check_text)]
WebAddress = Annotated[
    str, Field(max_length=500, pattern=r"^https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?([/?#][!-~]*)?$")
]
Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Correlation = Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", defer_build=True)


class Scores(_Strict):
    """The reported values of one task in one regime."""

    MCC: Correlation
    Acc: Fraction
    F1: Fraction


class Meta(_Strict):
    """What the submitter says about the model.

    Attributes
    ----------
    display
        Its name in tables.
    params
        Number of parameters; None where it is unknown.
    url
        A page about the model.
    zero_shot
        Whether no data of the benchmark's tasks played a part in its training; None where
        nobody said.
    training_data
        What it was trained on.
    provenance
        ``official`` and ``verified`` are the maintainers' words; see `geneb.reporting.validate`.
    submitted_by
        A person or group.
    """

    display: ShortText
    params: Annotated[int, Field(ge=1, le=MAX_PARAMS)] | None
    url: WebAddress | None = None
    zero_shot: bool | None = None
    training_data: LongText | None = None
    provenance: Literal["official", "verified", "self-reported"] = "self-reported"
    submitted_by: ShortText | None = None


# Regimes and tasks are fields, made of the spec, so that a missing or unknown one is a fault of
# its own, and the exported schema names them all.
Tasks: type[BaseModel] = create_model(
    "Tasks",
    __base__=_Strict,
    __doc__="The scores of all tasks in one regime.",
    **dict.fromkeys(load_spec().task_ids, (Scores, ...)),
)
Results: type[BaseModel] = create_model(
    "Results",
    __base__=_Strict,
    __doc__="The scores in all regimes.",
    **dict.fromkeys(load_spec().regimes, (Tasks, ...)),
)


class Submission(_Strict):
    """One model's scores on all tasks in all regimes.

    Attributes
    ----------
    harness_version
        What made the scores.
    """

    schema_version: Literal["1.0"]
    model_id: ModelId
    harness_version: Literal[HARNESS_VERSIONS]
    meta: Meta
    results: Results

    @property
    def scores(self) -> Summary:
        """Regime -> task -> metric -> reported value, in the spec's order."""
        return self.results.model_dump()


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a submission.

    What it cannot say (names on file systems, invisible characters, who may claim what) is
    checked by `geneb submission validate` alone.
    """
    schema = Submission.model_json_schema()
    for part in (schema, *schema["$defs"].values()):
        # Docstrings: the first paragraph is for readers of the schema as well.
        part["description"] = part.get("description", "").partition("\n\n")[0]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def schema_text() -> str:
    """Return the text of ``submission.schema.json``."""
    return pretty_json(json_schema())


def format_submission(document: Mapping[str, Any]) -> str:
    """Return the text of a submission's file: one task a line, shortest floats.

    Regimes and tasks stand in the spec's order, so that equal scores give equal bytes.

    Parameters
    ----------
    document
        In the schema's shape; regimes and tasks may be missing.
    """
    spec = load_spec()
    results = {
        regime: {
            task: {metric: document["results"][regime][task][metric] for metric in METRICS}
            for task in spec.task_ids
            if task in document["results"][regime]
        }
        for regime in spec.regimes
        if regime in document["results"]
    }
    # Line breaks stand between values only: within a JSON string they are escaped.
    return _SCORES.sub(r"{\1, \2, \3}", pretty_json({**document, "results": results}))


def shipped_submissions() -> dict[str, bytes]:
    """Return the submissions that come with the program: file name -> content, sorted by name."""
    folder = files("geneb.leaderboard").joinpath("submissions")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(ENDING))
    return {
        name: folder.joinpath(name).read_bytes()
        for name in names
        if not name.endswith(EVIDENCE_ENDING)
    }

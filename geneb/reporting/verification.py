"""Verification records: what a maintainer found when a submission was computed again.

A record belongs to one submission file, byte for byte: it is void once that file changes. It
lies in ``leaderboard/verifications/<model id>.json`` and raises the submission's provenance from
the day it is merged, so that folder is guarded by its owners.

Levels, each above the one before:

``scores-sampled``
    The store was probed again for some tasks and gave the submitted scores.
``scores-verified``
    The same for all tasks of the benchmark.
``verified``
    Besides, rows drawn after the submission were embedded again with the model and gave the
    store's vectors. Without that, a store vouches for itself: whoever hides labels in the
    embeddings gets the scores that were submitted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from geneb.base.canonical import pretty_json
from geneb.base.files import atomic_write, check_name, read_json
from geneb.base.text import plain
from geneb.benchmark.spec import load_spec
from geneb.errors import InputError, NotFoundError
from geneb.probing.calibration import MACRO_TOLERANCE, TASK_TOLERANCE

MAX_RECORD_BYTES = 4 << 20
_FAULTS_SHOWN = 8

Level = Literal["scores-sampled", "scores-verified", "verified"]
LEVELS: tuple[Level, ...] = get_args(Level)
"""The lowest first."""
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Text = Annotated[str, Field(min_length=1, max_length=1000)]
Name = Annotated[str, AfterValidator(lambda name: check_name(name, "model or task"))]
Score = Annotated[float, Field(ge=-1, le=1)]
Bound = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", defer_build=True)


class TaskEvidence(_Strict):
    """What one task was computed from.

    Attributes
    ----------
    csv_sha256
        Of the task's CSV with which row ids, labels and their order were compared.
    manifest_sha256
        The digest of the store's manifest, which covers its embeddings.
    rows
        Rows compared, over both splits.
    """

    csv_sha256: Sha256
    manifest_sha256: Sha256
    rows: Count


class ScoreDifference(_Strict):
    """One value that is not, to the bit, the submitted one.

    Attributes
    ----------
    task
        None for the macro score of a regime.
    """

    regime: Text
    task: Name | None
    metric: Text
    submitted: Score
    reproduced: Score

    @property
    def size(self) -> float:
        """How far the two values lie apart."""
        return abs(self.submitted - self.reproduced)

    def __str__(self) -> str:
        what = self.task or "macro"
        return (
            f"{self.regime}, {what}, {self.metric}: {self.submitted!r} submitted, "
            f"{self.reproduced!r} reproduced"
        )


class Comparison(_Strict):
    """How scores were compared.

    Attributes
    ----------
    kind
        ``exact`` where the submission's evidence states the versions, BLAS and threads that the
        scores were computed with again; else ``tolerance``.
    reason
        Why not exactly; None where it was.
    task_tolerance, macro_tolerance
        The largest differences allowed, in every metric; 0 where exact.
    """

    kind: Literal["exact", "tolerance"]
    reason: Text | None
    task_tolerance: Annotated[float, Field(ge=0, le=TASK_TOLERANCE)]
    macro_tolerance: Annotated[float, Field(ge=0, le=MACRO_TOLERANCE)]

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.kind == "exact" and (self.task_tolerance or self.macro_tolerance or self.reason):
            raise ValueError("an exact comparison has no tolerance, and no reason for one")
        return self

    def tolerance(self, difference: ScoreDifference) -> float:
        """Return the tolerance for one value."""
        return self.macro_tolerance if difference.task is None else self.task_tolerance


class Environment(_Strict):
    """What the scores were computed with again.

    Attributes
    ----------
    versions
        Of Python and of the packages installed.
    blas
        What threadpoolctl says of each loaded BLAS: kernel, version, threads.
    """

    backend: Text
    versions: dict[Text, Text]
    blas: list[dict[Text, Text | int]]
    processor: Text


class Reembedding(_Strict):
    """What `geneb store reproduce` found on rows drawn after the submission.

    Attributes
    ----------
    record_sha256
        Of the record that command wrote.
    seed
        Of the draw.
    rows
        Rows embedded again.
    tolerance, largest_difference
        Relative to a row's root mean square.
    """

    record_sha256: Sha256
    store_fingerprint: Sha256
    seed: Count
    rows: Annotated[int, Field(ge=1)]
    tolerance: Bound
    largest_difference: Bound

    @model_validator(mode="after")
    def _holds(self) -> Self:
        if self.largest_difference > self.tolerance:
            raise ValueError("the largest difference is above the tolerance")
        return self


class VerificationRecord(_Strict):
    """``leaderboard/verifications/<model id>.json``.

    Attributes
    ----------
    submission_sha256
        Of the submission's file.
    tasks
        Id -> what it was computed from.
    differences
        Values that are not exactly the submitted ones but within the tolerance, largest first.
    reembedding
        None until rows were embedded again; needed for the level ``verified``.
    """

    format: Literal["geneb-verification-1"] = "geneb-verification-1"
    model_id: Name
    level: Level
    submission_sha256: Sha256
    store_fingerprint: Sha256
    protocol: Text
    comparison: Comparison
    environment: Environment
    tasks: Annotated[dict[Name, TaskEvidence], Field(min_length=1)]
    differences: list[ScoreDifference]
    reembedding: Reembedding | None = None

    @model_validator(mode="after")
    def _earned(self) -> Self:
        if self.protocol != load_spec().protocol.id:
            raise ValueError(f"the protocol must be {load_spec().protocol.id}")
        missing = [task for task in load_spec().task_ids if task not in self.tasks]
        if missing and self.level != "scores-sampled":
            raise ValueError(f"the level {self.level} needs all tasks; {len(missing)} are missing")
        if self.level == "verified" and self.reembedding is None:
            raise ValueError("the level verified needs rows that were embedded again")
        if self.reembedding and self.reembedding.store_fingerprint != self.store_fingerprint:
            raise ValueError("the rows were embedded again for another store")
        beyond = [one for one in self.differences if one.size > self.comparison.tolerance(one)]
        if beyond:
            raise ValueError(f"a difference is beyond the tolerance: {beyond[0]}")
        return self

    def to_json(self) -> str:
        """Return the text of the record's file."""
        return pretty_json(self.model_dump(mode="json"))


def read_record(path: Path) -> VerificationRecord:
    """Read a verification record.

    Raises
    ------
    NotFoundError, InputError
        If it is not one; every fault is named.
    """
    value: Any = read_json(path, MAX_RECORD_BYTES)
    try:
        record = VerificationRecord.model_validate(value)
    except ValidationError as error:
        faults = [
            f"{plain('.'.join(map(str, fault['loc']))) or 'the whole'}: {plain(fault['msg'])}"
            for fault in error.errors(include_url=False)
        ]
        more = len(faults) - _FAULTS_SHOWN
        raise InputError(
            "this is not a valid verification record",
            where=str(path),
            found="; ".join(faults[:_FAULTS_SHOWN]) + (f"; and {more} more" if more > 0 else ""),
        ) from error
    if path.name != f"{record.model_id}.json":
        raise InputError(
            "this record belongs to another model",
            where=str(path),
            expected=f"{record.model_id}.json",
        )
    return record


def find_record(folder: Path, model_id: str) -> VerificationRecord | None:
    """Return a model's record; None where nobody has verified it."""
    try:
        return read_record(folder / f"{check_name(model_id, 'model')}.json")
    except NotFoundError:
        return None


def write_record(folder: Path, record: VerificationRecord) -> Path:
    """Write a record under its model's name.

    Raises
    ------
    InputError
        If a record of a higher level, for the same submission, would be lost.
    """
    before = find_record(folder, record.model_id)
    path = folder / f"{record.model_id}.json"
    if (
        before is not None
        and before.submission_sha256 == record.submission_sha256
        and LEVELS.index(before.level) > LEVELS.index(record.level)
    ):
        raise InputError(
            "a record of a higher level is there for the same submission",
            where=str(path),
            expected=f"at least {before.level}",
            found=record.level,
            fix="give another --out",
        )
    folder.mkdir(parents=True, exist_ok=True)
    atomic_write(path, record.to_json())
    return path

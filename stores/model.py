"""What a store says about itself: fingerprint, provenance, manifests, seal, run records.

These are exchanged between groups, so they are validated strictly; unknown fields are kept when
read (a newer minor version may have added them) and refused when written.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from geneb.base.canonical import digest
from geneb.base.text import plain
from geneb.errors import StoreError

FORMAT = "geneb-store"
VERSION = "1.0"
_VERSION_1 = re.compile("1[.][0-9]{1,4}")

Json = Any
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0)]
StoreDtype = Literal["float32", "float16"]


class Exchanged(BaseModel):
    """The base of everything that is written into a store's attributes."""

    model_config = ConfigDict(strict=True, frozen=True, extra="allow")

    def dump(self) -> dict[str, Json]:
        """Return the JSON value to write.

        Raises
        ------
        ValueError
            If somebody put fields into it that the format does not know.
        """
        if self.model_extra:
            raise ValueError(f"unknown fields {sorted(self.model_extra)} are not written")
        return self.as_read()

    def as_read(self) -> dict[str, Json]:
        """Return the JSON value with whatever unknown fields were read."""
        return self.model_dump(mode="json")

    @classmethod
    def parse(cls, value: Json, where: str) -> Self:
        """Validate a JSON value read from a store.

        Raises
        ------
        StoreError
            Listing every field that is wrong.
        """
        try:
            return cls.model_validate(value)
        except ValidationError as error:
            faults = "; ".join(
                f"{plain('.'.join(map(str, fault['loc']))) or 'value'}: {plain(fault['msg'])}"
                for fault in error.errors()[:8]
            )
            raise StoreError(
                f"this is not a valid {cls.__name__.lower()}", where=where, found=faults
            ) from error


class Fingerprint(Exchanged):
    """Everything that changes the numbers in a store; nothing that does not.

    Attributes
    ----------
    extractor, numerics_version
        Which code made the vectors; the version is raised when its numbers change.
    parameters
        Layer, pooling, limits, policies, preset.
    weights, tokenizer, file
        SHA-256 of the content of weights, tokenizer and, for an extractor given as a file, that
        file; None where there is none.
    compute_dtype, matmul_precision
        What the model computed in, and whether products were rounded to TF32.
    store_dtype
        What the vectors are stored as.
    dim
        Numbers a vector.
    """

    extractor: str
    numerics_version: int
    parameters: dict[str, Json]
    weights: Sha256 | None
    tokenizer: Sha256 | None
    file: Sha256 | None
    compute_dtype: str
    matmul_precision: str
    store_dtype: StoreDtype
    dim: int = Field(ge=1)

    @property
    def id(self) -> Sha256:
        """SHA-256 over the canonical JSON of all fields."""
        return digest(self.as_read())


def fingerprint_difference(left: Fingerprint, right: Fingerprint) -> list[tuple[str, Json, Json]]:
    """Return (field, left value, right value) for each field that differs, parameters singly."""
    return _difference(left.as_read(), right.as_read(), "")


def _difference(left: Json, right: Json, path: str) -> list[tuple[str, Json, Json]]:
    if isinstance(left, dict) and isinstance(right, dict):
        rows = []
        for key in sorted({*left, *right}):
            inner = f"{path}.{key}" if path else key
            rows += _difference(left.get(key, "(absent)"), right.get(key, "(absent)"), inner)
        return rows
    # 1 and True, and 1 and 1.0, are equal in Python and different in canonical JSON.
    return [] if digest(left) == digest(right) else [(path, left, right)]


class ModelRef(Exchanged):
    """Which model made a store, as people name it."""

    id: str
    display: str
    params: int | None
    licence: str | None
    source: str | None


class CanaryRef(Exchanged):
    """Which sequences the canary's vectors belong to, and which vectors those are.

    Attributes
    ----------
    sequences_sha256
        Of the canonical JSON of the list of sequences.
    vectors_sha256
        Of the vectors as stored, see `geneb.stores.arrays.vectors_digest`.
    """

    sequences_sha256: Sha256
    vectors_sha256: Sha256


class Seal(Exchanged):
    """What a finished store vouches for.

    Attributes
    ----------
    tasks
        Id -> digest of the task's manifest.
    root_sha256
        `Root.sha256`: what the root says about the store.
    """

    tasks: dict[str, Sha256]
    root_sha256: Sha256


class Root(Exchanged):
    """``attributes.geneb`` of a store's root group.

    Attributes
    ----------
    token_budget
        Padded tokens a batch, chosen when the store was created and used by every later run.
    benchmark_data
        Repository and revision of the task data that the benchmark pinned when the store was
        created; says nothing of the CSVs that were embedded unless they were compared with it.
    created_by
        Id of the run that created the store.
    """

    format: Literal["geneb-store"]
    version: str
    fingerprint_id: Sha256
    fingerprint: Fingerprint
    model: ModelRef
    canary: CanaryRef
    token_budget: int = Field(ge=1)
    benchmark_data: dict[str, Json]
    created_by: str
    seal: Seal | None

    @property
    def sha256(self) -> Sha256:
        """SHA-256 over the canonical JSON of all fields, with none as the seal."""
        return digest({**self.as_read(), "seal": None})


class Counts(Exchanged):
    """What happened to a split's rows."""

    truncated: Count
    non_acgt: Count
    empty: Count
    computed: Count
    copied: Count


class SplitManifest(Exchanged):
    """One split of a complete task."""

    rows: int = Field(ge=1)
    embeddings_sha256: Sha256
    pairs_sha256: Sha256
    counts: Counts


class Manifest(Exchanged):
    """``attributes.geneb`` of a task's group: there only once the task is complete.

    A pure function of the plan and the arrays: it holds no times, so a resumed run writes the
    same manifest as an uninterrupted one.

    Attributes
    ----------
    classes
        Text of each label 0..K-1; None for unlabelled data.
    left_out
        Rows of the CSV's other splits that were not embedded.
    """

    task: str
    dim: int = Field(ge=1)
    classes: list[str] | None
    splits: dict[str, SplitManifest] = Field(min_length=1)
    left_out: dict[str, Count]

    @property
    def digest(self) -> Sha256:
        """SHA-256 over the canonical JSON of the manifest."""
        return digest(self.as_read())


class RunRecord(Exchanged):
    """``attributes.geneb`` of ``runs/<run id>``: what one process did, and on what.

    Attributes
    ----------
    out_of_memory_splits
        How often a batch had to be halved.
    float32_retries
        Rows (or windows of rows) that were not finite in half precision, and were run in float32.
    """

    run: str
    started: str
    ended: str | None
    outcome: str | None
    options: dict[str, Json]
    versions: dict[str, str]
    platform: dict[str, Json]
    blocks: Count
    rows_computed: Count
    rows_copied: Count
    tokens: Count
    seconds: float | None
    out_of_memory_splits: Count
    float32_retries: Count = 0


def check_version(value: Json, where: str) -> None:
    """Refuse what is not a store, and stores of a newer major version.

    Raises
    ------
    StoreError
    """
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise StoreError(
            "this Zarr group is not an embedding store",
            where=where,
            expected=f'attributes.geneb.format = "{FORMAT}"',
            fix="name a store that `geneb embed` wrote",
        )
    version = value.get("version")
    if not isinstance(version, str) or not _VERSION_1.fullmatch(version):
        raise StoreError(
            "this store is of a version that this geneb does not read",
            where=where,
            expected="version 1.x",
            found=plain(repr(version), limit=80),
            fix="install a newer geneb",
        )

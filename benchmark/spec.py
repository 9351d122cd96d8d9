"""The benchmark spec and the model metadata: what they hold, and their loader.

Both files are exchanged, so they are validated strictly; unknown fields are kept when read (a
newer minor version may have added them) and refused when written.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from geneb.base.files import MAX_JSON_BYTES, check_name, parse_json, read_bytes
from geneb.errors import InputError

SPEC_FILE = "benchmark_spec.json"
MODEL_META_FILE = "model_meta.json"

_FAULTS_SHOWN = 8

SchemaVersion = Annotated[str, Field(pattern=r"^1\.\d+$")]
"""Newer minor versions are read, newer major ones refused."""
Text = Annotated[str, Field(min_length=1, max_length=1000)]
Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0)]
TaskId = Annotated[str, AfterValidator(lambda name: check_name(name, "task"))]
ModelId = Annotated[str, AfterValidator(lambda name: check_name(name, "model"))]
Record = TypeVar("Record", bound="_Exchanged")


class _Exchanged(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="allow", defer_build=True)


class TaskSpec(_Exchanged):
    """One task of the benchmark.

    Attributes
    ----------
    id
        Also the name of its CSV, without the ending.
    label
        Its short name in tables.
    category
        One of the spec's categories.
    """

    id: TaskId
    label: Text
    category: Text


class DataPin(_Exchanged):
    """The dataset repository and the commit that holds the tasks' published rows."""

    repo: Text
    revision: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]


class EstimatorSpec(_Exchanged):
    """What is minimised, in words, and the one number in it."""

    method: Text
    objective: Text
    C: Positive
    intercept: Text
    two_classes: Text
    more_classes: Text
    start: Text


class SolverSpec(_Exchanged):
    """How it is minimised, and when that ends.

    Attributes
    ----------
    gradient_tolerance
        Bound on the largest absolute component of the mean gradient.
    decrease_tolerance_eps
        Bound on the relative decrease in one iteration, in units of 2^-52.
    """

    method: Text
    history_pairs: Count
    max_line_search_steps: Count
    max_iterations: Count
    gradient_tolerance: Positive
    decrease_tolerance_eps: Count
    stop: Text


class ProbeInput(_Exchanged):
    """What is done to the embeddings and rows before the fit: nothing."""

    dtype: Literal["float32"]
    arithmetic: Text
    scaling: Text
    class_weights: Text
    row_order: Text


class FewShotDraw(_Exchanged):
    """How train rows are drawn in the few-shot regimes.

    Attributes
    ----------
    shots
        Regime -> rows drawn of each class.
    """

    shots: dict[str, Count]
    generator: Text
    draw: Text
    order: Text


class ProtocolSpec(_Exchanged):
    """The published protocol, written so that it needs no version of any library."""

    id: Text
    estimator: EstimatorSpec
    solver: SolverSpec
    input: ProbeInput
    few_shot: FewShotDraw
    class_order: Text
    metrics: dict[str, Text]
    full_regime: Text
    reported_value: Text


class AggregationSpec(_Exchanged):
    """How scores of tasks become the scores of a model."""

    category: Text
    macro: Text
    micro: Text


class Spec(_Exchanged):
    """What is fixed about the benchmark.

    Attributes
    ----------
    regimes, metrics, seeds
        In the order of tables and result files.
    categories
        In the order of their first task.
    task_count
        The number of tasks, said twice so that a lost one is noticed.
    tasks
        In the order of the published tables.
    """

    schema_version: SchemaVersion
    name: Text
    data: DataPin
    regimes: tuple[Text, ...]
    metrics: tuple[Text, ...]
    seeds: tuple[Annotated[int, Field(ge=0, lt=2**32)], ...]
    protocol: ProtocolSpec
    aggregation: AggregationSpec
    categories: tuple[Text, ...]
    task_count: Count
    tasks: tuple[TaskSpec, ...]

    @property
    def task_ids(self) -> tuple[str, ...]:
        """The ids of all tasks, in order."""
        return tuple(task.id for task in self.tasks)

    def find(self, task_id: str) -> TaskSpec | None:
        """Return the task of this id; None for a task outside the benchmark."""
        return next((task for task in self.tasks if task.id == task_id), None)

    @model_validator(mode="after")
    def _check_tasks(self) -> Spec:
        if len(self.tasks) != self.task_count:
            raise ValueError(f"task_count is {self.task_count}, and there are {len(self.tasks)}")
        # Whoever selects tasks names them by any of these, in any case.
        _check_distinct("task ids", (task.id.casefold() for task in self.tasks))
        names = [*(task.label for task in self.tasks), *self.categories]
        _check_distinct("task labels and categories", (name.casefold() for name in names))
        used = tuple(dict.fromkeys(task.category for task in self.tasks))
        if used != self.categories:
            raise ValueError(
                f"the tasks' categories in order of appearance are {used}, not {self.categories}"
            )
        return self

    @model_validator(mode="after")
    def _check_protocol(self) -> Spec:
        for name in ("regimes", "metrics", "seeds"):
            _check_distinct(name, getattr(self, name))
        if not self.seeds:
            raise ValueError("there are no seeds")
        few_shot = [regime for regime in self.regimes if regime != "full"]
        if few_shot != list(self.protocol.few_shot.shots):
            raise ValueError(f"protocol.few_shot.shots must name the regimes {few_shot}, in order")
        if self.metrics != tuple(self.protocol.metrics):
            raise ValueError(f"protocol.metrics must define {self.metrics}, in order")
        return self


class ModelFacts(_Exchanged):
    """What is published about one model; how it is run stands in the extractors' registry.

    Attributes
    ----------
    id
        Under which its results are submitted.
    display
        Its name in tables.
    params
        Number of parameters, as published.
    architecture, tokenization, pretraining_data
        The benchmark's own labels.
    hub_id
        Hugging Face repository of the weights; None where they lie elsewhere.
    weights_note
        Where else they lie, or what else is known about where.
    url
        A page about the model.
    licence
        SPDX id of the weights' licence; None where none was found.
    code_licence
        SPDX id of the licence of the authors' code; None where it is the weights' own or unknown.
    licence_note
        Who says so, where that is in doubt.
    provenance
        Who made the published scores.
    """

    id: ModelId
    display: Text
    params: Count
    architecture: Text
    tokenization: Text
    pretraining_data: Text
    hub_id: Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$")] | None
    weights_note: Text | None
    url: Annotated[str, Field(pattern=r"^https?://\S+$", max_length=1000)] | None
    licence: Text | None
    code_licence: Text | None
    licence_note: Text | None
    provenance: Literal["official", "verified", "self-reported"]


class ModelMeta(_Exchanged):
    """What is published about all models.

    Attributes
    ----------
    official_submitters
        Who may claim the provenance ``official`` in a submission.
    models
        In the order of the published submissions.
    """

    schema_version: SchemaVersion
    official_submitters: tuple[Text, ...]
    models: tuple[ModelFacts, ...]

    def find(self, model_id: str) -> ModelFacts | None:
        """Return the facts on the model of this id; None for a model that is not listed."""
        return next((model for model in self.models if model.id == model_id), None)

    @model_validator(mode="after")
    def _check_models(self) -> ModelMeta:
        _check_distinct("model ids", (model.id.casefold() for model in self.models))
        _check_distinct("display names", (model.display.casefold() for model in self.models))
        return self


@lru_cache(maxsize=1)
def load_spec() -> Spec:
    """Return the spec that is shipped."""
    return _load_shipped(Spec, SPEC_FILE)


@lru_cache(maxsize=1)
def load_model_meta() -> ModelMeta:
    """Return the model metadata that are shipped."""
    return _load_shipped(ModelMeta, MODEL_META_FILE)


def read_spec(path: Path) -> Spec:
    """Read a spec from a file.

    Raises
    ------
    NotFoundError, InputError
        If there is no such file, or it is not a valid spec; every fault is named.
    """
    return _parse(Spec, read_bytes(path, MAX_JSON_BYTES), str(path))


def read_model_meta(path: Path) -> ModelMeta:
    """Read model metadata from a file; errors as for `read_spec`."""
    return _parse(ModelMeta, read_bytes(path, MAX_JSON_BYTES), str(path))


def to_json(record: Spec | ModelMeta) -> str:
    """Return the text of a record's file.

    Raises
    ------
    InputError
        If it holds fields that this version does not know: they are kept when read, but not
        passed on as if they had been understood.
    """
    if unknown := list(_unknown_fields(record)):
        raise InputError("unknown fields are not written", found=", ".join(unknown))
    return json.dumps(record.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"


def _load_shipped(kind: type[Record], name: str) -> Record:
    return _parse(kind, files("geneb.benchmark").joinpath(name).read_bytes(), name)


def _parse(kind: type[Record], data: bytes, where: str) -> Record:
    parse_json(data, where)  # refuses what pydantic's own parser lets pass: duplicate keys, depth
    try:
        return kind.model_validate_json(data)
    except ValidationError as error:
        faults = [_describe_fault(fault) for fault in error.errors(include_url=False)]
        more = len(faults) - _FAULTS_SHOWN
        raise InputError(
            f"this is not a valid {kind.__name__}",
            where=where,
            found="; ".join(faults[:_FAULTS_SHOWN]) + (f"; and {more} more" if more > 0 else ""),
        ) from error


def _describe_fault(fault: Any) -> str:
    path = ".".join(map(str, fault["loc"])) or "the whole"
    return f"{path}: {' '.join(fault['msg'].split())}"


def _check_distinct(what: str, values: Iterable[object]) -> None:
    repeated = [value for value, count in Counter(values).items() if count > 1]
    if repeated:
        raise ValueError(f"{what} are not distinct: {repeated[:5]}")


def _unknown_fields(value: Any, path: str = "") -> Iterable[str]:
    if isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from _unknown_fields(item, f"{path}.{index}")
    elif isinstance(value, BaseModel):
        yield from (f"{path}.{name}".lstrip(".") for name in value.model_extra or {})
        for name in type(value).model_fields:
            yield from _unknown_fields(getattr(value, name), f"{path}.{name}".lstrip("."))

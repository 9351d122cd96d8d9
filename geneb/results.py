"""What a probe leaves behind: the columns of its results, the results folder, the resume key.

A results folder holds one model's results under one run key::

    <model id>/
      run.json            the run key (see `RunInfo`), the regimes so far, the environment
      tasks/<task>.csv    one row a fit, full doubles: the source of truth
      results.json        {model_id, protocol, results: {regime: {task: {MCC, Acc, F1}}}}
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from geneb.base.canonical import digest, pretty_json
from geneb.base.files import FileLock, atomic_write, check_name, read_bytes, read_json
from geneb.benchmark.spec import load_spec
from geneb.errors import InputError

METRICS = ("MCC", "Acc", "F1")
METRIC_RANGES = {"MCC": (-1.0, 1.0), "Acc": (0.0, 1.0), "F1": (0.0, 1.0)}
MAX_CSV_BYTES = 16 << 20
RUN_FILE = "run.json"
SUMMARY_FILE = "results.json"
TASK_FOLDER = "tasks"

Scores = dict[str, float]
Summary = dict[str, dict[str, Scores]]
"""regime -> task -> metric -> reported value."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the results of one task come from: the same for all of its rows.

    Attributes
    ----------
    embeddings_digest
        SHA-256 of the task's manifest, which covers embeddings, row ids, labels and their order.
    run_key
        `RunInfo.key` of the run that made the results.
    """

    model: str
    store_fingerprint: str
    embeddings_digest: str
    task: str
    backend: str
    protocol: str
    run_key: str


@dataclass(frozen=True, slots=True)
class Fit:
    """One fit and how well it predicts the test set.

    Attributes
    ----------
    seed
        Seed of the draw and of the probe; None where neither has any randomness, and one fit
        stands for all seeds.
    n_train, n_test
        Rows fitted and rows predicted.
    n_classes
        Classes among the rows fitted.
    predicted_classes
        Classes among the predictions; 1 says that every row was given the same.
    short_classes
        Classes with fewer train rows than the regime draws: all of theirs were taken.
    unseen_classes
        Classes of the test set without any train row: never predicted, counted in the metrics.
    untested_classes
        Classes of the train set without any test row.
    seen_rows
        Test rows whose sequence stands in the train split too.
    MCC_without_seen, Acc_without_seen, F1_without_seen
        The metrics without those rows: a diagnostic, never the reported value. None where no
        other rows are left.
    n_iter, converged
        Of the solver; None where the probe does not iterate.
    objective, gradient_norm
        Value of the probe's objective at the solution, and the largest absolute component of its
        gradient there; None for a probe without an objective.
    seconds
        Wall time of the fit alone.
    """

    regime: str
    seed: int | None
    MCC: float
    Acc: float
    F1: float
    n_train: int
    n_test: int
    n_classes: int
    predicted_classes: int
    short_classes: int
    unseen_classes: int
    untested_classes: int
    seen_rows: int
    MCC_without_seen: float | None
    Acc_without_seen: float | None
    F1_without_seen: float | None
    n_iter: int | None
    converged: bool | None
    objective: float | None
    gradient_norm: float | None
    seconds: float


COLUMNS = (
    "model", "store_fingerprint", "embeddings_digest", "task",
    *(field.name for field in fields(Fit)),
    "backend", "protocol", "run_key",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TaskResults:
    """All fits of one task: what one CSV holds."""

    origin: Origin
    fits: tuple[Fit, ...]

    @classmethod
    def join(cls, origin: Origin, fits: Mapping[str, Sequence[Fit]]) -> TaskResults:
        """Put the fits of several regimes together, in the order of the benchmark's regimes."""
        return cls(origin, tuple(fit for name in in_regime_order(fits) for fit in fits[name]))

    def rows(self) -> list[dict[str, Any]]:
        """Return one dict a fit, keys in the order of `COLUMNS`."""
        origin = asdict(self.origin)
        rows = [{**origin, **asdict(fit)} for fit in self.fits]
        return [{name: row[name] for name in COLUMNS} for row in rows]

    def by_regime(self) -> dict[str, list[Fit]]:
        """Return the fits of each regime, in order."""
        found: dict[str, list[Fit]] = {}
        for fit in self.fits:
            found.setdefault(fit.regime, []).append(fit)
        return found


def in_regime_order(names: Iterable[str]) -> list[str]:
    """Return names of regimes in the order of the benchmark's spec, others after them by name."""
    place = {name: index for index, name in enumerate(load_spec().regimes)}
    return sorted(set(names), key=lambda name: (place.get(name, len(place)), name))


def reported_value(values: Sequence[float], seeds: Sequence[int]) -> float:
    """Return the value that is reported for one regime, task and metric.

    It is numpy's mean over the protocol's seeds. A regime that was fitted once, because its
    seeds change nothing, counts as that many equal values: the mean of five times 0.83 is
    0.8299999999999998, and that is what the published loop gives.

    Parameters
    ----------
    values
        One value, or one for each seed.
    """
    if len(values) == 1:
        values = [values[0]] * len(seeds)
    if len(values) != len(seeds):
        raise ValueError(f"{len(values)} values for {len(seeds)} seeds")
    import numpy as np  # here, because whoever only reads results needs none of it

    return float(np.mean(values))


class RunInfo(BaseModel):
    """``run.json``: what makes results comparable, and what they were made on.

    All fields but ``regimes`` and ``environment`` are the run key: results are kept and added to
    only under the same key.

    Attributes
    ----------
    probe
        All that decides what is fitted, in one line.
    versions
        Of scikit-learn, scipy and numpy.
    blas
        What threadpoolctl says of each loaded BLAS: kernel, version, threads.
    regimes
        Those that were asked for so far.
    environment
        All other versions, the processor, whether cuml.accel was active.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", defer_build=True)

    format: Literal["geneb-results-1"] = "geneb-results-1"
    model_id: str
    store_fingerprint: str
    protocol: str
    seeds: list[int]
    probe: str
    backend: str
    versions: dict[str, str]
    blas: list[dict[str, Any]]
    regimes: list[str]
    environment: dict[str, Any]

    @property
    def key(self) -> str:
        """The first 16 hexadecimal digits of the key's SHA-256."""
        return digest(self.model_dump(mode="json", exclude={"regimes", "environment"}))[:16]

    def differences(self, other: RunInfo) -> list[str]:
        """Return how the other's results could not be told from ours: one line a field."""
        names = ("model_id", "store_fingerprint", "protocol", "seeds", "probe", "backend")
        return [
            f"{name}: {getattr(other, name)} there, {getattr(self, name)} here"
            for name in names
            if getattr(other, name) != getattr(self, name)
        ]

    def changes(self, other: RunInfo) -> list[str]:
        """Return in which versions and BLAS the other was made: one line for each that differs."""
        there, here = other._libraries(), self._libraries()
        return [
            f"{name}: {there.get(name, 'none')} there, {here.get(name, 'none')} here"
            for name in sorted({*there, *here})
            if there.get(name) != here.get(name)
        ]

    def _libraries(self) -> dict[str, str]:
        blas = (" ".join(f"{key}={row[key]}" for key in sorted(row)) for row in self.blas)
        return {**self.versions, "BLAS": ", ".join(blas)}

    @classmethod
    def read(cls, path: Path) -> RunInfo:
        """Read a ``run.json``.

        Raises
        ------
        NotFoundError, InputError
        """
        try:
            info = cls.model_validate(read_json(path))
        except ValidationError as error:
            faults = "; ".join(
                f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"
                for fault in error.errors(include_url=False)[:8]
            )
            raise InputError(
                "this is not a results folder's run.json", where=str(path), found=faults
            ) from error
        check_name(info.model_id, "model")
        if not info.seeds:
            raise InputError("there are no seeds", where=str(path))
        return info


class ResultsFolder:
    """One model's results on disk. Several processes may add tasks to it at once.

    Parameters
    ----------
    path
        The folder, which holds a ``run.json``; `geneb.probing.folder` makes one.
    info
        What stands in it: results under another key are neither read nor written.
    """

    def __init__(self, path: Path, info: RunInfo) -> None:
        self.path = path
        self.info = info

    @classmethod
    def open(cls, path: Path) -> ResultsFolder:
        """Open a folder for reading.

        Raises
        ------
        NotFoundError, InputError
            If it is not a results folder.
        """
        return cls(path, RunInfo.read(path / RUN_FILE))

    def task_path(self, task_id: str) -> Path:
        """Return where a task's CSV lies."""
        return self.path / TASK_FOLDER / f"{check_name(task_id, 'task')}.csv"

    def task_ids(self) -> list[str]:
        """Return the ids of the tasks that have a CSV, sorted."""
        return sorted(path.stem for path in (self.path / TASK_FOLDER).glob("*.csv"))

    def read_task(self, task_id: str) -> TaskResults:
        """Read a task's CSV.

        Raises
        ------
        NotFoundError, InputError
            If it is not there, or not exactly what `write_task` wrote.
        """
        path = self.task_path(task_id)
        results = parse_csv(read_bytes(path, MAX_CSV_BYTES), str(path))
        for name, found, expected in (
            ("task", results.origin.task, task_id),
            ("model", results.origin.model, self.info.model_id),
        ):
            if found != expected:
                raise InputError(
                    f"these are the results of another {name}",
                    where=str(path),
                    expected=expected,
                    found=found,
                )
        return results

    def current(self) -> list[TaskResults]:
        """Return the results under the folder's key; a stale CSV is passed over.

        A CSV is stale while a run under new versions has not yet come to its task.

        Raises
        ------
        InputError
            For a CSV that is damaged.
        """
        found = [self.read_task(task_id) for task_id in self.task_ids()]
        return [results for results in found if results.origin.run_key == self.info.key]

    def lock(self) -> FileLock:
        """Return the lock that every change of the folder is made under."""
        return FileLock(self.path / ".lock")

    def write_task(self, results: TaskResults) -> None:
        """Write a task's CSV, atomically.

        Raises
        ------
        InputError
            If a run under another key has taken the folder over.
        """
        content = format_csv(results)
        with self.lock().held():
            self._check_key()
            atomic_write(self.task_path(results.origin.task), content)

    def remove_task(self, task_id: str) -> None:
        """Remove a task's CSV if there is one.

        Raises
        ------
        InputError
            If a run under another key has taken the folder over.
        """
        with self.lock().held():
            self._check_key()
            self.task_path(task_id).unlink(missing_ok=True)

    def _check_key(self) -> None:
        found = RunInfo.read(self.path / RUN_FILE)
        if found.key != self.info.key:
            raise InputError(
                "another probe has taken this results folder over",
                where=str(self.path),
                found="; ".join(self.info.changes(found) or self.info.differences(found)),
                fix="wait until it has ended, then run the same command again",
            )

    def summary(self) -> Summary:
        """Return the reported values, rebuilt from the CSVs."""
        return summarise(self.current(), self.info)

    def write_summary(self) -> Path:
        """Rebuild ``results.json``; whichever process ends last sees every task.

        Raises
        ------
        InputError
            For a CSV that is damaged, or if a run under another key has taken the folder over.
        """
        path = self.path / SUMMARY_FILE
        with self.lock().held():
            self._check_key()
            document = {
                "model_id": self.info.model_id,
                "protocol": self.info.protocol,
                "results": self.summary(),
            }
            atomic_write(path, pretty_json(document))
        return path


def summarise(results: Iterable[TaskResults], info: RunInfo) -> Summary:
    """Return the reported value of every regime, task and metric that is complete.

    Regimes stand in the spec's order, tasks sorted by id.
    """
    summary: Summary = {}
    for task in sorted(results, key=lambda task: task.origin.task):
        for regime, fits in complete_regimes(task, info.seeds).items():
            summary.setdefault(regime, {})[task.origin.task] = {
                metric: reported_value([getattr(fit, metric) for fit in fits], info.seeds)
                for metric in METRICS
            }
    return {regime: summary[regime] for regime in in_regime_order(summary)}


def complete_regimes(results: TaskResults, seeds: Sequence[int]) -> dict[str, list[Fit]]:
    """Return the regimes with one fit for all seeds, or one for each of the seeds, in order."""
    complete: tuple[list[int | None], ...] = ([None], list(seeds))
    return {
        regime: fits
        for regime, fits in results.by_regime().items()
        if [fit.seed for fit in fits] in complete
    }


def format_csv(results: TaskResults) -> str:
    """Return the text of a task's CSV: LF, full doubles that read back to the same bits.

    Raises
    ------
    ValueError
        For a number that is not finite: nothing is written for what could not be measured.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in results.rows():
        writer.writerow([_format_cell(row[name]) for name in COLUMNS])
    return text.getvalue()


def _format_cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("a result is not a finite number")
        return repr(value)
    return str(value)


def parse_csv(data: bytes, where: str) -> TaskResults:
    """Parse a task's CSV strictly: it must be, byte for byte, what `format_csv` writes.

    Raises
    ------
    InputError
        Saying what is wrong; a truncated file is one that does not end where it must.
    """
    try:
        return _parse_rows(data)
    except (ValueError, csv.Error) as error:
        raise InputError(
            "this is not a task's results as they were written",
            where=where,
            found=str(error)[:300],
            fix="probe the task again: `geneb probe` redoes what is damaged",
        ) from error


def _parse_rows(data: bytes) -> TaskResults:
    lines = list(csv.reader(io.StringIO(data.decode("utf-8"), newline=""), strict=True))
    if not lines or tuple(lines[0]) != COLUMNS:
        raise ValueError(f"the columns are {lines[0] if lines else 'none'}")
    rows = [_parse_row(line) for line in lines[1:]]
    origins = {origin for origin, _ in rows}
    if len(origins) != 1:
        raise ValueError(f"{len(origins)} different origins, where there must be one")
    results = TaskResults(origins.pop(), tuple(fit for _, fit in rows))
    if format_csv(results).encode("utf-8") != data:
        raise ValueError("it is truncated, or was edited by hand")
    return results


def _parse_row(line: list[str]) -> tuple[Origin, Fit]:
    if len(line) != len(COLUMNS):
        raise ValueError(f"a row has {len(line)} fields instead of {len(COLUMNS)}")
    cells = dict(zip(COLUMNS, line, strict=True))
    origin = Origin(**{field.name: cells[field.name] for field in fields(Origin)})
    check_name(origin.model, "model")
    check_name(origin.task, "task")
    fit = Fit(
        **{field.name: _PARSERS[field.type](cells[field.name]) for field in fields(Fit)}  # type: ignore[index]
    )
    for metric, (low, high) in METRIC_RANGES.items():
        for name in (metric, f"{metric}_without_seen"):
            value = getattr(fit, name)
            if value is not None and not low <= value <= high:
                raise ValueError(f"{name} is {value}, outside {low:g} to {high:g}")
    return origin, fit


def _parse_bool(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(f"{text[:80]!r} is neither true nor false")
    return text == "true"


_PARSERS = {
    "str": str,
    "int": int,
    "int | None": lambda text: int(text) if text else None,
    "float": float,
    "float | None": lambda text: float(text) if text else None,
    "bool | None": lambda text: _parse_bool(text) if text else None,
}

"""What this installation can do, and whether it is sound."""

from __future__ import annotations

import fnmatch
import importlib
import importlib.resources
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from geneb.base import env
from geneb.base.requirements import core_requirements, extras, is_met
from geneb.base.text import name_some
from geneb.errors import GenebError

ROOMS = (
    "analysis", "benchmark", "embedding", "extractors", "leaderboard",
    "probing", "reporting", "stores", "tasks",
)  # fmt: skip

# What the packages must bring beside their code; the same table as in pyproject.toml.
DATA_FILES = {
    "geneb": ("py.typed",),
    "geneb.benchmark": ("*.json",),
    "geneb.demo": ("*.csv",),
    "geneb.extractors": ("*.toml",),
    "geneb.leaderboard": (
        "submission.schema.json",
        "submissions/*.json",
        "verifications/*.json",
        "site/*.html",
        "site/*.css",
        "site/*.js",
        "site/vendor/*.json",
        "site/vendor/*/*",
    ),
    "geneb.stores": ("FORMAT.md",),
}

# Nothing need be there: submissions are verified after they have come in.
MAY_BE_ABSENT = frozenset({("geneb.leaderboard", "verifications/*.json")})

# The metadata says which extras there are and what they bring, but not what for.
EXTRA_PURPOSES = {
    "models": "running encoders: PyTorch, Transformers, tokenizers, weights",
    "cuml": "fitting probes on NVIDIA GPUs",
    "hub": "task data and weights from the Hugging Face Hub",
    "remote": "reading stores over http(s) and s3",
    "dask": "embedding on a dask.distributed cluster",
    "plots": "drawing figures",
    "parquet": "results as Parquet",
    "test": "running geneb's own tests",
    "all": "everything that geneb itself can use on a CPU",
}

_REINSTALL = "python -m pip install --force-reinstall geneb (in a checkout: pip install -e .)"


@dataclass(frozen=True)
class Check:
    """One thing that must hold for the installation to be sound.

    Attributes
    ----------
    what
        The thing, as a statement.
    holds
        Whether it does.
    found
        What was seen.
    fix
        What to do where it does not hold.
    """

    what: str
    holds: bool
    found: str = ""
    fix: str = ""


@dataclass(frozen=True)
class Extra:
    """An optional part of the installation.

    Attributes
    ----------
    name, purpose
        The extra, and what it is for.
    missing
        The requirements that are not met; empty where the extra is installed.
    install
        The command that brings it.
    """

    name: str
    purpose: str
    missing: tuple[str, ...]
    install: str


@dataclass(frozen=True)
class Backend:
    """A probe backend: its name, whether it can fit here, and if not, why."""

    name: str
    usable: bool
    reason: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """All that was found.

    Attributes
    ----------
    versions
        Of Python and of the packages that matter, by name.
    machine
        Processor, cores, memory and free disk space in bytes.
    blas
        Each loaded BLAS and OpenMP library: kernel, version, threads.
    extras, devices, backends
        What is optional, where models run, what fits probes.
    cuml_accel
        Whether cuml.accel has replaced scikit-learn's solvers.
    models
        How many models the registry holds.
    checks
        What must hold.
    """

    versions: dict[str, str]
    machine: dict[str, Any]
    blas: list[dict[str, Any]]
    extras: list[Extra]
    devices: list[dict[str, Any]]
    backends: list[Backend]
    cuml_accel: bool
    models: int
    checks: list[Check]

    @property
    def sound(self) -> bool:
        """Whether all checks hold."""
        return all(check.holds for check in self.checks)

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {"sound": self.sound, **asdict(self)}


def diagnose(folder: Path) -> Diagnosis:
    """Look at this installation.

    Parameters
    ----------
    folder
        Where the user works; its disk's free space is reported.
    """
    device_check, devices = _devices()
    models_check, models = _models()
    backends = _backends()
    checks = [
        *_room_checks(),
        *_data_file_checks(),
        *map(_requirement_check, core_requirements()),
        models_check,
        device_check,
    ]
    return Diagnosis(
        versions=env.versions(),
        machine={
            "processor": env.processor(),
            "cores": env.cores(),
            "memory_bytes": env.memory_bytes(),
            "free_disk_bytes": shutil.disk_usage(folder).free,
        },
        # Only libraries that the checks have loaded can be seen.
        blas=env.blas(),
        extras=[_extra(name, wanted) for name, wanted in extras().items()],
        devices=devices,
        backends=backends,
        cuml_accel=env.cuml_accel_active(),
        models=models,
        checks=checks,
    )


def _room_checks() -> Iterator[Check]:
    for room in ROOMS:
        what = f"geneb.{room} can be imported"
        try:
            importlib.import_module(f"geneb.{room}")
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what is wrong
            yield Check(what, holds=False, found=_in_words(error), fix=_REINSTALL)
        else:
            yield Check(what, holds=True)


def _data_file_checks() -> Iterator[Check]:
    for package, patterns in DATA_FILES.items():
        for pattern in patterns:
            try:
                found = sorted(_matching(importlib.resources.files(package), pattern))
            except (ImportError, OSError):
                found = []
            holds = bool(found) or (package, pattern) in MAY_BE_ABSENT
            yield Check(
                f"{package} brings {pattern}",
                holds=holds,
                found=name_some(found) or "nothing",
                fix="" if holds else _REINSTALL,
            )


def _matching(folder: Traversable, pattern: str) -> Iterator[str]:
    """Yield the files below a folder that a pattern means; no wildcard stands for a slash."""
    head, slash, rest = pattern.partition("/")
    for entry in folder.iterdir():
        if not fnmatch.fnmatchcase(entry.name, head):
            continue
        if not slash:
            if entry.is_file():
                yield entry.name
        elif entry.is_dir():
            yield from (f"{entry.name}/{name}" for name in _matching(entry, rest))


def _requirement_check(requirement: Requirement) -> Check:
    holds = is_met(requirement)
    found = env.version(requirement.name)
    return Check(
        f"{requirement} is installed",
        holds=holds,
        found=f"{requirement.name} {found}" if found else "not installed",
        fix="" if holds else f"python -m pip install '{requirement}'",
    )


def _models() -> tuple[Check, int]:
    what = "every model of the registry has its class"
    try:
        from geneb.extractors.registry import has_class, model_ids

        ids = model_ids()
        lacking = [model_id for model_id in ids if not has_class(model_id)]
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what is wrong
        return Check(what, holds=False, found=_in_words(error), fix=_REINSTALL), 0
    found = f"no class for {name_some(lacking)}" if lacking else f"{len(ids)} models"
    return Check(what, holds=not lacking, found=found, fix=_REINSTALL if lacking else ""), len(ids)


def _devices() -> tuple[Check, list[dict[str, Any]]]:
    what = "devices can be listed"
    try:
        from geneb.extractors.devices import available_devices

        devices = available_devices()
    except Exception as error:  # noqa: BLE001 - a torch without its libraries raises anything
        return Check(what, holds=False, found=_in_words(error), fix="reinstall torch"), []
    names = ", ".join(device.name for device in devices)
    return Check(what, holds=True, found=names), [asdict(device) for device in devices]


def _backends() -> list[Backend]:
    from geneb.probing.backends import BACKENDS, open_backend

    backends = []
    for name in BACKENDS:
        try:
            open_backend(name)
        except GenebError as error:
            reason = "; ".join(filter(None, (error.problem, error.fix)))
            backends.append(Backend(name, usable=False, reason=reason))
        else:
            backends.append(Backend(name, usable=True))
    return backends


def _extra(name: str, wanted: list[Requirement]) -> Extra:
    return Extra(
        name,
        EXTRA_PURPOSES.get(name, ""),
        tuple(
            str(requirement).partition(";")[0] for requirement in wanted if not is_met(requirement)
        ),
        f"python -m pip install 'geneb[{name}]'",
    )


def _in_words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"

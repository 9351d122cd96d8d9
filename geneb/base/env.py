"""What this process runs on: versions, processor, BLAS, devices. Recorded, never guessed."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import sys
from pathlib import Path
from typing import Any

CORE_PACKAGES = (
    "geneb", "numpy", "scipy", "pandas", "scikit-learn", "zarr", "numcodecs", "h5py", "pydantic",
    "threadpoolctl", "joblib",
)  # fmt: skip
OPTIONAL_PACKAGES = (
    "torch", "transformers", "tokenizers", "safetensors", "huggingface_hub", "fsspec", "s3fs",
    "distributed", "matplotlib", "pyarrow",
    # One library under three names: by conda, and from PyPI for each major version of CUDA.
    "cuml", "cuml-cu12", "cuml-cu13",
)  # fmt: skip


def version(package: str) -> str | None:
    """Return the installed version of a distribution, or None; nothing is imported."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def versions(packages: tuple[str, ...] = CORE_PACKAGES + OPTIONAL_PACKAGES) -> dict[str, str]:
    """Return the versions of Python and of those packages that are installed."""
    found = {"python": platform.python_version()}
    found.update({name: got for name in packages if (got := version(name)) is not None})
    return found


def processor() -> str:
    """Return the processor's model name, as far as the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split("\n"):
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_bytes() -> int:
    """Return how much memory this process may use: the machine's, or its control group's less."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
    except OSError:
        return machine
    return min(machine, int(limit)) if limit.isdecimal() else machine


def free_memory_bytes() -> int:
    """Return how much memory this process could still have; caches of files give way to it."""
    limit = memory_bytes()
    free = _figure(Path("/proc/meminfo"), "MemAvailable:")
    used = _figure(Path("/sys/fs/cgroup/memory.stat"), "anon")
    machine = limit if free is None else free << 10
    return min(machine, limit - (used or 0))


def _figure(path: Path, name: str) -> int | None:
    """Return the number behind a name at the start of a line, where the system tells it."""
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.split()[:1] == [name]), None)


def blas() -> list[dict[str, Any]]:
    """Return what threadpoolctl says of each loaded BLAS and OpenMP library.

    Paths are left out: they tell about a machine, not about numbers.
    """
    from threadpoolctl import threadpool_info

    wanted = ("user_api", "internal_api", "version", "architecture", "num_threads")
    rows = [{key: row[key] for key in wanted if row.get(key)} for row in threadpool_info()]
    return sorted(rows, key=str)


def cuml_accel_active() -> bool:
    """Return whether cuml.accel has taken over scikit-learn in this process.

    It does when it is asked to (``cuml.accel.install()``, ``python -m cuml.accel``, IPython's
    ``%load_ext``), and by a variable that child processes inherit; not by being imported.
    """
    if os.environ.get("CUML_ACCEL_ENABLED", "").strip().lower() not in ("", "0", "false"):
        return True
    module = sys.modules.get("cuml.accel")
    enabled = getattr(module, "enabled", lambda: True)  # the first versions had no such function
    return module is not None and bool(enabled())


def importable(module: str) -> bool:
    """Return whether a top-level module could be imported; it is not imported."""
    return importlib.util.find_spec(module) is not None

"""Compare frozen representations of DNA foundation models.

Embed once into a store that can be trusted and shared, then probe, compare and report as often
as anybody likes without touching an encoder.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

__version__ = "0.1.0"

_API = {
    "embed": "geneb.embedding.run",
    "open_store": "geneb.stores",
    "probe": "geneb.probing.run",
}
__all__ = ["__version__", "embed", "open_store", "probe"]

_ROOMS = ("benchmark", "extractors", "leaderboard", "stores")
if _missing := [room for room in _ROOMS if importlib.util.find_spec(f"geneb.{room}") is None]:
    _message = (
        f"geneb's rooms {', '.join(_missing)} are not importable as geneb.<room>: this is a bare "
        "source folder, not an installation. Run `python -m pip install -e .` in the checkout "
        "(or `python -m pip install .`)."
    )
    raise ImportError(_message)


def __getattr__(name: str) -> Any:
    if name in _API:
        return getattr(importlib.import_module(_API[name]), name)
    raise AttributeError(f"module 'geneb' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

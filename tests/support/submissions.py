"""Submissions in the published schema."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

from geneb.benchmark.spec import load_spec


def submission(model_id: str, *, start: float = 0.5, step: float = 0.001) -> dict[str, Any]:
    """A complete submission; the tasks' MCCs rise from the first to the last."""
    spec = load_spec()
    return {
        "schema_version": "1.0",
        "model_id": model_id,
        "harness_version": "geneb-0.1.0",
        "meta": {"display": model_id.title(), "params": 1000, "url": None},
        "results": {
            regime: {
                task: {"MCC": start + step * place, "Acc": 0.75, "F1": 0.5}
                for place, task in enumerate(spec.task_ids)
            }
            for regime in spec.regimes
        },
    }


def write_submission(folder: Path, document: dict[str, Any], name: str | None = None) -> Path:
    """Write it as ``<model id>.json``."""
    path = folder / f"{name or document['model_id']}.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def harmless(text: str) -> bool:
    """Whether no character of a text, line feeds aside, does anything but stand in its line."""
    kinds = {unicodedata.category(char) for char in text.replace("\n", "")}
    return not kinds & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}

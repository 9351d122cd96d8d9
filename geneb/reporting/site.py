"""The leaderboard's site: one page that needs no network and takes its data for text.

Everything is in ``index.html``, so that it works from a folder as well as from any host: style,
libraries, scripts and data. A content security policy lets exactly these scripts and this style
run, by their digests. The data are JSON in which no character can end the element around them.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from geneb.base.files import atomic_write
from geneb.base.text import plain
from geneb.benchmark.sizes import load_test_sizes
from geneb.benchmark.spec import ModelFacts, ModelMeta, Spec
from geneb.errors import InputError
from geneb.reporting.submission import MAX_PARAMS

PAGE = "index.html"
LICENCES = "licences.txt"
# In the order in which they run: each uses what stands before it.
SCRIPTS = (
    "vendor/d3/d3.min.js",
    "vendor/plot/plot.umd.min.js",
    "dom.js",
    "board.js",
    "state.js",
    "words.js",
    "downloads.js",
    "sheets.js",
    "columns.js",
    "charts.js",
    "views.js",
    "details.js",
    "app.js",
)

_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
# What could end a script element early, or changes between the file and the parsed page.
_UNFIT_IN_SCRIPT = re.compile(r"</script|<!--|[\r\0]", re.IGNORECASE)
_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}
_FACTS = (
    "architecture",
    "tokenization",
    "pretraining_data",
    "hub_id",
    "weights_note",
    "licence",
    "code_licence",
    "licence_note",
)


def build_site(
    out: Path,
    leaderboard: Mapping[str, Any],
    tasks: Mapping[str, Any],
    facts: ModelMeta,
    spec: Spec,
) -> list[Path]:
    """Write the site's files into a folder; their bytes follow from the arguments alone.

    Parameters
    ----------
    out
        The folder; made where it does not exist. Other files in it are left alone.
    leaderboard, tasks
        What ``leaderboard.json`` and ``leaderboard_tasks.json`` hold.
    facts
        What is published about the models.

    Returns
    -------
    list of Path
        The files written.

    Raises
    ------
    InputError
        If the leaderboard is not in its published shape, or the two do not belong together.
    """
    content = render_site(leaderboard, tasks, facts, spec)
    out.mkdir(parents=True, exist_ok=True)
    for name, text in content.items():
        atomic_write(out / name, text)
    return [out / name for name in content]


def render_site(
    leaderboard: Mapping[str, Any], tasks: Mapping[str, Any], facts: ModelMeta, spec: Spec
) -> dict[str, str]:
    """Return the text of each of the site's files, by name; see `build_site`."""
    page = _page(site_data(leaderboard, tasks, facts, spec), spec)
    return {PAGE: page, LICENCES: _licences()}


def site_data(
    leaderboard: Mapping[str, Any], tasks: Mapping[str, Any], facts: ModelMeta, spec: Spec
) -> dict[str, Any]:
    """Return what the page's scripts read: strangers' text made plain, scores by position.

    Scores are lists in the order of ``models``, ``categories`` and ``tasks``, so that no name from
    a submission is ever a key.
    """
    rows = _by_model(leaderboard, spec, "leaderboard")
    task_rows = _by_model(tasks, spec, "leaderboard_tasks")
    if {key: set(found) for key, found in rows.items()} != {
        key: set(found) for key, found in task_rows.items()
    }:
        raise InputError(
            "the two leaderboard files do not belong together",
            expected="the same models in each regime of both",
            fix="build both from the same submissions",
        )
    ids = sorted({model for found in rows.values() for model in found})
    sizes = load_test_sizes()
    models = _told_apart(
        [
            _model(_first(rows, model), facts.find(model), f"leaderboard: {plain(model)}")
            for model in ids
        ]
    )
    return {
        "name": spec.name,
        "protocol": spec.protocol.id,
        "regimes": list(spec.regimes),
        "metrics": list(spec.metrics),
        "categories": list(spec.categories),
        "tasks": [
            {
                "id": task.id,
                "label": task.label,
                "category": spec.categories.index(task.category),
                "test_rows": sizes.get(task.id),
            }
            for task in spec.tasks
        ],
        "models": models,
        "scores": {
            regime: {
                metric: [
                    _scores(rows[regime].get(model), task_rows[regime].get(model), metric, spec)
                    for model in ids
                ]
                for metric in spec.metrics
            }
            for regime in spec.regimes
        },
    }


def _by_model(
    document: Mapping[str, Any], spec: Spec, where: str
) -> dict[str, dict[str, Mapping[str, Any]]]:
    """Return regime -> model id -> row."""
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    for regime in spec.regimes:
        rows = _field(_field(document, "data", Mapping, where), regime, Sequence, f"{where}.data")
        found[regime] = {
            _field(row, "model", str, f"{where}.data.{regime}.{position}"): row
            for position, row in enumerate(rows)
        }
        if len(found[regime]) != len(rows):
            raise InputError("a model stands twice", where=f"{where}.data.{regime}")
    return found


def _first(rows: Mapping[str, Mapping[str, Any]], model: str) -> Mapping[str, Any]:
    return next(found[model] for found in rows.values() if model in found)


def _field(row: Any, name: str, kind: type, where: str) -> Any:
    value = row.get(name) if isinstance(row, Mapping) else None
    if isinstance(value, kind) and isinstance(value, bool) == (kind is bool):
        return value
    raise InputError(
        "this is not in the published shape",
        where=f"{where}.{name}",
        expected=kind.__name__,
        found=type(value).__name__,
    )


def _model(row: Mapping[str, Any], facts: ModelFacts | None, where: str) -> dict[str, Any]:
    return {
        "id": plain(row["model"]),
        "display": plain(_field(row, "disp", str, where)),
        "params": _parameters(row, where),
        "provenance": plain(_field(row, "submitted", str, where)),
        "official": _field(row, "official", bool, where),
        "zero_shot": _field(row, "zero_shot", bool, where),
        "facts": None if facts is None else _published(facts),
    }


def _parameters(row: Mapping[str, Any], where: str) -> int:
    count = _field(row, "params", int, where)
    if 1 <= count <= MAX_PARAMS:
        return count
    raise InputError(
        "this is no number of parameters",
        where=f"{where}.params",
        expected=f"from 1 to {MAX_PARAMS}",
        found="less" if count < 1 else "more",
    )


def _told_apart(models: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the models, with the id in the shown name of those that would look the same."""
    times = Counter(model["display"].casefold() for model in models)
    return [
        {**model, "display": f"{model['display']} [{model['id']}]"}
        if times[model["display"].casefold()] > 1
        else model
        for model in models
    ]


def _published(facts: ModelFacts) -> dict[str, str | None]:
    found = {name: getattr(facts, name) for name in _FACTS}
    shown = {name: None if text is None else plain(text, 1000) for name, text in found.items()}
    return {**shown, "url": _checked_url(facts.url)}


def _checked_url(url: str | None) -> str | None:
    """Return an address if it is of the web; whatever else it is must not become a link."""
    if url is None:
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return plain(url, 1000) if parts.scheme in ("http", "https") and parts.hostname else None


def _scores(
    row: Mapping[str, Any] | None, task_row: Mapping[str, Any] | None, metric: str, spec: Spec
) -> dict[str, Any] | None:
    if row is None or task_row is None:
        return None
    where = plain(row["model"])
    categories = _field(row, f"cat_{metric}", Mapping, where)
    tasks = _field(task_row, f"task_{metric}", Mapping, where)
    return {
        "macro": _score(row.get(f"macro_{metric}"), f"{where}.macro_{metric}"),
        "micro": _score(row.get(f"micro_{metric}"), f"{where}.micro_{metric}"),
        "categories": [
            _score(categories.get(name), f"{where}.cat_{metric}.{name}") for name in spec.categories
        ],
        "tasks": [
            _score(tasks.get(name), f"{where}.task_{metric}.{name}") for name in spec.task_ids
        ],
    }


def _score(value: Any, where: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool) and -1 <= value <= 1:
        return float(value)
    raise InputError(
        "this is not a score", where=where, expected="from -1 to 1", found=plain(repr(value))
    )


def _embedded_json(value: Any) -> str:
    """Return JSON in which nothing is markup, for inside a script element."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_ESCAPES)


def _source(name: str) -> str:
    return (
        files("geneb.leaderboard").joinpath("site").joinpath(*name.split("/")).read_bytes().decode()
    )


def _script(name: str) -> str:
    text = _source(name)
    if found := _UNFIT_IN_SCRIPT.search(text):
        raise InputError(
            "this script cannot stand inside a page", where=name, found=repr(found.group())
        )
    return text


def _allowed(text: str) -> str:
    """Return the source expression of a policy that allows an element with this content."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _policy(scripts: Sequence[str], style: str) -> str:
    return "; ".join(
        (
            "default-src 'none'",
            "script-src " + " ".join(map(_allowed, scripts)),
            "style-src " + _allowed(style),
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _page(data: Mapping[str, Any], spec: Spec) -> str:
    scripts = [_script(name) for name in SCRIPTS]
    style = _source("style.css")
    counts = Counter(task.category for task in spec.tasks)
    largest, size = counts.most_common(1)[0]
    single = [name for name in spec.categories if counts[name] == 1]
    words = {
        "name": spec.name,
        "protocol": spec.protocol.id,
        "tasks": str(len(spec.tasks)),
        "categories": str(len(spec.categories)),
        "single": ", ".join(single) or "there is none",
        "largest": f"{largest} with its {size}",
    }
    parts = {key: html.escape(text) for key, text in words.items()}
    parts["policy"] = _policy(scripts, style)
    parts["style"] = style
    parts["scripts"] = "\n".join(f"<script>{text}</script>" for text in scripts)
    parts["data"] = _embedded_json(data)
    # One pass: what is put in is never looked through for placeholders.
    return _PLACEHOLDER.sub(lambda found: parts[found.group(1)], _source("template.html"))


def vendored() -> list[dict[str, Any]]:
    """Return the manifest of the vendored libraries: packages, licences, files and digests."""
    return json.loads(_source("vendor/manifest.json"))


def _licences() -> str:
    texts = []
    for entry in vendored():
        name = entry["package"]
        version = entry.get("version", f"as bundled in {entry.get('bundled_in')}")
        text = next(
            _source(f"vendor/{one['file']}") for one in entry["files"] if "LICENSE" in one["file"]
        )
        texts.append(f"{name} ({version}), {entry['licence']}\n\n{text.strip()}\n")
    return "\n----\n\n".join(texts)

"""A model card: what is known about a model and how it was run, and what its people must add."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from geneb.base.text import markdown
from geneb.benchmark.spec import load_model_meta, load_spec
from geneb.errors import InputError
from geneb.extractors.registry import models
from geneb.reporting.aggregate import aggregate
from geneb.reporting.formats import cell_text
from geneb.results import METRICS, RUN_FILE, ResultsFolder
from geneb.stores import Store, open_store
from geneb.stores.model import Counts

FILL_IN = "**to be filled in**"
_LONG = 1000
_QUESTIONS = (
    ("Training data", "What was it trained on: species, assemblies, versions, number of bases?"),
    (
        "Overlap with the benchmark",
        "Which of the benchmark's sequences or regions were in its training data, and who looked?",
    ),
    ("Choice of layer and pooling", "How were they chosen, and were test sets looked at for it?"),
    ("Known limits", "Where should it not be used?"),
    ("Contact", "Who answers questions?"),
)
_FACTS = {
    "params": "parameters",
    "architecture": "architecture",
    "tokenization": "tokenization",
    "pretraining_data": "pretraining data",
    "hub_id": "weights",
    "weights_note": "where the weights lie",
    "url": "page",
    "licence": "licence of the weights",
    "code_licence": "licence of the code",
    "licence_note": "note on the licence",
}
_ASKED = ("params", "architecture", "tokenization", "licence")  # of a model without published facts


def make_card(paths: Sequence[Path]) -> str:
    """Return a model card in Markdown.

    Parameters
    ----------
    paths
        A store, a results folder, or both, of one model.

    Raises
    ------
    NotFoundError, InputError, StoreError
        If they cannot be read, or are of different models or embeddings.
    """
    folders = [ResultsFolder.open(path) for path in paths if (path / RUN_FILE).exists()]
    stores = [open_store(path) for path in paths if not (path / RUN_FILE).exists()]
    made = {(one.model_id, one.fingerprint_id) for one in stores}
    made |= {(one.info.model_id, one.info.store_fingerprint) for one in folders}
    if len(made) != 1:
        raise InputError(
            "a card is about one model, embedded in one way",
            found=", ".join(f"{model} ({fingerprint[:12]})" for model, fingerprint in sorted(made)),
        )
    ((model_id, fingerprint),) = made
    sections = [_model(model_id), _questions()]
    sections += [_store(store) for store in stores]
    if not stores:
        sections.append(f"## Embeddings\n\nStore fingerprint: `{fingerprint}`")
    sections += [_results(folder) for folder in folders]
    return "\n\n".join(sections) + "\n"


def _model(model_id: str) -> str:
    facts = load_model_meta().find(model_id)
    registered = models().get(model_id)
    known = facts.model_dump() if facts else {}
    rows = {"id": model_id}
    rows |= {label: known[name] for name, label in _FACTS.items() if known.get(name) is not None}
    if registered:
        rows["description"] = registered.description
    missing = [_FACTS[name] for name in _ASKED if not known.get(name)]
    lines = [_table(rows), *(f"\n{label}: {FILL_IN}" for label in missing)]
    named = facts or registered
    return f"# {markdown(named.display if named else model_id)}\n\n" + "\n".join(lines)


def _questions() -> str:
    return "\n\n".join(f"## {title}\n\n{ask}\n\n{FILL_IN}" for title, ask in _QUESTIONS)


def _store(store: Store) -> str:
    fingerprint = store.fingerprint.as_read()
    parameters = fingerprint.pop("parameters")
    rows = {"fingerprint": store.fingerprint_id, **_known(fingerprint)}
    rows |= {f"parameter {name}": value for name, value in _known(parameters).items()}
    rows |= {"sealed": "yes" if store.sealed else "no", **_known(_ran_on(store))}
    return f"## Embeddings\n\n{_table(rows)}\n\n{_counts(store)}"


def _known(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _ran_on(store: Store) -> dict[str, Any]:
    """Return what the runs that wrote the store had in common, or each of what they had not."""
    runs = store.runs()
    found: dict[str, list[str]] = {}
    for run in runs:
        for name, value in [*run.versions.items(), *run.platform.items()]:
            if isinstance(value, str) and value not in found.setdefault(name, []):
                found[name].append(value)
    return {"runs": len(runs), **{name: ", ".join(found[name]) for name in sorted(found)}}


def _counts(store: Store) -> str:
    """Return a table of all tasks' rows, and how many the model did not see as they are."""
    names = ["truncated", "non_acgt", "empty"]
    tasks = [store.task(task_id) for task_id in store.task_ids()]
    rows = []
    for task in tasks:
        splits = task.manifest.splits.values()
        counted = [_total([one.counts for one in splits], name) for name in names]
        rows.append([task.id, sum(one.rows for one in splits), *counted])
    head = "| task | rows | truncated | with other letters than ACGT | empty |"
    lines = [head, "| --- | ---: | ---: | ---: | ---: |"]
    lines += [
        f"| {markdown(str(row[0]))} | " + " | ".join(f"{n:,}" for n in row[1:]) + " |"
        for row in rows
    ]
    return "\n".join(lines)


def _total(counts: Sequence[Counts], name: str) -> int:
    return sum(getattr(one, name) for one in counts)


def _results(folder: ResultsFolder) -> str:
    info = folder.info
    fits = [fit for task in folder.current() for fit in task.fits]
    rows = {
        "protocol": info.protocol,
        "seeds": ", ".join(map(str, info.seeds)),
        "backend": info.backend,
        "store fingerprint": info.store_fingerprint,
        **info.versions,
        "fits": len(fits),
        "fits that did not converge": sum(not fit.converged for fit in fits),
    }
    return f"## Probe\n\n{_table(rows)}\n\n" + "\n".join(_scores(folder))


def _scores(folder: ResultsFolder) -> Iterator[str]:
    spec = load_spec()
    yield "| regime | tasks | " + " | ".join(f"macro {metric}" for metric in METRICS) + " |"
    yield "| --- | ---: |" + " ---: |" * len(METRICS)
    for regime, tasks in folder.summary().items():
        found = [
            aggregate({task: scores[metric] for task, scores in tasks.items()}, spec)
            for metric in METRICS
        ]
        macro = " | ".join(cell_text(one.macro) for one in found)
        yield f"| {markdown(regime)} | {len(found[0].tasks)}/{len(spec.tasks)} | {macro} |"


def _table(rows: Mapping[str, Any]) -> str:
    lines = ["| | |", "| --- | --- |"]
    lines += [f"| {markdown(name)} | {_cell(value)} |" for name, value in rows.items()]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    shown = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    return markdown(shown, limit=_LONG)

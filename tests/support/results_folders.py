"""Results folders and the published runner's files, written without probing anything."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from geneb.benchmark.sizes import load_test_sizes
from geneb.benchmark.spec import load_spec
from geneb.probing.folder import open_for_writing
from geneb.results import Fit, Origin, RunInfo, TaskResults

SPEC = load_spec()
LEGACY_SUFFIXES = {"full": "", "10shot": "_k-10", "1shot": "_k-1"}


def run_info(model_id: str = "some-model", **changes: Any) -> RunInfo:
    """The run of a probe by the published protocol."""
    values = {
        "model_id": model_id,
        "store_fingerprint": "a" * 64,
        "protocol": SPEC.protocol.id,
        "seeds": list(SPEC.seeds),
        "probe": "LogisticRegression() on float32 rows",
        "backend": "sklearn",
        "versions": {"scikit-learn": "1.9.1", "scipy": "1.17.1", "numpy": "2.4.6"},
        "blas": [{"user_api": "blas", "internal_api": "openblas", "num_threads": 1}],
        "regimes": list(SPEC.regimes),
        "environment": {"versions": {"python": "3.11.7"}, "cores": 2},
    }
    return RunInfo(**{**values, **changes})


def write_results(
    out: Path,
    info: RunInfo,
    tasks: Iterable[str] = SPEC.task_ids,
    regimes: Iterable[str] = SPEC.regimes,
) -> Path:
    """Write a results folder with these tasks and regimes; return the folder of the model."""
    folder, _ = open_for_writing(out, info)
    for place, task in enumerate(tasks):
        origin = Origin(
            model=info.model_id,
            store_fingerprint=info.store_fingerprint,
            embeddings_digest=f"{place:064x}",
            task=task,
            backend=info.backend,
            protocol=info.protocol,
            run_key=info.key,
        )
        fits = {regime: list(_fits(task, regime, place, info.seeds)) for regime in regimes}
        folder.write_task(TaskResults.join(origin, fits))
    return folder.path


def _fits(task: str, regime: str, place: int, seeds: list[int]) -> Iterator[Fit]:
    n_test = load_test_sizes().get(task, 40)
    for step, seed in enumerate([None] if regime == "full" else seeds):
        right = n_test // 2 + place + step
        yield Fit(
            regime=regime,
            seed=seed,
            MCC=0.1 + place / 777 + step / 7777,
            Acc=right / n_test,
            F1=right / n_test - 1 / 77,
            n_train=1000,
            n_test=n_test,
            n_classes=2,
            predicted_classes=2,
            short_classes=0,
            unseen_classes=0,
            untested_classes=0,
            seen_rows=0,
            MCC_without_seen=None,
            Acc_without_seen=None,
            F1_without_seen=None,
            n_iter=100 + step,
            converged=step != 3,
            objective=0.5,
            gradient_norm=1e-5 * (1 + step),
            seconds=0.5,
        )


def legacy_name(task: str, regime: str, stem: str = "my_model") -> str:
    """How the published runner calls the file of one task and regime."""
    return f"results_{stem}_{task}_MyExtractor{LEGACY_SUFFIXES[regime]}.json"


def write_legacy(folder: Path, tasks: Iterable[str] = SPEC.task_ids) -> Path:
    """Write the published runner's files of these tasks, in all regimes."""
    folder.mkdir(parents=True, exist_ok=True)
    for place, task in enumerate(tasks):
        n_test = load_test_sizes()[task]
        for regime in SPEC.regimes:
            accuracy = (n_test // 2 + place) / n_test
            values = {"mcc": 0.1 + place / 777, "accuracy": accuracy, "f1_score": accuracy / 2}
            content = {name: {"mean": value, "std": 0.01} for name, value in values.items()}
            (folder / legacy_name(task, regime)).write_text(json.dumps(content), encoding="utf-8")
    return folder

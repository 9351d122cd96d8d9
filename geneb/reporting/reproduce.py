"""``geneb submission reproduce``: a submission's scores computed again from its store.

Four questions, each of which must hold: are the store's bytes what it states; are its rows and
labels those of the task data; is it the store that the submission's evidence names; and does the
probe give the submitted scores. What cannot be asked of a store alone, whether its vectors are
the model's, is left to the embedding of a sample of rows (see `geneb.reporting.verification`).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from geneb.base.canonical import file_sha256
from geneb.base.env import processor, versions
from geneb.base.progress import Progress, Silent
from geneb.benchmark.spec import load_spec
from geneb.errors import Fault, GenebError, InputError
from geneb.probing.backends import SklearnBackend, open_backend
from geneb.probing.protocol import GENEB_LR_1, choose_protocol
from geneb.probing.run import run_probe
from geneb.reporting.claims import Claims, read_claims
from geneb.reporting.pinned import compare_with_csv
from geneb.reporting.score_comparison import (
    beyond_tolerance,
    choose_comparison,
    score_differences,
)
from geneb.reporting.verification import (
    Comparison,
    Environment,
    ScoreDifference,
    TaskEvidence,
    VerificationRecord,
)
from geneb.results import summarise
from geneb.stores import Store, open_store
from geneb.stores.verify import verify_store
from geneb.tasks.select import find_task_files, select


@dataclass(frozen=True)
class Reproduction:
    """What computing a submission again found.

    Attributes
    ----------
    tasks
        Ids of the tasks that were compared.
    comparison
        How scores were compared; None where it did not come to that.
    differences
        All values that are not, to the bit, the submitted ones; largest first.
    faults
        Everything that does not hold.
    record
        None where something does not hold.
    """

    model_id: str
    tasks: list[str]
    comparison: Comparison | None
    differences: list[ScoreDifference]
    faults: list[Fault]
    record: VerificationRecord | None

    def as_json(self) -> dict[str, Any]:
        """Return the outcome as a JSON value."""
        return {
            "model_id": self.model_id,
            "level": self.record.level if self.record else None,
            "tasks": self.tasks,
            "comparison": self.comparison and self.comparison.model_dump(mode="json"),
            "differences": [one.model_dump(mode="json") for one in self.differences],
            "faults": [str(fault) for fault in self.faults],
        }


def reproduce(
    submission: Path,
    *,
    store: Path,
    data: Path,
    tasks: Sequence[str] = (),
    sample: int | None = None,
    progress: Progress | None = None,
) -> Reproduction:
    """Probe a submission's store again and compare every score.

    Parameters
    ----------
    submission
        Its JSON file; the evidence is looked for beside it.
    store
        The embedding store that was shared with it.
    data
        Folder of the task CSVs, from the benchmark's pinned dataset.
    tasks
        Ids, labels, categories or globs; all tasks of the benchmark where none are given.
    sample
        Take only so many of them, drawn at random.

    Raises
    ------
    InputError, NotFoundError, StoreError
        If nothing was compared: something is missing, or is not what it should be at all.
    """
    claims = read_claims(submission)
    opened = open_store(store)
    if opened.model_id != claims.model_id:
        raise InputError(
            "this store is of another model",
            where=str(store),
            expected=claims.model_id,
            found=opened.model_id,
        )
    chosen = _draw(select(tasks, load_spec().task_ids, load_spec()), sample)
    files = find_task_files(data, chosen, load_spec())
    _check_presence(opened, chosen)
    progress = progress or Silent()
    progress.say("verifying the store")
    faults = verify_store(store, progress=progress).faults
    if not faults:
        progress.say("comparing rows and labels with the task data")
        evidence, faults = _compare_rows(opened, files)
        faults += _other_store_faults(opened, claims, chosen)
    if faults:
        return Reproduction(claims.model_id, chosen, None, [], faults, None)
    return _compare_scores(claims, opened, evidence, progress)


def _draw(task_ids: list[str], sample: int | None) -> list[str]:
    """Return the tasks, or some that nobody could foresee, in the same order."""
    if sample is None:
        return task_ids
    if not 1 <= sample <= len(task_ids):
        raise InputError(
            "so many tasks cannot be drawn",
            expected=f"from 1 to {len(task_ids)}",
            found=str(sample),
        )
    drawn = set(random.SystemRandom().sample(task_ids, sample))
    return [task for task in task_ids if task in drawn]


def _check_presence(store: Store, chosen: Sequence[str]) -> None:
    missing = sorted(set(chosen) - set(store.task_ids()))
    if missing:
        raise InputError(
            f"the store lacks {len(missing)} of the {len(chosen)} tasks to compare",
            where=str(store.path),
            found=", ".join(missing[:10]) + (" and others" if len(missing) > 10 else ""),
            fix="ask the contributor for them; with --tasks, fewer are compared",
        )


def _compare_rows(
    store: Store, files: Sequence[Path]
) -> tuple[dict[str, TaskEvidence], list[Fault]]:
    evidence: dict[str, TaskEvidence] = {}
    faults: list[Fault] = []
    for path in files:
        try:
            stored = store.task(path.stem)
            found, rows = compare_with_csv(stored, path, str(store.path))
        except GenebError as error:
            faults.append(Fault(error.where or str(path), error.problem, found=error.found))
            continue
        faults += found
        evidence[stored.id] = TaskEvidence(
            csv_sha256=file_sha256(path), manifest_sha256=stored.manifest.digest, rows=rows
        )
    return evidence, faults


def _other_store_faults(store: Store, claims: Claims, chosen: Sequence[str]) -> Iterator[Fault]:
    """Yield where the store is not the one that the submission's evidence names."""
    if claims.evidence is None:
        return
    stated, found = claims.evidence.store.fingerprint_id, store.fingerprint_id
    if stated != found:
        yield Fault(str(store.path), "this is not the store that was submitted", stated, found)
        return
    for task in chosen:
        digest = store.task(task).manifest.digest
        entry = claims.evidence.tasks.get(task)
        if entry is None or entry.embeddings_digest != digest:
            yield Fault(
                f"{store.path}, task {task}",
                "these are not the embeddings that were submitted",
                entry.embeddings_digest if entry else "no statement on this task",
                digest,
            )


def _compare_scores(
    claims: Claims, store: Store, evidence: dict[str, TaskEvidence], progress: Progress
) -> Reproduction:
    chosen = list(evidence)
    (outcome,) = run_probe(
        [store],
        out=None,
        tasks=chosen,
        protocol=choose_protocol(GENEB_LR_1.id),
        backend=open_backend(SklearnBackend.name),
        progress=progress,
    )
    comparison = choose_comparison(claims.evidence, outcome.info)
    reproduced = summarise(outcome.results, outcome.info)
    done = [task.origin.task for task in outcome.results]
    differences = score_differences(claims.summary, reproduced, done)
    faults = [*outcome.failures, *beyond_tolerance(differences, comparison)]
    record = None
    if not faults:
        complete = set(load_spec().task_ids) == set(chosen)
        record = VerificationRecord(
            model_id=claims.model_id,
            level="scores-verified" if complete else "scores-sampled",
            submission_sha256=claims.sha256,
            store_fingerprint=store.fingerprint_id,
            protocol=outcome.info.protocol,
            comparison=comparison,
            environment=Environment(
                backend=outcome.info.backend,
                versions=versions(),
                blas=outcome.info.blas,
                processor=processor(),
            ),
            tasks=evidence,
            differences=differences,
        )
    return Reproduction(claims.model_id, chosen, comparison, differences, faults, record)

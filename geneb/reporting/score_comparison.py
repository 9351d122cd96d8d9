"""Comparing submitted scores with scores computed again: exactly, or within a tolerance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from geneb.benchmark.spec import load_spec
from geneb.errors import Fault
from geneb.probing.calibration import MACRO_TOLERANCE, TASK_TOLERANCE
from geneb.reporting.aggregate import aggregate
from geneb.reporting.evidence import ProbeEvidence
from geneb.reporting.verification import Comparison, ScoreDifference
from geneb.results import METRICS, RunInfo, Summary


def choose_comparison(stated: ProbeEvidence | None, here: RunInfo) -> Comparison:
    """Return how scores made here compare with submitted ones: exactly, if nothing differs.

    Parameters
    ----------
    stated
        What the submitted scores were made with; None where nobody says.
    """
    reason = _why_not_exactly(stated, here)
    if reason is None:
        return Comparison(kind="exact", reason=None, task_tolerance=0.0, macro_tolerance=0.0)
    return Comparison(
        kind="tolerance",
        reason=reason,
        task_tolerance=TASK_TOLERANCE,
        macro_tolerance=MACRO_TOLERANCE,
    )


def _why_not_exactly(stated: ProbeEvidence | None, here: RunInfo) -> str | None:
    if stated is None:
        return "the submission has no evidence of what made its scores"
    differing = [
        name
        for name in ("protocol", "backend", "versions", "blas")
        if getattr(stated, name) != getattr(here, name)
    ]
    return f"other {', '.join(differing)} than in the evidence" if differing else None


def missing_scores(wanted: Summary, found: Summary) -> Iterator[Fault]:
    """Yield the tasks that have scores in one summary and none in the other."""
    for regime, tasks in wanted.items():
        for task in tasks:
            if task not in found.get(regime, {}):
                yield Fault(f"{regime}, {task}", "there is no score to compare with")


def score_differences(
    submitted: Summary, reproduced: Summary, task_ids: Sequence[str]
) -> list[ScoreDifference]:
    """Return every value that is not the same to the bit, the largest difference first.

    Macro scores are compared where the tasks are all of the benchmark.

    Parameters
    ----------
    task_ids
        Tasks that have scores on both sides.
    """
    found = [
        one
        for regime in load_spec().regimes
        for metric in METRICS
        for one in _differences(submitted, reproduced, task_ids, regime, metric)
    ]
    return sorted(found, key=lambda one: -one.size)


def _differences(
    submitted: Summary, reproduced: Summary, task_ids: Sequence[str], regime: str, metric: str
) -> Iterator[ScoreDifference]:
    theirs, ours = (
        {task: scores.get(regime, {})[task][metric] for task in task_ids}
        for scores in (submitted, reproduced)
    )
    pairs: list[tuple[str | None, float | None, float | None]] = [
        (task, theirs[task], ours[task]) for task in task_ids
    ]
    spec = load_spec()
    pairs.append((None, aggregate(theirs, spec).macro, aggregate(ours, spec).macro))
    for task, stated, found in pairs:
        if stated is not None and found is not None and stated != found:
            yield ScoreDifference(
                regime=regime, task=task, metric=metric, submitted=stated, reproduced=found
            )


def beyond_tolerance(
    differences: Sequence[ScoreDifference], comparison: Comparison
) -> Iterator[Fault]:
    """Yield the differences that a comparison does not allow."""
    for one in differences:
        tolerance = comparison.tolerance(one)
        if one.size > tolerance:
            allowed = f"give or take {tolerance:g}" if tolerance else "exactly"
            yield Fault(
                f"{one.regime}, {one.task or 'macro'}, {one.metric}",
                "the submitted score is not what the probe gives",
                expected=f"{one.reproduced!r}, {allowed}",
                found=repr(one.submitted),
            )

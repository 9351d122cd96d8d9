"""Scores that cannot come from the benchmark's test sets, whatever the model.

An accuracy is a multiple of 1/n for n test rows, and the mean over the few-shot regimes' seeds
one of 1/(seeds x n). Some combinations of the three metrics cannot occur at all. Both are told
as warnings: they say that something was mixed up, not what.
"""

from __future__ import annotations

from collections.abc import Iterator

from geneb.benchmark.sizes import load_test_sizes
from geneb.benchmark.spec import load_spec
from geneb.errors import Fault
from geneb.reporting.document import json_path
from geneb.results import Scores, Summary

# A file whose numbers have this many decimals was not rounded. What lies between is double
# precision's own error, far below the smallest difference that one test row makes.
_FULL_PRECISION = 12
_SLACK = 1e-9


def implausible(summary: Summary) -> Iterator[Fault]:
    """Yield a warning for each score that cannot be, with its JSON path.

    Parameters
    ----------
    summary
        Scores within their ranges; regimes and tasks may be missing.
    """
    decimals = decimals_of(summary)
    sizes = load_test_sizes()
    for regime, tasks in summary.items():
        seeds = 1 if regime == "full" else len(load_spec().seeds)
        for task, scores in tasks.items():
            if task in sizes:
                yield from _check_accuracy(
                    (regime, task), scores["Acc"], sizes[task], seeds, decimals
                )
            if decimals >= _FULL_PRECISION:
                yield from _check_together((regime, task), scores)


def decimals_of(summary: Summary) -> int:
    """Return the decimals that the scores were rounded to: the most that any of them has."""
    return max(
        (
            _decimals(repr(value))
            for tasks in summary.values()
            for scores in tasks.values()
            for value in scores.values()
        ),
        default=0,
    )


def _decimals(text: str) -> int:
    mantissa, _, exponent = text.partition("e")
    return len(mantissa.partition(".")[2]) - int(exponent or 0)


def _check_accuracy(
    place: tuple[str, str], accuracy: float, size: int, seeds: int, decimals: int
) -> Iterator[Fault]:
    steps = size * seeds
    # A cut number lies up to a whole unit of its last decimal below the true one.
    tolerance = _SLACK if decimals >= _FULL_PRECISION else 10.0**-decimals
    nearest = round(accuracy * steps)
    if abs(nearest / steps - accuracy) > tolerance + _SLACK:
        rows = f"{size:,} test rows" + (f" and {seeds} seeds" if seeds > 1 else "")
        yield Fault(
            json_path(("results", *place, "Acc")),
            "this accuracy is not possible on this task's test set",
            expected=f"a multiple of 1/{steps} ({rows}), such as {nearest / steps:.9g}",
            found=repr(accuracy),
            fix="compare the task's CSV with the benchmark's: `geneb task show`",
        )


def _check_together(place: tuple[str, str], scores: Scores) -> Iterator[Fault]:
    perfect = {metric: value >= 1 - _SLACK for metric, value in scores.items()}
    problem = None
    if any(perfect.values()) and not all(perfect.values()):
        problem = "one metric says that no row was wrong, another that some were"
    elif (scores["Acc"] <= _SLACK) != (scores["F1"] <= _SLACK):
        problem = "accuracy and macro-F1 are 0 together or not at all"
    elif scores["Acc"] <= _SLACK < scores["MCC"]:
        problem = "where no row was right, MCC is not above 0"
    elif scores["MCC"] <= _SLACK - 1 and scores["Acc"] > _SLACK:
        problem = "MCC is -1 only where every row was wrong"
    if problem:
        yield Fault(
            json_path(("results", *place)),
            problem,
            found=", ".join(f"{metric} {value!r}" for metric, value in scores.items()),
            fix="take the three metrics from the same predictions",
        )

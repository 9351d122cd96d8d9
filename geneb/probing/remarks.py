"""What to know of a task beside its scores: what its data does to them, told from its fits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from geneb.results import Fit, TaskResults

SUBJECTS = {
    "short_classes": "classes with fewer train rows than are drawn",
    "unseen_classes": "classes that only test has: never predicted, always counted as wrong",
    "untested_classes": "classes that only train has: predicting them is never right",
    "seen_rows": "test rows whose sequence train has too",
    "constant_predictions": "one class predicted for all test rows",
}
"""Headings of the remarks, in the order in which they are shown."""

_SHOWN = 5  # of each subject; all of them are in the results


@dataclass(frozen=True)
class Remark:
    """One thing to know of one task.

    Attributes
    ----------
    subject
        A key of `SUBJECTS`.
    regime
        None where it is so in all of them.
    text
        Of how much it is so.
    """

    subject: str
    task: str
    regime: str | None
    text: str


def remarks(results: Iterable[TaskResults]) -> list[Remark]:
    """Return what to know of these tasks: by subject, then in the order of the results."""
    order = list(SUBJECTS)
    found = [remark for task in results for remark in _of_task(task)]
    return sorted(found, key=lambda remark: order.index(remark.subject))


def tell(found: Sequence[Remark]) -> list[str]:
    """Return remarks as lines: a heading for each subject, and the first tasks below it."""
    lines = []
    for subject, heading in SUBJECTS.items():
        here = [remark for remark in found if remark.subject == subject]
        if here:
            lines.append(heading)
        for remark in here[:_SHOWN]:
            where = remark.task if remark.regime is None else f"{remark.task}, {remark.regime}"
            lines.append(f"  {where}: {remark.text}")
        if len(here) > _SHOWN:
            lines.append(f"  and {len(here) - _SHOWN:,} more, all of them in --json")
    return lines


def _of_task(results: TaskResults) -> Iterator[Remark]:
    name = results.origin.task
    regimes = results.by_regime()
    for regime, fits in regimes.items():
        if short := fits[0].short_classes:
            text = f"{short:,} of {fits[0].n_classes:,} classes"
            yield Remark("short_classes", name, regime, text)
        constant = sum(fit.predicted_classes == 1 and fit.n_test > 1 for fit in fits)
        if constant:
            text = f"in {constant:,} of {len(fits):,} fits" if len(fits) > 1 else "in its one fit"
            yield Remark("constant_predictions", name, regime, text)
    first = results.fits[0]  # these counts are of the splits, whatever the regime draws
    for subject in ("unseen_classes", "untested_classes"):
        if count := getattr(first, subject):
            yield Remark(subject, name, None, f"{count:,}")
    if first.seen_rows:
        text = f"{first.seen_rows:,} of {first.n_test:,}; {_beside(regimes)}"
        yield Remark("seen_rows", name, None, text)


def _beside(regimes: dict[str, list[Fit]]) -> str:
    """Return the MCC of the first regime, and what it is without the rows that train has."""
    regime, fits = next(iter(regimes.items()))
    reported = f"MCC in {regime} {fmean(fit.MCC for fit in fits):z.3f}"
    without = _present([fit.MCC_without_seen for fit in fits])
    if not without:
        return f"{reported}, no others are left"
    return f"{reported}, without them {fmean(without):z.3f}"


def _present(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]

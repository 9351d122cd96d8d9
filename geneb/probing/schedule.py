"""What lies ahead of a probe: which task is long, how much memory the run needs at most."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from geneb.probing.protocol import Protocol

_PROCESS_BYTES = 256 << 20  # an interpreter with numpy, scipy, scikit-learn and zarr
_SLABS_BYTES = 128 << 20  # the two slabs of rows that `convergence.optimality` holds
_HISTORY = 30  # vectors of the solution's size that lbfgs keeps: ten pairs, and its workspace


@dataclass(frozen=True)
class Work:
    """A task of a store, and the fits of it that are missing.

    Attributes
    ----------
    place
        The store's place among those that are probed.
    protocol
        Narrowed to the regimes that are missing.
    """

    place: int
    task_id: str
    protocol: Protocol
    n_train: int
    n_test: int
    dim: int
    classes: int

    @property
    def vectors(self) -> int:
        """Weight vectors of one linear fit."""
        return self.classes if self.classes > 2 else 1

    @property
    def cost(self) -> int:
        """Estimated work of the fits, to compare tasks by."""
        return self.n_train * self.dim * self.vectors

    @property
    def rows_bytes(self) -> int:
        """Bytes of both splits' embeddings."""
        return 4 * self.dim * (self.n_train + self.n_test)

    @property
    def fit_bytes(self) -> int:
        """Bytes that fits, predictions and checks of a linear probe need besides, at most.

        A fit holds scores and residuals of the train rows, the optimiser's vectors, and what its
        probe says that it makes of the rows; predictions hold the scores of all fits, with bounds
        in float64.
        """
        fit = self._working_bytes()
        fit += 16 * self.n_train * (self.vectors + 1) + 8 * _HISTORY * self.vectors * (self.dim + 1)
        predict = 36 * self.n_test * self.vectors * self.protocol.fits
        return max(fit, predict, min(_SLABS_BYTES, 8 * self.n_train * self.dim))

    def _working_bytes(self) -> int:
        """Return what the probe says; of one that says nothing, a copy of the rows in float64."""
        stated = getattr(self.protocol.probe, "working_bytes", None)
        if stated is None:
            return 8 * self.n_train * self.dim
        return stated(self.n_train, self.dim, self.vectors)


@dataclass(frozen=True)
class Plan:
    """How many processes probe, and whether each loads its next task ahead.

    Attributes
    ----------
    jobs
        Processes.
    ahead
        Whether a task is loaded while the one before it is fitted.
    needed
        Bytes that the tasks in memory need at most, with the processes where these are new.
    """

    jobs: int
    ahead: bool
    needed: int


def longest_first(works: Iterable[Work]) -> list[Work]:
    """Return works by falling cost, so that no long one is left to run alone at the end."""
    return sorted(works, key=lambda work: -work.cost)


def plan(works: Sequence[Work], jobs: int, free: int) -> Plan:
    """Return the fastest way that fits into memory; if none does, the one that needs least.

    Parameters
    ----------
    jobs
        Processes asked for; 1 is the one that asks.
    free
        Bytes that are free.
    """
    ways = [
        Plan(count, ahead, _needed(works, count, ahead=ahead, new=jobs > 1))
        for count in range(max(1, min(jobs, len(works))), 0, -1)
        for ahead in (True, False)
    ]
    return next((way for way in ways if way.needed <= free), ways[-1])


def announce(works: Sequence[Work], way: Plan, jobs: int, free: int) -> str:
    """Return in one line what lies ahead, and what memory it needs.

    Parameters
    ----------
    jobs, free
        What `plan` was given.
    """
    if not works:
        return "there is nothing to fit"
    fits = sum(work.protocol.fits for work in works)
    processes = f" in {way.jobs:,} of {jobs:,} processes" if jobs > 1 else ""
    line = (
        f"{fits:,} fits of {len(works):,} tasks{processes}: "
        f"up to {_size(way.needed)} of memory, {_size(free)} are free"
    )
    if way.needed > free:
        return f"{line}; tasks may fail for want of memory"
    if way.jobs < min(jobs, len(works)):
        return f"{line}; more processes would not fit"
    return line


def _size(count: int) -> str:
    return f"{count / 1e9:,.1f} GB" if count >= 10**9 else f"{count / 1e6:,.0f} MB"


def _needed(works: Sequence[Work], count: int, *, ahead: bool, new: bool) -> int:
    """Return what no choice of tasks that are in memory together exceeds."""
    rows = sorted((work.rows_bytes for work in works), reverse=True)
    fits = sorted((work.fit_bytes for work in works), reverse=True)
    processes = count * _PROCESS_BYTES if new else 0
    return sum(rows[: 2 * count if ahead else count]) + sum(fits[:count]) + processes

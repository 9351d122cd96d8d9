"""Time probes against a plain loop of the published protocol, and show where the time goes.

    python tools/measure/probe.py STORE [STORE ...] [--tasks X ...] [--rows N] [--classes K ...]
        [--repeats 3] [--jobs N ...]

Every task of every store is measured: stores of several models give several dims. --classes K adds
a task of K classes to each store, made of real rows: those of the chosen tasks one below the
other, a class for each label of each of them. --rows takes at most so many rows of a split, spread
over it.

Probe and plain loop get the same embeddings, already loaded, in one process on one BLAS thread,
and take turns. Seconds are those of the processor, so that what else runs on the machine does not
count as much. The plain loop is the one that the tests compare with: three regimes, five seeds,
each a fresh fit, predictions and metrics.

The bound of the full fit is the time of its products alone, X w and X^T r, as often as the loss
was evaluated; GB/s is how fast the rows pass in them, beside a plain sum over the same rows.

With --jobs whole runs of `geneb.probe` follow, reading and starting processes included, by the
clock, against the plain loop on one thread. Joined tasks have no part in it.

Exits with 1 if any of the reported values differs.
"""

import argparse
import contextlib
import statistics
import sys
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.optimize
from threadpoolctl import threadpool_limits

import geneb
from geneb.base import env
from geneb.benchmark.spec import load_spec
from geneb.probing import fit as fitting
from geneb.probing.backends import SklearnBackend
from geneb.probing.execute import load_task
from geneb.probing.fit import TaskArrays, probe_task
from geneb.probing.probes import LogisticProbe
from geneb.probing.protocol import GENEB_LR_1
from geneb.results import METRICS, reported_value
from geneb.tasks.select import select

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from support.plain_loop import plain_loop

PRODUCT_REPEATS = 5


@dataclass
class Case:
    """One task: its embeddings, and the clock's seconds that loading took; None if joined."""

    name: str
    arrays: TaskArrays
    load: float | None

    @property
    def classes(self):
        return len(np.unique(self.arrays.train_labels))


@dataclass
class Measured:
    """Median seconds of one case, and what went into them."""

    ours: float
    plain: float
    plain_wall: float
    parts: dict
    n_iter: int
    evaluations: int
    differences: list


def spread(count, most):
    """Return at most so many positions, evenly over all."""
    if most is None or most >= count:
        return np.arange(count)
    return np.linspace(0, count - 1, most).astype(int)


def load_case(store, task_id, rows):
    """Load a task; the seconds are of all its rows."""
    began = time.perf_counter()
    arrays = load_task(store, task_id)
    seconds = time.perf_counter() - began
    parts = []
    for split in ("train", "test"):
        chosen = spread(len(getattr(arrays, split)), rows)
        names = (split, f"{split}_labels", f"{split}_row_ids")
        parts += [getattr(arrays, name)[chosen] for name in names]
    return Case(f"{store.model_id}, {task_id}", TaskArrays(*parts), seconds)


def join(cases, classes, name):
    """Make one task of many: a class for each label of each task, until there are enough."""
    parts = [[] for _ in range(6)]
    offset = 0
    for case in cases:
        left = classes - offset
        for place, split in ((0, "train"), (3, "test")):
            rows, labels, ids = (
                getattr(case.arrays, f"{split}{end}") for end in ("", "_labels", "_row_ids")
            )
            kept = labels < left
            for part, values in enumerate((rows[kept], labels[kept] + offset, ids[kept])):
                parts[place + part].append(values)
        offset += min(left, case.classes)
        if offset == classes:
            break
    if offset < classes:
        sys.exit(f"{name}: the tasks have {offset} classes together, not {classes}")
    arrays = TaskArrays(*(np.concatenate(part) for part in parts))
    return Case(f"{name}, joined labels", arrays, None)


class Clock:
    """Adds up the processor's seconds that functions take, by name."""

    def __init__(self):
        self.seconds = defaultdict(float)
        self.evaluations = []

    @contextlib.contextmanager
    def watching(self):
        """Time the parts of a probe."""
        places = [
            (fitting, "_predict", "predictions"),
            (LogisticProbe, "fit", "fits"),
            (LogisticProbe, "optimality", "optimality"),
            (fitting, "score", "metrics"),
            (fitting, "score_without_seen", "metrics"),
            (fitting, "_check_arrays", "checks"),
            (fitting, "find_overlap", "checks"),
        ]
        before = [(owner, name, getattr(owner, name)) for owner, name, _ in places]
        minimize = scipy.optimize.minimize
        for owner, name, part in places:
            setattr(owner, name, self._timed(getattr(owner, name), part))
        scipy.optimize.minimize = self._counted(minimize)
        try:
            yield
        finally:
            scipy.optimize.minimize = minimize
            for owner, name, function in before:
                setattr(owner, name, function)

    def _timed(self, function, part):
        def timed(*args, **options):
            began = time.process_time()
            try:
                return function(*args, **options)
            finally:
                self.seconds[part] += time.process_time() - began

        return timed

    def _counted(self, minimize):
        def counted(*args, **options):
            found = minimize(*args, **options)
            self.evaluations.append(found.nfev)
            return found

        return counted


def probe(arrays):
    """Return the nine reported values, and the fits behind them."""
    fits = [one.fit for one in probe_task(arrays, GENEB_LR_1, SklearnBackend())]
    values = {
        regime.name: {
            metric: reported_value(
                [getattr(fit, metric) for fit in fits if fit.regime == regime.name],
                GENEB_LR_1.seeds,
            )
            for metric in METRICS
        }
        for regime in GENEB_LR_1.regimes
    }
    return values, fits


def timed(function, *args):
    """Return a function's result, the processor's seconds that it took, and the clock's."""
    began = time.process_time(), time.perf_counter()
    result = function(*args)
    return result, time.process_time() - began[0], time.perf_counter() - began[1]


def measure(case, repeats):
    """Let probe and plain loop take turns; the parts of the probe's time come from one more run."""
    arrays = case.arrays
    given = (arrays.train, arrays.train_labels, arrays.test, arrays.test_labels)
    ours, plain, walls, differences = [], [], [], set()
    for _ in range(repeats):
        (values, fits), seconds, _ = timed(probe, arrays)
        ours.append(seconds)
        expected, seconds, wall = timed(plain_loop, *given)
        plain.append(seconds)
        walls.append(wall)
        differences |= {
            f"{regime} {metric}: {values[regime][metric]!r}, plain loop {value!r}"
            for regime, metrics in expected.items()
            for metric, value in metrics.items()
            if values[regime][metric] != value
        }
    clock = Clock()
    with clock.watching():
        (_, fits), total, _ = timed(probe, arrays)
    full = next(fit for fit in fits if fit.regime == "full")
    parts = dict(clock.seconds)
    share = full.seconds / sum(fit.seconds for fit in fits)
    all_fits = parts.pop("fits")
    parts = {"full fit": all_fits * share, "few-shot fits": all_fits * (1 - share), **parts}
    parts["all else"] = total - sum(parts.values())
    return Measured(
        statistics.median(ours),
        statistics.median(plain),
        statistics.median(walls),
        parts,
        full.n_iter,
        clock.evaluations[0] if clock.evaluations else 0,
        sorted(differences),
    )


def best(function):
    """Return the processor's seconds of the fastest of a few calls."""
    return min(timed(function)[1] for _ in range(PRODUCT_REPEATS))


def show_bound(case, measured):
    """Print how near the full fit is to the time of its two products."""
    rows = case.arrays.train
    vectors = case.classes if case.classes > 2 else 1
    generator = np.random.default_rng(0)
    weights = generator.normal(size=(rows.shape[1], vectors)).astype(np.float32)
    residual = generator.normal(size=(len(rows), vectors)).astype(np.float32)
    if vectors == 1:
        weights, residual = weights[:, 0], residual[:, 0]
    forward = best(lambda: rows @ weights)
    back = best(lambda: residual.T @ rows)
    read = best(rows.sum)
    bound = measured.evaluations * (forward + back)
    speeds = ", ".join(
        f"{name} {rows.nbytes / 1e9 / seconds:.1f}"
        for name, seconds in (("X w", forward), ("X^T r", back), ("sum", read))
    )
    full = measured.parts["full fit"]
    print(
        f"  full fit: {measured.n_iter} iterations, {measured.evaluations} evaluations; "
        f"products alone {bound:.3f} s, {bound / full:.0%} of it; GB/s: {speeds}"
    )


def show(case, measured):
    arrays = case.arrays
    print(
        f"\n{case.name}: {len(arrays.train):,} train and {len(arrays.test):,} test rows, "
        f"dim {arrays.train.shape[1]:,}, {case.classes} classes"
    )
    print(
        f"  plain loop {measured.plain:.3f} s, probe {measured.ours:.3f} s, "
        f"ratio {measured.plain / measured.ours:.2f}; "
        + ("; ".join(measured.differences) or "all nine values identical")
    )
    total = sum(measured.parts.values())
    shares = ", ".join(
        f"{name} {seconds:.3f} ({seconds / total:.0%})" for name, seconds in measured.parts.items()
    )
    loading = "" if case.load is None else f"; loading {case.load:.3f} s by the clock"
    print(f"  {shares}{loading}")
    show_bound(case, measured)


def show_jobs(stores, tasks, jobs, plain):
    """Time whole runs over all stores, each with so many processes."""
    print(f"\nall tasks of all stores, by the clock: plain loop on one thread {plain:.2f} s")
    for count in jobs:
        began = time.perf_counter()
        geneb.probe(stores, tasks=tasks, jobs=count)
        seconds = time.perf_counter() - began
        print(f"  geneb.probe with {count} jobs: {seconds:.2f} s, ratio {plain / seconds:.2f}")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("stores", nargs="+")
    parser.add_argument("--tasks", nargs="+", default=[])
    parser.add_argument("--rows", type=int)
    parser.add_argument("--classes", type=int, nargs="+", default=[])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--jobs", type=int, nargs="+", default=[])
    options = parser.parse_args()
    if options.rows and options.jobs:
        parser.error("--jobs probes all rows, so it cannot be compared with --rows")
    return options


def main():
    options = parse_arguments()
    installed = env.versions(("numpy", "scipy", "scikit-learn"))
    print(", ".join([env.processor(), *(f"{name} {got}" for name, got in installed.items())]))
    print(f"BLAS kernel {env.blas()[0].get('architecture', 'unknown')}, {env.cores()} cores")
    differ, plain_wall, ratios = False, 0.0, []
    for path in options.stores:
        store = geneb.open_store(path)
        chosen = select(options.tasks, store.task_ids(), load_spec())
        cases = [load_case(store, task_id, options.rows) for task_id in chosen]
        joined = [join(cases, classes, store.model_id) for classes in options.classes]
        for case in [*cases, *joined]:
            with threadpool_limits(limits=1):
                measured = measure(case, options.repeats)
                show(case, measured)
            differ = differ or bool(measured.differences)
            ratios.append(measured.plain / measured.ours)
            if case.load is not None:
                plain_wall += measured.plain_wall
    print(f"\nratios on one thread: {min(ratios):.2f} to {max(ratios):.2f}")
    if options.jobs:
        show_jobs(options.stores, options.tasks, options.jobs, plain_wall)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())

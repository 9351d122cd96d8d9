"""Time the probe of one task against a plain loop of the published protocol.

    python tools/measure/probe.py STORE --task ID [--repeats 3]

Both get the same embeddings, already loaded, in one process on one BLAS thread, and take turns.
Seconds are those of the processor, so that what else runs on the machine does not count.
The plain loop is the one that the tests compare with: three regimes, five seeds, each a fresh
fit, predictions and metrics. Exits with 1 if any of the nine reported values differs.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

from threadpoolctl import threadpool_limits

from geneb import open_store
from geneb.base import env
from geneb.probing.backends import SklearnBackend
from geneb.probing.fit import TaskArrays, probe_task
from geneb.probing.protocol import GENEB_LR_1
from geneb.results import METRICS, reported_value

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from support.plain_loop import plain_loop


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
    """Return a function's result and the processor's seconds that it took."""
    began = time.process_time()
    result = function(*args)
    return result, time.process_time() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("store")
    parser.add_argument("--task", required=True)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()

    task = open_store(options.store).task(options.task)
    splits = ("train", "test")
    train, test = (task.embeddings(split) for split in splits)
    train_labels, test_labels = (task.labels(split) for split in splits)
    row_ids = [task.row_ids(split) for split in splits]
    arrays = TaskArrays(train, train_labels, row_ids[0], test, test_labels, row_ids[1])

    ours, plain, differences = [], [], []
    with threadpool_limits(limits=1):
        for _ in range(options.repeats):
            (values, fits), seconds = timed(probe, arrays)
            ours.append(seconds)
            expected, seconds = timed(plain_loop, train, train_labels, test, test_labels)
            plain.append(seconds)
            differences += [
                f"{regime} {metric}: {values[regime][metric]!r}, plain loop {value!r}"
                for regime, metrics in expected.items()
                for metric, value in metrics.items()
                if values[regime][metric] != value
            ]

    full = next(fit for fit in fits if fit.regime == "full")
    installed = env.versions(("numpy", "scipy", "scikit-learn"))
    print(", ".join([env.processor(), *(f"{name} {got}" for name, got in installed.items())]))
    print(f"BLAS kernel {env.blas()[0].get('architecture', 'unknown')}, one thread")
    print(f"{options.task}: {len(train):,} train and {len(test):,} test rows, dim {train.shape[1]}")
    print(f"full fit: {full.n_iter} iterations, {full.seconds:.3f} s")
    print(f"{'':12}{'median s':>10}   all")
    for name, seconds in (("probe", ours), ("plain loop", plain)):
        each = " ".join(f"{second:.3f}" for second in seconds)
        print(f"{name:12}{statistics.median(seconds):10.3f}   {each}")
    print(f"ratio {statistics.median(plain) / statistics.median(ours):.2f}")
    print("reported values: " + ("; ".join(sorted(set(differences))) or "all nine identical"))
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())

"""The published protocol as a plain loop, written from its description alone.

Every regime and every seed is a fresh fit of the whole thing, every metric scikit-learn's, every
reported value numpy's mean over the seeds. It shares no code with the program.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

REGIMES = {"full": None, "10shot": 10, "1shot": 1}
SEEDS = [13, 17, 42, 123, 997]


def drawn(labels: np.ndarray, shots: int | None, seed: int) -> np.ndarray:
    """Indices of the train rows that are fitted."""
    if shots is None:
        return np.arange(len(labels))
    generator = np.random.RandomState(seed)
    indices: list[int] = []
    for label in sorted(set(labels.tolist())):
        positions = np.where(labels == label)[0]
        size = min(shots, len(positions))
        indices.extend(generator.choice(positions, size=size, replace=False).tolist())
    return np.array(indices)


def predictions(train, train_labels, test, shots: int | None, seed: int) -> np.ndarray:
    """What one fresh fit predicts."""
    rows = drawn(train_labels, shots, seed)
    estimator = LogisticRegression(C=1.0, solver="lbfgs", max_iter=1000, tol=1e-4)
    return estimator.fit(train[rows], train_labels[rows]).predict(test)


def plain_loop(train, train_labels, test, test_labels) -> dict[str, dict[str, float]]:
    """The nine numbers of a task: regime -> metric -> value."""
    reported = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for regime, shots in REGIMES.items():
            values: dict[str, list[float]] = {"MCC": [], "Acc": [], "F1": []}
            for seed in SEEDS:
                found = predictions(train, train_labels, test, shots, seed)
                values["MCC"].append(matthews_corrcoef(test_labels, found))
                values["Acc"].append(accuracy_score(test_labels, found))
                values["F1"].append(f1_score(test_labels, found, average="macro"))
            reported[regime] = {name: float(np.mean(each)) for name, each in values.items()}
    return reported

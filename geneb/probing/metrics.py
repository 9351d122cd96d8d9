"""MCC, accuracy and macro-F1 of predictions, all three from one table of counts.

They are scikit-learn's numbers to the last bit: the same exact integers go through the same
operations in the same order. What is left out is its checking of input, done anew for each metric.
"""

from __future__ import annotations

import math

import numpy as np


def score(truth: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Return the metrics of predictions.

    Parameters
    ----------
    truth, predicted
        Labels, shape (n,), at least one.

    Returns
    -------
    dict of str to float
        ``MCC``: Gorodkin's form for any number of classes (Comput. Biol. Chem. 28, 2004), 0
        where truth or predictions are of one class; ``Acc``; ``F1``: the mean over all classes
        that stand in truth or predictions, with 0 for one that stands in one of them only.
    """
    counts = _confusion(truth, predicted)
    right = np.diagonal(counts)
    true, guessed = counts.sum(axis=1), counts.sum(axis=0)
    return {
        "MCC": _mcc(float(right.sum()), true, guessed),
        "Acc": float(right.sum() / counts.sum()),
        "F1": float(np.mean(2 * right / (true + guessed))),
    }


def _confusion(truth: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Return how often each class (row) was taken for each (column); float64, exact below 2^53."""
    _, codes = np.unique(np.concatenate([truth, predicted]), return_inverse=True)
    classes = int(codes.max()) + 1
    cells = codes[: len(truth)] * classes + codes[len(truth) :]
    counts = np.bincount(cells, minlength=classes**2).reshape(classes, classes)
    return counts.astype(np.float64)


def _mcc(right: float, true: np.ndarray, guessed: np.ndarray) -> float:
    rows = float(true.sum())
    covariance = right * rows - float(true @ guessed)
    variances = (rows**2 - float(guessed @ guessed)) * (rows**2 - float(true @ true))
    return 0.0 if variances == 0 else covariance / math.sqrt(variances)

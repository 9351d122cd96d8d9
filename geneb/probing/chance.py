"""What guessing gets: the floor that any score is read against."""

from __future__ import annotations

import numpy as np

from geneb.probing.metrics import score

DRAWS = 100
_SEED = 13


def guess_scores(train_labels: np.ndarray, test_labels: np.ndarray) -> dict[str, float]:
    """Return the mean metrics of random guesses that know how frequent each class is.

    Each of 100 draws guesses every test row by picking a train label at random.

    Parameters
    ----------
    train_labels, test_labels
        int64, shape (n,).
    """
    generator = np.random.RandomState(_SEED)
    draws = [
        score(test_labels, generator.choice(train_labels, size=len(test_labels)))
        for _ in range(DRAWS)
    ]
    return {metric: float(np.mean([draw[metric] for draw in draws])) for metric in draws[0]}

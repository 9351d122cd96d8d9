"""What a task's data does to its scores: classes and rows that train and test do not share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geneb.probing.metrics import score


@dataclass(frozen=True)
class Overlap:
    """What test and train share, and what they do not.

    Attributes
    ----------
    unseen_classes
        Classes of the test set without any train row: never predicted, counted in the metrics.
    untested_classes
        Classes of the train set without any test row.
    seen
        bool, shape (n test,): whether the same sequence stands in the train split too.
    """

    unseen_classes: int
    untested_classes: int
    seen: np.ndarray

    @property
    def seen_rows(self) -> int:
        """Test rows whose sequence stands in the train split."""
        return int(self.seen.sum())


def find_overlap(
    train_labels: np.ndarray,
    test_labels: np.ndarray,
    train_row_ids: np.ndarray,
    test_row_ids: np.ndarray,
) -> Overlap:
    """Compare the two splits.

    Parameters
    ----------
    train_labels, test_labels
        int64, shape (n,).
    train_row_ids, test_row_ids
        uint8, shape (n, 16): digests of the sequences as they stand in the CSV.
    """
    return Overlap(
        unseen_classes=len(np.setdiff1d(test_labels, train_labels)),
        untested_classes=len(np.setdiff1d(train_labels, test_labels)),
        seen=np.isin(_as_scalars(test_row_ids), _as_scalars(train_row_ids)),
    )


def score_without_seen(
    truth: np.ndarray, predicted: np.ndarray, overlap: Overlap
) -> dict[str, float | None]:
    """Return the metrics on test rows that are not in train; None where every row is."""
    new = ~overlap.seen
    if not new.any():
        return dict.fromkeys(score(truth, predicted))
    return dict(score(truth[new], predicted[new]))


def _as_scalars(row_ids: np.ndarray) -> np.ndarray:
    # numpy cuts zeros off the ends of byte strings; of one length, they are still told apart.
    return np.ascontiguousarray(row_ids).view(f"S{row_ids.shape[1]}")[:, 0]

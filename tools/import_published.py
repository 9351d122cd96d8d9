"""Write the published result sets as submissions: tools/import_published.py REFERENCE_DIR

REFERENCE_DIR holds published_models.csv (model_id,display,params,provenance,training_data,url,
submitted_by,harness_version) and published_scores.csv (model_id,regime,task_id,MCC,Acc,F1).
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

from geneb.base.files import atomic_write
from geneb.reporting.submission import (
    ENDING,
    SCHEMA_VERSION,
    Submission,
    format_submission,
)
from geneb.results import METRICS

LEADERBOARD = Path(__file__).resolve().parent.parent / "leaderboard"


def read(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV."""
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def published(reference: Path) -> list[dict[str, Any]]:
    """Return the submissions, in the order of the models."""
    documents = {
        row["model_id"]: {
            "schema_version": SCHEMA_VERSION,
            "model_id": row["model_id"],
            "harness_version": row["harness_version"],
            "meta": {
                "display": row["display"],
                "params": int(row["params"]),
                "url": row["url"] or None,
                "zero_shot": None,
                "training_data": row["training_data"] or None,
                "provenance": row["provenance"],
                "submitted_by": row["submitted_by"] or None,
            },
            "results": {},
        }
        for row in read(reference / "published_models.csv")
    }
    for row in read(reference / "published_scores.csv"):
        if row["model_id"] not in documents:
            raise SystemExit(f"{row['model_id']} has scores, and is not among the models")
        regime = documents[row["model_id"]]["results"].setdefault(row["regime"], {})
        if row["task_id"] in regime:
            raise SystemExit(f"{row['model_id']}, {row['regime']}, {row['task_id']} stands twice")
        regime[row["task_id"]] = {metric: float(row[metric]) for metric in METRICS}
    return list(documents.values())


def main() -> None:
    """Write all submissions, or none."""
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("reference", type=Path, metavar="REFERENCE_DIR")
    parser.add_argument("--out", type=Path, default=LEADERBOARD / "submissions")
    options = parser.parse_args()
    documents = published(options.reference)
    for document in documents:
        Submission.model_validate(document)  # complete, or nothing is written
    options.out.mkdir(parents=True, exist_ok=True)
    for document in documents:
        atomic_write(options.out / f"{document['model_id']}{ENDING}", format_submission(document))
    print(f"{len(documents)} submissions in {options.out}")


if __name__ == "__main__":
    main()

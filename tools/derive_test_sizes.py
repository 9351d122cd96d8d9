"""Derive the tasks' test sizes from the published accuracies: tools/derive_test_sizes.py

Reads the published submissions in leaderboard/submissions, whose figures are cut after six
decimals, and writes benchmark/test_sizes.json.
"""

from __future__ import annotations

from pathlib import Path

from geneb.base.canonical import pretty_json
from geneb.base.files import atomic_write
from geneb.benchmark.sizes import MAX_SIZE, SIZES_FILE, SizeTable, smallest_size
from geneb.benchmark.spec import load_model_meta, load_spec
from geneb.reporting.submission import Submission, shipped_submissions

BENCHMARK = Path(__file__).resolve().parent.parent / "benchmark"
NOTE = (
    "Rows of each task's test set. An accuracy is a multiple of 1/n: n is the smallest number up "
    "to {limit:,} of which the full-regime accuracies of all {models} published result sets, cut "
    "after six decimals, can be multiples; a task where that could be chance is left out. Written "
    "by tools/derive_test_sizes.py from leaderboard/submissions."
)


def derive() -> SizeTable:
    published = {model.id for model in load_model_meta().models}
    submissions = [Submission.model_validate_json(data) for data in shipped_submissions().values()]
    full = [one.scores["full"] for one in submissions if one.model_id in published]
    sizes = {
        task: smallest_size([scores[task]["Acc"] for scores in full])
        for task in load_spec().task_ids
    }
    return SizeTable(
        schema_version="1.0",
        note=NOTE.format(limit=MAX_SIZE, models=len(full)),
        test_sizes={task: size for task, size in sizes.items() if size is not None},
    )


def main() -> None:
    found = derive()
    atomic_write(BENCHMARK / SIZES_FILE, pretty_json(found.model_dump()))
    print(f"{len(found.test_sizes)} of {len(load_spec().tasks)} test sizes are certain")


if __name__ == "__main__":
    main()

"""Pack raw results into a submission: tools/pack_submission.py --raw_dir DIR --model_id ID ...

The same as `geneb submission pack`, with the published names of the arguments. DIR holds the
published runner's results_*.json, or is one model's results folder of `geneb probe`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from geneb.cli import main

SUBMISSIONS = Path(__file__).resolve().parent.parent / "leaderboard" / "submissions"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Pack raw results into a submission.")
    parser.add_argument("--raw_dir", required=True, metavar="DIR")
    parser.add_argument("--model_id", required=True, metavar="ID")
    parser.add_argument("--display", required=True, metavar="TEXT")
    parser.add_argument("--params", required=True, metavar="N", help="number of parameters")
    parser.add_argument("--url", required=True, metavar="URL")
    parser.add_argument("--submitted_by", required=True, metavar="NAME")
    parser.add_argument("--zero_shot", action="store_true", help="no benchmark data in training")
    parser.add_argument("--training_data", metavar="TEXT")
    parser.add_argument("--out", default=str(SUBMISSIONS), metavar="DIR")
    return parser.parse_args()


def command(given: argparse.Namespace) -> list[str]:
    names = ("model_id", "display", "params", "url", "submitted_by", "training_data", "out")
    values = {name: getattr(given, name) for name in names}
    # With "=", a value that begins with a hyphen stays a value.
    options = [f"--{name.replace('_', '-')}={value}" for name, value in values.items() if value]
    zero_shot = "--zero-shot" if given.zero_shot else "--no-zero-shot"
    return ["submission", "pack", *options, zero_shot, "--", given.raw_dir]


if __name__ == "__main__":
    main(command(arguments()))

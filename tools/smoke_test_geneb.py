"""See that everything works together, and that it gives the scores that it should.

    python tools/smoke_test_geneb.py --data_dir DIR [--limit N] [--reference RESULTS]
    python tools/smoke_test_geneb.py --submission FILE --raw_dir DIR

The first runs `geneb run` with the model kmer4 on N tasks, into a folder that is removed again,
and compares the scores with a results folder of an earlier run. The second compares the means in
the published runner's results_*.json with a submission. Exits with 1 if a score differs by more
than --tolerance, or is missing in what it is compared with.
"""

import argparse
import math
import subprocess
import sys
import tempfile
from pathlib import Path

from geneb.base.files import read_bytes
from geneb.errors import GenebError
from geneb.reporting.legacy import read_legacy
from geneb.reporting.score_comparison import missing_scores, score_differences
from geneb.reporting.submission import MAX_BYTES
from geneb.reporting.validate import check_document
from geneb.results import ResultsFolder

MODEL, WORDS = "kmer4", 4**4


def run_model(data, limit, out):
    """Run the whole way; return the scores that `geneb run` packed."""
    command = [sys.executable, "-m", "geneb", "run", "--quiet", "--model", MODEL]
    command += ["--params", WORDS, "--data", data, "--out", out, "--limit", limit]
    subprocess.run([str(part) for part in command], check=True)
    return ResultsFolder.open(out / "results" / MODEL).summary()


def read_submission(path):
    """Return a submission's scores; it may be incomplete."""
    found = check_document(read_bytes(path, MAX_BYTES))
    if found.faults:
        sys.exit("\n".join(map(str, found.faults)))
    return found.summary


def compare(ours, theirs, tolerance):
    """Print what differs, of the tasks that are ours; return whether nothing does."""
    faults = [str(fault) for fault in missing_scores(ours, theirs)]
    if not faults:
        tasks = sorted({task for scores in ours.values() for task in scores})
        found = score_differences(theirs, ours, tasks)
        faults = [str(one) for one in found if one.size > tolerance]
    print("\n".join(faults) or f"all scores agree within {tolerance:g}")
    return not faults


def tolerance(text):
    """Return a difference that is let pass; nothing differs by more than NaN."""
    value = float(text)
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError("it is a number from 0 on")
    return value


def parse_arguments():
    """Return the arguments."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data_dir", type=Path, help="folder of task CSVs")
    parser.add_argument("--limit", type=int, default=2, help="tasks to run (default 2)")
    parser.add_argument("--reference", type=Path, help="results folder to compare with")
    parser.add_argument("--submission", type=Path, help="submission to compare")
    parser.add_argument("--raw_dir", type=Path, help="folder of results_*.json")
    parser.add_argument("--tolerance", type=tolerance, default=1e-6, help="default 1e-6")
    arguments = parser.parse_args()
    pairs = (arguments.data_dir, arguments.submission and arguments.raw_dir)
    if sum(part is not None for part in pairs) != 1:
        parser.error("give --data_dir, or --submission and --raw_dir")
    return arguments


def main():
    """Run; return the exit code."""
    arguments = parse_arguments()
    if arguments.submission:
        ours = read_legacy(arguments.raw_dir).summary
        theirs = read_submission(arguments.submission)
    else:
        with tempfile.TemporaryDirectory() as folder:
            ours = run_model(arguments.data_dir, arguments.limit, Path(folder))
        if not arguments.reference:
            print("it runs; give --reference to compare the scores")
            return 0
        theirs = ResultsFolder.open(arguments.reference).summary()
    return 0 if compare(ours, theirs, arguments.tolerance) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except GenebError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)

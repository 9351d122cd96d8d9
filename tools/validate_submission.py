"""Validate submissions: tools/validate_submission.py FILES...

The same as `geneb submission validate FILES...`, under its published name.
"""

from __future__ import annotations

import argparse

from geneb.cli import main

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Validate submissions; list every fault.")
    parser.add_argument("files", nargs="+", metavar="FILES")
    main(["submission", "validate", "--", *parser.parse_args().files])

"""Build the leaderboard's tables and site in this checkout.

    python tools/build_leaderboard.py [--check] [...]

The same as `geneb leaderboard build`, whose options it takes.
"""

import sys

from geneb.cli import main

if __name__ == "__main__":
    main(["leaderboard", "build", *sys.argv[1:]])

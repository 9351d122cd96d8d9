"""``python -m geneb``."""

from geneb.cli import main

if __name__ == "__main__":
    main()

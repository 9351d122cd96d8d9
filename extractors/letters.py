"""Letters as numbers: the four bases, and one code for everything else."""

from __future__ import annotations

import numpy as np

BASES = "ACGT"
OTHER = len(BASES)
"""The code of every character that is not one of the four bases."""


def _code_table() -> np.ndarray:
    table = np.full(256, OTHER, dtype=np.uint8)
    for code, base in enumerate(BASES):
        table[ord(base)] = table[ord(base.lower())] = code
    return table


_CODES = _code_table()


def base_codes(text: str) -> np.ndarray:
    """Return the code of each character: A, C, G, T of either case are 0 to 3, all others 4.

    One character is one code, whatever it is: letters outside Latin-1 are replaced by one byte
    each, and case is folded by the table, because ``str.upper`` makes two letters of some.

    Returns
    -------
    ndarray of uint8, shape (len(text),)
    """
    return _CODES[np.frombuffer(text.encode("latin-1", errors="replace"), dtype=np.uint8)]

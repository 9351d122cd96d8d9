"""Tokenizers of k-mers that one family has for itself."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

import numpy as np

from geneb.base.canonical import digest
from geneb.extractors.tokenizers import Tokenizer

_K = 6
_RESERVED = (
    *("<oov>", "<s>", "</s>", "<pad>", "<mask>", "<bog>", "<eog>", "<bok>", "<eok>", "<+>", "<->"),
    *("<cds>", "<pseudo>", "<tRNA>", "<rRNA>", "<ncRNA>", "<miscRNA>"),
    *("<mam>", "<vrt>", "<inv>", "<pln>", "<fng>", "<prt>", "<arc>", "<bct>"),
    *("<mit>", "<plt>", "<plm>", "<vir>", "<sp0>", "<sp1>", "<sp2>"),
)
# Capitals in sixes, fewer where they end; whatever else stands in a sequence, one at a time.
_PIECE = re.compile(rf"[A-Z]{{{_K}}}|[A-Z]+|.", re.DOTALL)


def generator_vocabulary() -> dict[str, int]:
    """Return GENERator's vocabulary, token -> id: 32 reserved tokens, then all 6-mers."""
    kmers = ("".join(letters) for letters in itertools.product("ATCG", repeat=_K))
    return {token: number for number, token in enumerate((*_RESERVED, *kmers))}


class GeneratorTokenizer(Tokenizer):
    """Non-overlapping 6-mers, as GENERator's published extractor makes them.

    Letters behind the last multiple of six are left out. A 6-mer with another letter than A, C,
    G and T is one unknown token, and so is each character that is no capital. Two tokens stand in
    front: the extractor writes one into the text, and the tokenizer adds its own; there is none
    behind.
    """

    policy = {  # noqa: RUF012  a mapping that nobody changes
        "case": "as it stands: each lower-case letter is unknown",
        "U": "its 6-mer is unknown",
        "N": "its 6-mer is unknown",
        "other letters": "their 6-mer is unknown; what is no letter is unknown by itself",
        "rest behind the last multiple of 6": "left out",
    }

    def __init__(self) -> None:
        self._ids = generator_vocabulary()
        self.pad = self._ids["<pad>"]
        self.prefix = (self._ids["<s>"],) * 2
        self.sha256 = digest(
            {"vocabulary": self._ids, "k": _K, "specials": [self.prefix, self.suffix, self.pad]}
        )

    @property
    def vocabulary_size(self) -> int:
        """How many tokens there are."""
        return len(self._ids)

    def encode(self, sequences: Sequence[str]) -> list[np.ndarray]:
        """Cut into pieces from the left."""
        return [np.array(self._match(sequence), dtype=np.int64) for sequence in sequences]

    def _match(self, sequence: str) -> list[int]:
        whole = sequence[: len(sequence) // _K * _K]
        unknown = self._ids["<oov>"]
        return [self._ids.get(piece, unknown) for piece in _PIECE.findall(whole)]

"""From letters to token ids: what all tokenizers promise, and those that several families share.

A tokenizer gives the ids of a sequence's own tokens. Special tokens are kept apart, as ``prefix``
and ``suffix``, because cutting at a limit, windows and pooling have to know which they are.
"""

from __future__ import annotations

import contextlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from geneb.base.canonical import digest
from geneb.base.files import read_bytes
from geneb.base.text import plain
from geneb.errors import InputError
from geneb.extractors.tokenizer_limits import check_tokenizer

MAX_TOKENIZER_BYTES = 32 << 20

AS_THE_FILE_SAYS = dict.fromkeys(
    ("case", "U", "N", "other letters"), "as tokenizer.json says; nothing is changed before"
)
"""What is done with letters where a published tokenizer's file alone decides."""


class Tokenizer(ABC):
    """Turns sequences into token ids.

    Attributes
    ----------
    prefix, suffix
        Ids of the special tokens before and behind every sequence, and every window.
    pad
        The id that rows are padded with.
    sha256
        Digest of everything that ids depend on, in hexadecimal.
    policy
        What is done with lower case, U, N and other letters; part of a store's fingerprint.
    """

    prefix: tuple[int, ...] = ()
    suffix: tuple[int, ...] = ()
    pad: int
    sha256: str
    policy: Mapping[str, str]

    @abstractmethod
    def encode(self, sequences: Sequence[str]) -> list[np.ndarray]:
        """Return each sequence's ids without special tokens: int64, shape (tokens,).

        Each sequence is looked at alone. Safe in any thread.
        """


class CharacterTokenizer(Tokenizer):
    """One token a character.

    Parameters
    ----------
    ids
        Character -> id, just as it stands in the sequence: where lower case is known, it is here.
    unknown
        The id of every other character.
    """

    def __init__(
        self,
        ids: Mapping[str, int],
        *,
        unknown: int,
        pad: int,
        policy: Mapping[str, str],
        prefix: Sequence[int] = (),
        suffix: Sequence[int] = (),
    ) -> None:
        self._table = np.full(256, unknown, dtype=np.int64)
        for character, token in ids.items():
            self._table[ord(character)] = token
        self.pad, self.prefix, self.suffix, self.policy = pad, tuple(prefix), tuple(suffix), policy
        self.sha256 = digest(
            {"characters": dict(ids), "unknown": unknown, "specials": [prefix, suffix, pad]}
        )

    def encode(self, sequences: Sequence[str]) -> list[np.ndarray]:
        """Look every character up."""
        # Whatever is outside Latin-1 is one character of no meaning, hence one unknown token.
        return [
            self._table[np.frombuffer(text.encode("latin-1", errors="replace"), dtype=np.uint8)]
            for text in sequences
        ]


class KmerTokenizer(Tokenizer):
    """Non-overlapping k-mers from the left, the longest token of the vocabulary each time.

    What fills no k-mer of the vocabulary (an N, the rest at the end) becomes tokens of single
    letters; a run of characters that the vocabulary does not know at all is one unknown token.

    Parameters
    ----------
    vocabulary
        Token -> id; tokens of k letters and of one.
    k
        Letters a token.
    unknown, pad
        Ids.
    """

    def __init__(
        self,
        vocabulary: Mapping[str, int],
        *,
        k: int,
        unknown: int,
        pad: int,
        policy: Mapping[str, str],
        prefix: Sequence[int] = (),
        suffix: Sequence[int] = (),
    ) -> None:
        self._ids = {token: number for token, number in vocabulary.items() if len(token) in (1, k)}
        self._k, self._unknown = k, unknown
        self.pad, self.prefix, self.suffix, self.policy = pad, tuple(prefix), tuple(suffix), policy
        self.sha256 = digest(
            {"vocabulary": dict(vocabulary), "k": k, "specials": [prefix, suffix, pad, unknown]}
        )

    def encode(self, sequences: Sequence[str]) -> list[np.ndarray]:
        """Match from the left."""
        return [np.array(self._match(sequence), dtype=np.int64) for sequence in sequences]

    def _match(self, sequence: str) -> list[int]:
        ids, k, unknown = self._ids, self._k, self._unknown
        found: list[int] = []
        place, known = 0, True
        while place < len(sequence):
            token = ids.get(sequence[place : place + k])
            step = k
            if token is None or place + k > len(sequence):
                token, step = ids.get(sequence[place]), 1
            if token is not None:
                found.append(token)
            elif known:
                found.append(unknown)
            known = token is not None
            place += step
        return found


class FileTokenizer(Tokenizer):
    """A ``tokenizer.json`` of the Hugging Face tokenizers library, its special tokens left out.

    Parameters
    ----------
    path
        The file.
    prefix, suffix, pad
        Names of special tokens in the file's vocabulary.
    rows
        How many tokens the model has vectors for; None where that is not looked at. A file may
        list more, as long as no sequence comes to them.

    Raises
    ------
    InputError
        If the library cannot read the file, it lacks a token that is named, or does what
        `geneb.extractors.tokenizer_limits.check_tokenizer` refuses.
    """

    def __init__(
        self,
        path: Path,
        *,
        pad: str,
        policy: Mapping[str, str],
        prefix: Sequence[str] = (),
        suffix: Sequence[str] = (),
        rows: int | None = None,
    ) -> None:
        from tokenizers import Tokenizer as Backend

        data = read_followed(path)
        with _failures_named(path, "the tokenizer cannot be read"):
            self._backend = Backend.from_buffer(data)
        check_tokenizer(self._backend, str(path))
        # A file may ask for truncation and padding of its own; both are the engine's.
        self._backend.no_truncation()
        self._backend.no_padding()
        self._path = path
        self._rows = rows
        self.prefix = tuple(self.token_id(token) for token in prefix)
        self.suffix = tuple(self.token_id(token) for token in suffix)
        self.pad = self.token_id(pad)
        self.policy = policy
        self.sha256 = digest(
            {"file": digest(data.hex()), "specials": [self.prefix, self.suffix, self.pad]}
        )

    @property
    def vocabulary_size(self) -> int:
        """How many tokens the file knows."""
        return self._backend.get_vocab_size(with_added_tokens=True)

    def token_id(self, token: str) -> int:
        """Return a token's id."""
        number = self._backend.token_to_id(token)
        if number is None or not self._has_row(number):
            raise InputError(
                "the tokenizer lacks a token that this model needs",
                where=str(self._path),
                expected=plain(token),
                fix="take the tokenizer that was published with the weights",
            )
        return number

    def encode(self, sequences: Sequence[str]) -> list[np.ndarray]:
        """Tokenise by the file's rules."""
        encodings = self._run(list(sequences), add_special_tokens=False)
        found = [np.array(encoding.ids, dtype=np.int64) for encoding in encodings]
        for ids in found:
            self._check_row(int(ids.max(initial=0)))
        return found

    def _run(self, sequences: list[str], *, add_special_tokens: bool) -> list[Any]:
        with _failures_named(self._path, "the tokenizer fails"):
            return self._backend.encode_batch(sequences, add_special_tokens=add_special_tokens)

    def _check_row(self, number: int) -> None:
        if not self._has_row(number):
            raise InputError(
                "the tokenizer gives a token that the model has no vector for",
                where=str(self._path),
                expected=f"ids below {self._rows}",
                found=str(number),
                fix="take the tokenizer that was published with the weights",
            )

    def _has_row(self, number: int) -> bool:
        return self._rows is None or number < self._rows


def bert_tokenizer(path: Path, *, policy: Mapping[str, str], rows: int) -> FileTokenizer:
    """Return a ``tokenizer.json`` whose sequences stand between ``[CLS]`` and ``[SEP]``."""
    return FileTokenizer(
        path, pad="[PAD]", prefix=["[CLS]"], suffix=["[SEP]"], policy=policy, rows=rows
    )


@contextlib.contextmanager
def _failures_named(path: Path, problem: str) -> Iterator[None]:
    """Turn what the library raises into one message.

    Where it did not foresee what is in a file, it panics, which is no Exception.
    """
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        raise InputError(
            problem, where=str(path), found=plain(" ".join(str(error).split()), limit=300)
        ) from error


def read_followed(path: Path) -> bytes:
    """Read a file of a tokenizer; in the hub's cache it is a link to where the content lies.

    Raises
    ------
    NotFoundError, InputError
        See `geneb.base.files.read_bytes`; a link that leads nowhere is refused there.
    """
    return read_bytes(Path(os.path.realpath(path)), MAX_TOKENIZER_BYTES)


def read_vocabulary(path: Path) -> dict[str, int]:
    """Read a ``vocab.txt``: one token a line, numbered from 0.

    Raises
    ------
    InputError
        If it is not text, or a token is there twice.
    """
    try:
        lines = read_followed(path).decode("utf-8").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise InputError("this is not a vocabulary: it is not UTF-8", where=str(path)) from error
    vocabulary = {line.removesuffix("\r"): number for number, line in enumerate(lines)}
    if len(vocabulary) != len(lines):
        raise InputError("a token stands twice in this vocabulary", where=str(path))
    return vocabulary

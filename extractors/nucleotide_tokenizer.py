"""The tokenizer of InstaDeep's Nucleotide Transformers: k-mers out of a ``vocab.txt``."""

from __future__ import annotations

from pathlib import Path

from geneb.errors import InputError
from geneb.extractors.tokenizers import KmerTokenizer, read_vocabulary

_POLICY = {
    "case": "as it stands: lower case is unknown",
    "U": "unknown",
    "N": "a token",
    "other letters": "unknown, a run of them one token",
}


def read_nucleotide_tokenizer(path: Path, rows: int) -> KmerTokenizer:
    """Read a vocabulary; the longest of its tokens say what k is.

    Parameters
    ----------
    path
        ``vocab.txt``.
    rows
        Rows of the model's embedding table. A vocabulary may list more tokens; those are never
        produced.

    Raises
    ------
    InputError
        If it is no vocabulary, or lacks a special token.
    """
    vocabulary = {token: number for token, number in read_vocabulary(path).items() if number < rows}
    try:
        unknown, pad, first = (vocabulary[token] for token in ("<unk>", "<pad>", "<cls>"))
    except KeyError as error:
        raise InputError(
            "the vocabulary lacks a token that this model needs",
            where=str(path),
            expected=str(error.args[0]),
        ) from error
    k = max((len(token) for token in vocabulary if not token.startswith("<")), default=0)
    if not k:
        raise InputError("there are only special tokens in this vocabulary", where=str(path))
    return KmerTokenizer(vocabulary, k=k, unknown=unknown, pad=pad, prefix=[first], policy=_POLICY)

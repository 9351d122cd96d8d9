"""DNA-GPT: a decoder of the GPT-2 kind without biases, and its two tokenizers of 6-mers.

Written from the published description of the architecture. Of the checkpoint it is assumed, and
insisted on, that it is a state dict with GPT-2's names: ``transformer.wte``, ``transformer.wpe``,
``transformer.h.<i>.`` with ``ln_1``, ``attn.c_attn`` (queries, keys and values in this order),
``attn.c_proj``, ``ln_2``, ``mlp.c_fc``, ``mlp.c_proj``, and ``transformer.ln_f``, each a
``weight`` as `torch.nn.Linear` keeps it, (out, in); and three heads, ``number_embedding``,
``num_regression`` and ``mlm_head``, which are not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from geneb.base.canonical import digest
from geneb.errors import InputError
from geneb.extractors.checkpoints import Checkpoint, load_strictly, parameters_on_meta, rename
from geneb.extractors.options import ModelOptions
from geneb.extractors.tokenizers import Tokenizer
from geneb.extractors.torch_extractor import Network, Recipe, TorchExtractor, torch_dtype

_LETTERS = "NAGCT"
_K = 6
_RESERVED = 34
_UNKNOWN, _PAD, _PREFIX = 0, 20, 21  # the last is <R>
_POLICY = {
    "case": "as it stands: a word with lower case is unknown",
    "U": "a word with it is unknown",
    "N": "a letter",
    "other letters": "a word with one is unknown",
}
_HEADS = ("number_embedding.", "num_regression.", "mlm_head.")
_INNER = 4  # times the width


class Block(nn.Module):
    """Causal attention and a feed-forward part, a norm before each."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.ln_1 = nn.LayerNorm(width, bias=False)
        self.ln_2 = nn.LayerNorm(width, bias=False)
        self.attn = nn.ModuleDict(
            {
                "c_attn": nn.Linear(width, 3 * width, bias=False),
                "c_proj": nn.Linear(width, width, bias=False),
            }
        )
        self.mlp = nn.ModuleDict(
            {
                "c_fc": nn.Linear(width, _INNER * width, bias=False),
                "c_proj": nn.Linear(_INNER * width, width, bias=False),
            }
        )

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return hidden states of the same shape: (rows, tokens, width)."""
        hidden = hidden + self._attend(self.ln_1(hidden))
        inner = functional.gelu(self.mlp["c_fc"](self.ln_2(hidden)), approximate="tanh")
        return hidden + self.mlp["c_proj"](inner)

    def _attend(self, hidden: torch.Tensor) -> torch.Tensor:
        query, key, value = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in self.attn["c_attn"](hidden).chunk(3, dim=-1)
        )
        found = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.attn["c_proj"](found.transpose(1, 2).flatten(2))


class DecoderNetwork(Network):
    """Token and position embeddings, blocks, and a final norm.

    Tokens look back only, so that padding on the right needs no mask.

    Parameters
    ----------
    vocabulary
        Rows of the token embedding.
    context
        Rows of the position embedding.
    """

    def __init__(
        self, *, vocabulary: int, context: int, layers: int, width: int, heads: int
    ) -> None:
        super().__init__()
        self.layers = layers
        self.wte = nn.Embedding(vocabulary, width)
        self.wpe = nn.Embedding(context, width)
        self.h = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width, bias=False)

    def forward(
        self, ids: torch.Tensor, inside: torch.Tensor, wanted: Sequence[int]
    ) -> dict[int, torch.Tensor]:
        """Run the blocks; the last hidden state is after the final norm."""
        del inside
        hidden = self.wte(ids) + self.wpe(torch.arange(ids.shape[1], device=ids.device))
        found = {0: hidden}
        for number, block in enumerate(self.h, start=1):
            hidden = block(hidden)
            if number in wanted:
                found[number] = hidden
        found[self.layers] = self.ln_f(hidden)
        return {number: found[number] for number in wanted}


class DnaGptTokenizer(Tokenizer):
    """Words of six letters out of N, A, G, C, T, one after the other; ``<R>`` in front.

    Parameters
    ----------
    dynamic
        Whether a rest of fewer than six letters is a word of its own; it is unknown otherwise.

    Attributes
    ----------
    vocabulary_size
        34 reserved tokens and all words.
    """

    pad = _PAD
    prefix = (_PREFIX,)
    policy = _POLICY

    def __init__(self, *, dynamic: bool) -> None:
        shortest = 1 if dynamic else _K
        sizes = {length: len(_LETTERS) ** length for length in range(shortest, _K + 1)}
        ends = np.cumsum([_RESERVED, *sizes.values()]).tolist()
        self._first = dict(zip(sizes, ends, strict=False))
        self.vocabulary_size: int = ends[-1]
        self.sha256 = digest(
            {
                "letters": _LETTERS,
                "first": {str(length): first for length, first in self._first.items()},
                "specials": [_UNKNOWN, _PAD, _PREFIX],
            }
        )
        self._codes = np.full(256, -1, dtype=np.int64)
        self._codes[np.frombuffer(_LETTERS.encode("ascii"), dtype=np.uint8)] = range(len(_LETTERS))

    def encode(self, sequences: Sequence[str]) -> list[np.ndarray]:
        """Look words up from the left."""
        return [self._encode(sequence) for sequence in sequences]

    def _encode(self, sequence: str) -> np.ndarray:
        # Whatever is outside Latin-1 is one character of no meaning.
        text = np.frombuffer(sequence.encode("latin-1", errors="replace"), dtype=np.uint8)
        codes = self._codes[text]
        whole = len(codes) - len(codes) % _K
        words = [*self._words(codes[:whole].reshape(-1, _K))]
        if whole < len(codes):
            words += [*self._words(codes[whole:].reshape(1, -1))]
        return np.array(words, dtype=np.int64)

    def _words(self, codes: np.ndarray) -> np.ndarray:
        length = codes.shape[1]
        if length not in self._first:
            return np.full(len(codes), _UNKNOWN)
        places = len(_LETTERS) ** np.arange(length - 1, -1, -1)
        return np.where((codes < 0).any(axis=1), _UNKNOWN, self._first[length] + codes @ places)


class DnaGptExtractor(TorchExtractor):
    """DNA-GPT: the mean over all tokens, ``<R>`` included, after the final norm.

    Parameters
    ----------
    folder
        The published ``.pth``, or a folder with it.
    options
        What a user asked for.
    file
        Its name where a folder is given.
    dynamic
        See `DnaGptTokenizer`.
    context, layers, width, heads
        Sizes of the network, which no file comes with; ``context`` is the limit too.
    """

    name = "dnagpt"

    def __init__(
        self,
        folder: Path,
        options: ModelOptions,
        *,
        file: str,
        dynamic: bool,
        context: int,
        layers: int,
        width: int,
        heads: int,
    ) -> None:
        if folder.is_file():
            folder, file = folder.parent, folder.name
        checkpoint = Checkpoint(folder, [file])
        where = str(checkpoint.files[0])
        tokenizer = DnaGptTokenizer(dynamic=dynamic)
        recipe = Recipe(limit=context, notes={"heads": heads})
        with parameters_on_meta(where):
            network = DecoderNetwork(
                vocabulary=tokenizer.vocabulary_size,
                context=context,
                layers=layers,
                width=width,
                heads=heads,
            )
        tensors = rename(checkpoint.tensors(), own_name, where=where)
        load_strictly(network, tensors, where=where, dtype=torch_dtype(options, recipe))
        super().__init__(tokenizer, network, recipe, checkpoint.sha256(), options)


def own_name(name: str) -> str | None:
    """Return a published tensor's name in `DecoderNetwork`; None for the heads."""
    if name.startswith(_HEADS):
        return None
    if not name.startswith("transformer."):
        raise InputError(
            "these weights have a tensor that is none of DNA-GPT's",
            expected="names beginning with transformer.",
            found=name[:200],
        )
    return name.removeprefix("transformer.")

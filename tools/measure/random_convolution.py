"""A stand-in for an encoder, in NumPy alone: random convolutions over one-hot letters.

Shaped like a published extractor file and loaded like one:
``--extractor tools/measure/random_convolution.py:RandomConvolution``. Its embeddings are wide and
badly scaled enough to keep an unscaled logistic regression as busy as a real model's do, and cost
next to nothing, so that probes and stores can be measured without weights or an accelerator.
"""

import numpy as np

FILTERS = 384
WIDTH = 12
SLAB_POSITIONS = 4096
SEED = 20240
# Halved, an unscaled fit takes some hundred iterations and still ends before the thousandth.
SCALE = 0.5


class RandomConvolution:
    """384 fixed random filters of 12 letters, ReLU, then the mean and the maximum of each.

    A vector depends on its own sequence alone, to the bit: every sequence has a matrix product of
    its own. Letters other than A, C, G, T (of either case) are zeros; what is shorter than a
    filter is filled up with zeros at the right.
    """

    batching = "masked"

    def __init__(self, name_model, device="cpu"):
        del name_model, device
        # RandomState's stream is frozen for good; that of the newer generators is not.
        random = np.random.RandomState(SEED)
        self.filters = (SCALE * random.standard_normal((WIDTH * 4, FILTERS))).astype(np.float32)
        self.bias = (SCALE * random.standard_normal(FILTERS)).astype(np.float32)
        self.letters = np.zeros((256, 4), dtype=np.float32)
        for column, base in enumerate("ACGT"):
            self.letters[[ord(base), ord(base.lower())], column] = 1

    def extract_embeddings(self, sequences, batch_size=64):
        """Return float32 of shape (n, 768); ``batch_size`` changes nothing."""
        del batch_size
        vectors = np.empty((len(sequences), 2 * FILTERS), dtype=np.float32)
        for row, sequence in enumerate(sequences):
            vectors[row] = self._embed(sequence)
        return vectors

    def _embed(self, sequence):
        text = sequence.ljust(WIDTH, "N").encode("latin-1", errors="replace")
        windows = len(text) - WIDTH + 1
        highest = np.zeros(FILTERS, dtype=np.float32)
        total = np.zeros(FILTERS, dtype=np.float64)
        for first in range(0, windows, SLAB_POSITIONS):
            piece = np.frombuffer(text[first : first + SLAB_POSITIONS + WIDTH - 1], dtype=np.uint8)
            one_hot = self.letters[piece]
            patches = np.lib.stride_tricks.sliding_window_view(one_hot.ravel(), WIDTH * 4)[::4]
            active = np.ascontiguousarray(patches) @ self.filters
            active += self.bias
            np.maximum(active, 0, out=active)
            np.maximum(highest, active.max(axis=0), out=highest)
            total += active.sum(axis=0)
        return np.concatenate([total / windows, highest])

"""Keeping documents apart within a sequence: masks for attention and for the loss.

Owns these two masks. Doesn't know models; `ShardSet.documents` says which document a token is of.
"""

import numpy as np
from numpy.typing import NDArray


def attention_mask(documents: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return [n, n]: whether token i may look at token j, no later one and of its own document."""
    same = documents[:, None] == documents[None, :]
    return np.tril(same)


def loss_mask(documents: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return [n - 1]: whether a target is of the same document as its input.

    What follows an end mark is the beginning of another document, which nothing foretells.
    """
    return documents[1:] == documents[:-1]

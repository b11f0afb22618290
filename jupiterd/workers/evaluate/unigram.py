"""The unigram of a model's own tokens: what it would score without looking at any context.

Owns counting (add-one smoothed) and scoring. Doesn't know the model that the tokens are of.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Unigram:
    """-log probability of each token, shape [vocabulary]."""

    token_nats: NDArray[np.float64]

    def nats(self, ids: list[int]) -> float:
        """Return -log probability of these tokens, whatever their order."""
        return float(self.token_nats[np.asarray(ids, dtype=np.int64)].sum())


def count_tokens(token_lists: Iterable[list[int]], vocab_size: int) -> Unigram:
    """Return the unigram of these tokens; one never seen counts as seen once."""
    counts = np.ones(vocab_size, dtype=np.float64)
    for ids in token_lists:
        counts += np.bincount(np.asarray(ids, dtype=np.int64), minlength=vocab_size)
    return Unigram(-np.log(counts / counts.sum()))

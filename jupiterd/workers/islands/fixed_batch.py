"""What tells islands whether they train the same model: logits of one batch, the same everywhere.

Owns that batch, and which outer step's weights the logits are of. Doesn't know who compares them
(`cycle.training.model_fingerprint`), or how they travel.
"""

import numpy as np
from numpy.typing import NDArray

from jupiterd.workers.training_engine import Tensors, TrainingEngine

LENGTH = 128
"""Tokens of the one sequence; the last one sees them all."""

STRIDE = 2_654_435_761
"""Neither even nor a multiple of any vocabulary: the tokens lie all over it."""

OPEN_ROUNDS = 2
"""Rounds that may be open at a time."""


class FixedBatch:
    """One rank's logits of it, since the last outer steps.

    seq_len: of what is trained on; no model need take more
    """

    def __init__(self, engine: TrainingEngine, seq_len: int) -> None:
        self._engine = engine
        self._tokens = tokens_of(engine.config.vocab_size, min(LENGTH, seq_len))
        self._logits: dict[str, bytes] = {}

    def pass_through(self, step: str, weights: Tensors | None) -> None:
        """Compute the logits at an outer step's weights; rank 0 does, for its island.

        Where the model is cut over its ranks, all of them do.

        step: its name; nothing is computed before the first
        weights: None: those that the engine has
        """
        is_cut = self._engine.partition is not None
        if not step or (self._engine.rank and not is_cut):
            return
        found = self._engine.logits(self._tokens, weights)
        open_logits = [*self._logits.items()][1 - OPEN_ROUNDS :]
        self._logits = {**dict(open_logits), step: found.astype("<f4").tobytes()}

    def logits_at(self, step: str) -> bytes:
        """Return the logits at an outer step's weights, float32 in little endian.

        Empty where this rank hasn't computed them.
        """
        return self._logits.get(step, b"")


def tokens_of(vocabulary: int, length: int) -> NDArray[np.int64]:
    """Return the sequence, [tokens]."""
    return np.arange(1, length + 1, dtype=np.int64) * STRIDE % vocabulary

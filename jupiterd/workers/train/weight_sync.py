"""Whether this rank still holds the weights of the others: looked at now and then.

Owns when it is looked at, and what is told of the weights. Doesn't know who is right
(`cycle/training/gradient_sync`), or how numbers travel.
"""

import numpy as np
from blake3 import blake3

from jupiterd.cycle.training.gradient_sync import LENGTHS, Fingerprint, diverged
from jupiterd.errors import OutOfSyncError
from jupiterd.workers.training_engine import TrainingEngine

EVERY_STEPS = 50
"""Between two looks; and after the first step and the last. Hashing takes a second for 4 GB."""

IN_SYNC = "OK"
CATCHING_UP = "a rank catches up"
ALONE = "alone"
"""There is nobody to be in sync with."""


class WeightSync:
    """The looks of one rank; all ranks look after the same steps."""

    def __init__(self, engine: TrainingEngine, first_step: int) -> None:
        self._engine = engine
        self._first_step = first_step
        self._was_complete = True

    def check(self, step: int, *, is_last: bool, is_complete: bool = True) -> str:
        """Compare with the others if it is time; return how it stands.

        is_complete: all ranks have the weights of this step

        Raises:
            OutOfSyncError: the weights differ; the ranks are named.
        """
        if self._engine.world_size == 1:
            return ALONE
        is_first = step == self._first_step + 1 or not self._was_complete
        self._was_complete = is_complete
        if not is_complete:
            return CATCHING_UP
        if is_last or is_first or step % EVERY_STEPS == 0:
            self._compare(step)
        return IN_SYNC

    def _compare(self, step: int) -> None:
        rows = self._engine.gather(fingerprint(self._engine).to_numbers())
        if found := diverged([Fingerprint.from_numbers(row) for row in rows]):
            ranks = " and ".join(map(str, found))
            verb = "holds" if len(found) == 1 else "hold"
            raise OutOfSyncError(f"rank {ranks} {verb} other weights than the rest at step {step}")


def fingerprint(engine: TrainingEngine) -> Fingerprint:
    """Return what the rank tells of its weights."""
    squares, hasher = [0.0] * LENGTHS, blake3()
    is_cut = engine.partition is not None
    tensors = engine.each_weight() if is_cut else sorted(engine.weights().items())
    for number, (name, values) in enumerate(tensors):
        flat = values.ravel()
        squares[number % LENGTHS] += float(flat @ flat)
        hasher.update(name.encode())
        hasher.update(np.ascontiguousarray(flat).tobytes())
    lengths = [value**0.5 for value in squares]
    return Fingerprint.of(engine.platform, hasher.digest(), lengths)

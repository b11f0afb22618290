"""A rank whose state is still being fetched: it takes part in every step, and catches up.

Owns what such a rank does instead of a step. It contributes a zero gradient and stores the summed
gradients of the others until the state of the attempt's first step arrives. Then it applies the
stored gradients one after the other, and has the others' weights from there on. Doesn't know how
the state travels (the daemon), or how it is loaded.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from jupiterd.errors import StateNotFetchedError
from jupiterd.memory_limits import free_memory_bytes
from jupiterd.workers.training_engine import Gradients, MicroBatch, TrainingEngine

MOST_BYTES = 4 << 30
MOST_OF_FREE = 0.125
MOST_STEPS = 200
"""What is kept at the most, of the memory that is free too; then the others wait for the state."""

BYTES_PER_NUMBER = 4

WAIT_S = 6.0
"""How long they wait for it then: less than what their leader takes for a step that hangs."""


class Delivery(Protocol):
    """Delivers the folder of the state."""

    def arrived(self, name: str, wait_s: float = 0.0) -> Path | None:
        """Return the folder of a late input, waiting so long for it; None: it isn't there yet.

        Raises:
            StateNotFetchedError: it won't come.
        """
        ...


class CatchUpRank:
    """Stores the steps that one rank has missed until it has caught up.

    load: fills the engine with the state in a folder
    """

    def __init__(
        self,
        engine: TrainingEngine,
        delivery: Delivery,
        load: Callable[[Path], None],
        *,
        is_late: bool,
    ) -> None:
        self._engine = engine
        self._delivery = delivery
        self._load = load
        self._missed: deque[tuple[Gradients, float]] = deque()
        self._most_missed: int | None = None
        self._began_s = time.monotonic()
        self.is_here = not is_late
        """It has the others' weights."""

    def step(self, batch: Sequence[MicroBatch], learning_rate: float) -> tuple[float, float]:
        """Take part in a step without a share in it; see `TrainingEngine.step`.

        batch: any; nothing is learned from it

        Raises:
            StateNotFetchedError: the state doesn't come.
        """
        if not self.is_here:
            self._look()
        self._engine.sum_gradients(batch, counts=False)
        if self.is_here:
            return 0.0, self._engine.take_step(learning_rate)
        self._missed.append((self._engine.take_gradients(), learning_rate))
        return 0.0, 0.0

    def _look(self) -> None:
        wait_s = WAIT_S if self._is_full() else 0.0
        folder = self._delivery.arrived("checkpoint", wait_s)
        if folder is not None:
            self._catch_up(folder)
        elif wait_s:
            raise StateNotFetchedError(f"the state hasn't come after {len(self._missed)} steps")

    def _is_full(self) -> bool:
        if self._most_missed is None:
            count = sum(values.size for values in self._engine.weights().values())
            most_bytes = min(MOST_BYTES, int(MOST_OF_FREE * free_memory_bytes()))
            self._most_missed = min(MOST_STEPS, most_bytes // (count * BYTES_PER_NUMBER))
        return len(self._missed) >= self._most_missed

    def _catch_up(self, folder: Path) -> None:
        arrived_s = time.monotonic()
        self._load(folder)
        missed = len(self._missed)
        while self._missed:
            gradients, learning_rate = self._missed.popleft()
            self._engine.put_gradients(gradients)
            self._engine.take_step(learning_rate)
        now_s = time.monotonic()
        print(  # noqa: T201 - our log
            f"caught up: the state came after {arrived_s - self._began_s:.2f} s, loading it and "
            f"{missed} missed steps took {now_s - arrived_s:.2f} s",
            flush=True,
        )
        self.is_here = True

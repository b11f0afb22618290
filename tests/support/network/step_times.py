"""When a run came to its steps, and what strikes have cost it.

Owns looking, and the sums. Doesn't know a run, or a strike.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from statistics import median

LOOK_S = 0.25


class StepTimes:
    """Those of one run; times are monotonic, in seconds."""

    def __init__(self) -> None:
        self._seen: list[tuple[float, int, int]] = []
        """When which attempt was seen at which step."""

    @asynccontextmanager
    async def watching(
        self, step: Callable[[], Awaitable[tuple[int, int]]]
    ) -> AsyncGenerator[None]:
        """Look meanwhile; `step` returns attempt and step."""
        async with asyncio.TaskGroup() as group:
            looking = group.create_task(self._look(step))
            try:
                yield
            finally:
                looking.cancel()

    async def _look(self, step: Callable[[], Awaitable[tuple[int, int]]]) -> None:
        while True:
            attempt, reached = await step()
            self._seen.append((time.monotonic(), attempt, reached))
            await asyncio.sleep(LOOK_S)

    def since(self, attempt: int, step: int, now_s: float) -> float:
        """Return how long an attempt had trained by now since it was past a step."""
        later = [at for at, of, reached in self._seen if of == attempt and reached > step]
        return max(0.0, now_s - min(later, default=now_s))


def middle_and_worst(lost: Sequence[tuple[int, float]]) -> str:
    """Return the median and the most of the steps and seconds that were lost."""
    if not lost:
        return "nothing"
    steps, seconds = zip(*lost, strict=True)
    return (
        f"p50 {median(steps):g} steps, {median(seconds):.1f} s; "
        f"worst {max(steps)} steps, {max(seconds):.1f} s"
    )

"""Looking at a gang's clocks while it is followed.

Owns the pace of the looks. Doesn't know what is judged (`gang_watch`), nor what a verdict means.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from jupiterd.cluster.gang_watch import BEAT_S, GangWatch, Silent, Stuck
from jupiterd.daemon.clock import now_s
from jupiterd.errors import JupiterError

Verdict = Silent | Stuck


@asynccontextmanager
async def watching(
    watch: GangWatch, error_of: Callable[[Verdict], JupiterError]
) -> AsyncGenerator[None]:
    """Let a verdict end what is done meanwhile, with its error."""
    async with asyncio.TaskGroup() as group:
        looking = group.create_task(_look(watch, error_of))
        yield
        looking.cancel()


async def _look(watch: GangWatch, error_of: Callable[[Verdict], JupiterError]) -> None:
    while True:
        await asyncio.sleep(BEAT_S)
        if (verdict := watch.look(now_s())) is not None:
            raise error_of(verdict)

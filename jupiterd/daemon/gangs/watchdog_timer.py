"""Looking at a gang's clocks while it is followed.

Owns the pace of the looks. Doesn't know what is judged (`gang_watchdog`), what a verdict means, or
how a gang from which nothing comes is looked into.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager

from jupiterd.cluster.training.gang_watchdog import BEAT_S, GangWatchdog, Silent, Stuck
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.errors import JupiterError, PeerUnreachableError, TimedOutError

Verdict = Silent | Stuck


def as_error(verdict: Verdict, who: str) -> JupiterError:
    """Return what people are told; `who`: the node that it is about, or empty."""
    if isinstance(verdict, Silent):
        return PeerUnreachableError(f"{who} has said nothing for {verdict.for_s:.1f} s")
    together = "; every rank is alive, and each waits for the others"
    waited = f"; all wait for rank {verdict.rank} on {who}" if who else together
    return TimedOutError(f"no step has come to its end for {verdict.for_s:.0f} s{waited}")


@asynccontextmanager
async def watching(
    watch: GangWatchdog,
    error_of: Callable[[Verdict], JupiterError],
    look_into: Callable[[], Coroutine[None, None, None]],
) -> AsyncGenerator[None]:
    """Let a verdict end what is done meanwhile, with its error; `look_into` may raise its own."""
    async with asyncio.TaskGroup() as group:
        looks = group.create_task(_look(watch, error_of, look_into, group))
        yield
        looks.cancel()


async def _look(
    watch: GangWatchdog,
    error_of: Callable[[Verdict], JupiterError],
    look_into: Callable[[], Coroutine[None, None, None]],
    group: asyncio.TaskGroup,
) -> None:
    into: asyncio.Task[None] | None = None
    try:
        while True:
            await asyncio.sleep(BEAT_S)
            if (verdict := watch.look(now_s())) is not None:
                raise error_of(verdict)
            if (into is None or into.done()) and watch.is_in_doubt(now_s()):
                into = group.create_task(look_into())
    finally:
        if into is not None:
            into.cancel()

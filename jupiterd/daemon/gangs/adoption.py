"""Taking up a gang that another leader has launched, while it runs on.

Owns the asking: all of its work is followed, or none. Doesn't know what its events mean.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, replace

from jupiterd.daemon.leader.machines import Machines
from jupiterd.daemon.leader.work_calls import WorkCalls
from jupiterd.daemon.runtime.work_events import Started, WorkEvent, WorkOrder
from jupiterd.errors import PeerUnreachableError, TimedOutError
from jupiterd.ids import NodeId

ATTACH_TIMEOUT_S = 3.0
"""An answer takes milliseconds, and a second where a machine is busy training."""


@dataclass(frozen=True)
class Adopted:
    """A running gang that we follow."""

    works: Sequence[AsyncGenerator[WorkEvent]]
    """The events of each piece of its work, from the first on."""
    running_s: float
    """How long its oldest worker has been running."""


@asynccontextmanager
async def adopted(
    machines: Machines, calls: WorkCalls, orders: Sequence[tuple[NodeId, WorkOrder]]
) -> AsyncGenerator[Adopted]:
    """Follow these pieces of work, each on its node, until the context is left; they go on then.

    Raises:
        JupiterError: some of it doesn't run, or its node is gone, obeys another leader or runs
            another version.
    """
    if not {node for node, _ in orders} <= machines.answering():
        raise PeerUnreachableError("a member of the gang has gone")
    if not all(machines.is_alike(node) for node, _ in orders):
        raise PeerUnreachableError("a member of the gang runs another version of Jupiter")
    async with AsyncExitStack() as stack:
        streams = [
            await stack.enter_async_context(
                aclosing(calls.run(node, replace(order, is_attach=True)))
            )
            for node, order in orders
        ]
        starts = await _starts(streams)
        works = [_whole(start, stream) for start, stream in zip(starts, streams, strict=True)]
        yield Adopted(works, max(start.running_s for start in starts))


async def _starts(streams: Sequence[AsyncIterator[WorkEvent]]) -> list[Started]:
    """Wait until every stream has told when its worker began: that is always the first event."""
    try:
        async with asyncio.timeout(ATTACH_TIMEOUT_S):
            firsts = await asyncio.gather(*map(anext, streams), return_exceptions=True)
    except TimeoutError as error:
        raise TimedOutError("not every member of the gang has answered in time") from error
    for first in firsts:
        if isinstance(first, BaseException):
            raise first
    return [first for first in firsts if isinstance(first, Started)]


async def _whole(start: Started, rest: AsyncIterator[WorkEvent]) -> AsyncGenerator[WorkEvent]:
    yield start
    async for event in rest:
        yield event

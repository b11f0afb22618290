"""Having many items done at once, but not more than there is room for.

Owns how many run at a time; nodes may come and go meanwhile. Doesn't know what an item does.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence

from jupiterd.cluster.planning.roles import Role
from jupiterd.cycle.base.work_item import WorkItem
from jupiterd.daemon.leader.placement import Placement

LOOK_S = 1.0
"""So often it is looked whether more nodes are here."""


async def run_spread(
    items: Sequence[WorkItem],
    places: Callable[[WorkItem], int],
    do: Callable[[WorkItem], Coroutine[None, None, None]],
) -> None:
    """Do the items in their order, as many at a time as there are places for the next one."""
    waiting, running = list(items), set[asyncio.Task[None]]()
    async with asyncio.TaskGroup() as group:
        while waiting or running:
            while waiting and len(running) < places(waiting[0]):
                item = waiting.pop(0)
                running.add(group.create_task(do(item), name=item.id))
            _, running = await asyncio.wait(
                running, timeout=LOOK_S, return_when=asyncio.FIRST_COMPLETED
            )


def engine_places(placement: Placement) -> int:
    """Return how many items may load a model: a second one on a node takes memory and no time."""
    seats = placement.seats()
    return max(1, sum(seat.has_engine and seat.role != Role.IDLE for seat in seats))


def training_places(placement: Placement) -> int:
    """Return how many nodes train by themselves at the same time: those with GPUs, if any."""
    slow = placement.slow_workers()
    return max(
        1, engine_places(placement) if not slow else len(placement.fit_workers()) - len(slow)
    )

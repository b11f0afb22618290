"""Who led when: every machine is asked again and again, and what it says is kept with its time.

Owns the record of a while. Doesn't judge it: the tests do.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

from tests.support.daemons.cluster import Document
from tests.support.network.machines import Machine, Machines, leaders

LOOK_S = 0.1


@dataclass(frozen=True)
class Look:
    """What all said at one moment."""

    at_s: float
    views: Sequence[Document | None]

    @property
    def leaders(self) -> frozenset[str]:
        """Who said that it leads."""
        return frozenset(leaders(self.views))


@dataclass
class Reigns:
    """The looks of a while, oldest first."""

    looks: list[Look] = field(default_factory=list[Look])

    def all_leaders(self) -> frozenset[str]:
        """Return everybody who led at any time."""
        return frozenset().union(*(look.leaders for look in self.looks))

    def states(self) -> set[str]:
        """Return every state in which anybody was seen."""
        views = [view for look in self.looks for view in look.views if view is not None]
        return {node["state"] for view in views for node in view["nodes"]}

    def longest_s(self, *, leaders: int) -> float:
        """Return the longest time in a row with so many leaders, as far as the looks show."""
        longest_s, since_s = 0.0, None
        for look in self.looks:
            if len(look.leaders) != leaders:
                since_s = None
                continue
            since_s = look.at_s if since_s is None else since_s
            longest_s = max(longest_s, look.at_s - since_s)
        return longest_s


@contextlib.asynccontextmanager
async def watched(machines: Machines, among: Sequence[Machine] = ()) -> AsyncGenerator[Reigns]:
    """Look at these machines (or all) for as long as the context is open."""
    reigns, is_over = Reigns(), asyncio.Event()

    async def look() -> None:
        while not is_over.is_set():
            views = await machines.views(among)
            reigns.looks.append(Look(time.monotonic(), views))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await is_over.wait()

    async with asyncio.TaskGroup() as group:
        group.create_task(look())
        try:
            yield reigns
        finally:
            is_over.set()

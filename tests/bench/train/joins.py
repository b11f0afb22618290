"""A third node joins a gang of two that trains: how long the others stand still for it.

Owns the joining, and what the logs tell of it. `catch_up` is what the newcomer's own log says of
the state that it has fetched while the others trained; empty where it had it before.
"""

import asyncio
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from tests.bench.train.gangs import Change, training
from tests.bench.train.kills import PACE_S
from tests.support.daemons.cluster import Daemon

_CAUGHT_UP = re.compile(r"caught up: (.*)")
LOOK_S = 0.05
CATCH_UP_S = 30.0


@dataclass(frozen=True)
class Joining:
    """What came of one joining."""

    change: Change
    catch_up: str


async def joins(engine: str, times: int, size: str = "1m") -> AsyncGenerator[Joining]:
    """Let the third node join a gang of the two others so many times, each in a new cluster."""
    for _ in range(times):
        async with training(engine, size=size, ranks=2) as gang:
            await asyncio.sleep(PACE_S)
            before = await gang.trains(2)
            newcomer = gang.cluster[2]
            pinned = await asyncio.to_thread(
                gang.cluster.ctl, "node", "role", newcomer.name, "trainer"
            )
            assert pinned.returncode == 0, pinned.stderr
            change = await gang.changed(before["epoch"])
            await gang.trains(3)
            yield Joining(change, await _caught_up(newcomer))


async def _caught_up(newcomer: Daemon) -> str:
    for _ in range(int(CATCH_UP_S / LOOK_S)):
        for log in (newcomer.state_dir / "logs").glob("*train*.log"):
            if found := _CAUGHT_UP.search(log.read_text(errors="replace")):
                return found[1]
        await asyncio.sleep(LOOK_S)
    return ""

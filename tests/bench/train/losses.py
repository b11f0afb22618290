"""A member of a gang that is gone at a stroke: which one, how, and what came of it.

Owns the strikes and their undoing: whoever leads is killed or frozen, or the first rank's node is
killed (its daemon holds torch's store), or a cable is pulled: anybody's, or the leader's.
"""

import asyncio
import random
import signal
from collections.abc import AsyncGenerator, Callable
from enum import StrEnum

from jupiterd.daemon.runtime.clock import now_s
from tests.bench.train.freezes import send
from tests.bench.train.gangs import Gang, on_machines, training
from tests.bench.train.kills import PACE_S, Struck
from tests.support.daemons.cluster import Daemon, Document, three_daemons
from tests.support.network import links
from tests.support.network.machines import Machine


class Loss(StrEnum):
    """How a member is lost."""

    LEADER = "leader killed"
    FREEZE = "leader frozen"
    STORE = "store host killed"
    CABLE = "cable pulled"
    LEADERS_CABLE = "leader's cable pulled"


CABLES = (Loss.CABLE, Loss.LEADERS_CABLE)


async def losses(
    loss: Loss, engine: str, times: int, chance: random.Random
) -> AsyncGenerator[Struck]:
    """Strike one gang so many times; yield each time what came of it."""
    home = on_machines if loss in CABLES else three_daemons
    async with training(engine, home) as gang:
        await asyncio.sleep(PACE_S)
        for _ in range(times):
            yield await lose(gang, loss, chance)
            await asyncio.sleep(PACE_S)


async def lose(gang: Gang, loss: Loss, chance: random.Random) -> Struck:
    """Strike once, wait for the others' next step, and for the member to train again."""
    before = await gang.trains()
    struck = await _chosen(gang, loss, before, chance)
    others = [daemon for daemon in gang.cluster.daemons if daemon is not struck]
    gang.asked = others[0]
    at_s = now_s()
    undo = _strike(loss, struck)
    try:
        change = await gang.changed(before["epoch"], others)
        after = await gang.trains(2)
    finally:
        undo()
    await gang.trains()
    return Struck(at_s, before["step"], after["resumed_from_step"], change)


async def _chosen(gang: Gang, loss: Loss, before: Document, chance: random.Random) -> Daemon:
    if loss in (Loss.LEADER, Loss.FREEZE, Loss.LEADERS_CABLE):
        return await gang.leader()
    if loss is Loss.STORE:
        return await gang.daemon_of(before["gang"][0]["node"])
    return chance.choice(gang.cluster.daemons)


def _strike(loss: Loss, struck: Daemon) -> Callable[[], None]:
    if loss is Loss.FREEZE:
        pids = [struck.pid, *struck.workers()]
        send(pids, signal.SIGSTOP)
        return lambda: send(pids, signal.SIGCONT)
    if loss not in CABLES:
        struck.kill()
        return struck.start
    assert isinstance(struck, Machine)
    host = struck.host
    links.pull(host)
    return lambda: links.plug(host)

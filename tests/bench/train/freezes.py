"""A node that freezes and comes back: how soon it is declared dead, and how it joins again.

Owns the strikes: SIGSTOP of a follower's daemon and all its workers, then SIGCONT.
"""

import asyncio
import contextlib
import os
import random
import signal
from collections.abc import AsyncGenerator, Sequence

from jupiterd.daemon.runtime.clock import now_s
from tests.bench.train.gangs import Gang, training
from tests.bench.train.kills import PACE_S, Struck


async def freezes(
    engine: str, times: int, chance: random.Random
) -> AsyncGenerator[tuple[Struck, Struck]]:
    """Freeze one node of a gang so many times; yield the loss of each, and its return."""
    async with training(engine) as gang:
        await asyncio.sleep(PACE_S)
        for _ in range(times):
            yield await freeze(gang, chance)
            await asyncio.sleep(PACE_S)


async def freeze(gang: Gang, chance: random.Random) -> tuple[Struck, Struck]:
    """Stop every process of a follower, wait for the next step, and let them go on."""
    before = await gang.trains()
    leader = await gang.leader()
    frozen = chance.choice([one for one in gang.cluster.daemons if one is not leader])
    pids = [frozen.pid, *frozen.workers()]
    at_s = now_s()
    send(pids, signal.SIGSTOP)
    try:
        change = await gang.changed(before["epoch"])
        after = await gang.trains(2)
        lost = Struck(at_s, before["step"], after["resumed_from_step"], change)
    finally:
        send(pids, signal.SIGCONT)
    at_s = now_s()
    change = await gang.changed(after["epoch"])
    joined = await gang.trains(3)
    return lost, Struck(at_s, after["step"], joined["resumed_from_step"], change)


def send(pids: Sequence[int], number: signal.Signals) -> None:
    """Send a signal to all of these processes that are still there."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)

"""kill -9 of a rank: how soon the leader is told, and how soon the next step is finished.

Owns the strikes and their pace. One gang is struck again and again, as long as anybody measures.
"""

import asyncio
import os
import random
import signal
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from jupiterd.daemon.runtime.clock import now_s
from tests.bench.train.gangs import Change, Gang, Home, training, training_an_adapter
from tests.support.daemons.cluster import three_daemons

PACE_S = 10.0
"""Between two kills."""


@dataclass(frozen=True)
class Struck:
    """One strike, and what came of it."""

    at_s: float
    step: int
    """The last that was seen before."""
    resumed_from: int
    change: Change

    @property
    def told_s(self) -> float:
        return self.change.told_at_s - self.at_s

    @property
    def trained_s(self) -> float:
        return self.change.trained_at_s - self.at_s


async def kills(
    engine: str,
    times: int,
    chance: random.Random,
    home: Home = three_daemons,
    pace_s: float = PACE_S,
    *,
    lora: bool = False,
) -> AsyncGenerator[Struck]:
    """Strike one gang so many times; each strike hits another rank.

    lora: it trains an adapter
    """
    async with (training_an_adapter if lora else training)(engine, home) as gang:
        await asyncio.sleep(PACE_S)  # spares get ready
        for _ in range(times):
            began_s = now_s()
            yield await kill(gang, chance)
            await gang.trains()
            await asyncio.sleep(max(0.0, pace_s - (now_s() - began_s)))


async def kill(gang: Gang, chance: random.Random) -> Struck:
    """Kill one rank, and wait for the next step."""
    before = await gang.trains()
    pid = chance.choice(before["gang"])["pid"]
    at_s = now_s()
    os.kill(pid, signal.SIGKILL)
    change = await gang.changed(before["epoch"])
    after = await gang.trains()
    return Struck(at_s, before["step"], after["resumed_from_step"], change)

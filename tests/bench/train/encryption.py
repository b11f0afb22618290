"""What encryption of a gang costs: the tokens a second of one that trains, with it and without it.

Owns the measurement. All of a lab's machines share this one's processor, so what encrypts takes it
from what trains: on machines of their own it costs less of the time, and as much of a core.
"""

import asyncio
from collections.abc import AsyncGenerator

from tests.bench.train.gangs import Gang, on_machines, training

MEASURED_S = 20.0
WARM_UP_S = 5.0
RANKS = 2


async def speeds(engine: str, times: int, size: str) -> AsyncGenerator[tuple[float, float]]:
    """Yield the tokens a second of a gang that isn't encrypted, and of one that is; by turns."""
    for _ in range(times):
        yield await _speed(engine, size, "off"), await _speed(engine, size, "on")


async def _speed(engine: str, size: str, encryption: str) -> float:
    options = {"size": size, "ranks": RANKS, "more": ("--gang-encryption", encryption)}
    async with training(engine, on_machines, **options) as gang:
        await asyncio.sleep(WARM_UP_S)
        began = await gang.trains(RANKS)
        await asyncio.sleep(MEASURED_S)
        ended = await gang.trains(RANKS)
        assert ended["epoch"] == began["epoch"], "the gang was formed anew meanwhile"
        return (ended["step"] - began["step"]) / MEASURED_S * await _tokens_of_a_step(gang)


async def _tokens_of_a_step(gang: Gang) -> float:
    cycle = ((await gang.asked.ask("cycle")) or {}).get("cycle") or {}
    return cycle["tokens"] / cycle["step"]

"""What a daemon's own process takes of the processor while its gang trains steadily.

Owns the measurement. Workers and nurseries are processes of their own, and not in it.
"""

import asyncio
from dataclasses import dataclass

import psutil

from tests.bench.train.gangs import Gang, training
from tests.bench.train.kills import PACE_S
from tests.support.daemons.cluster import Daemon

MEASURED_S = 30.0


@dataclass(frozen=True)
class Supervision:
    """What it took in one measurement."""

    leader_percent: float
    follower_percent: float
    """Of the busiest one."""
    steps_per_s: float


async def supervision(engine: str, times: int) -> list[Supervision]:
    """Measure one gang so many times."""
    async with training(engine) as gang:
        await asyncio.sleep(PACE_S)
        return [await _measured(gang) for _ in range(times)]


async def _measured(gang: Gang) -> Supervision:
    began = await gang.trains()
    leader = await gang.leader()
    before = {daemon: _processor_s(daemon) for daemon in gang.cluster.daemons}
    await asyncio.sleep(MEASURED_S)
    took = {daemon: _processor_s(daemon) - before[daemon] for daemon in before}
    ended = await gang.trains()
    assert ended["epoch"] == began["epoch"], "the gang was formed anew meanwhile"
    percent = {daemon: took_s / MEASURED_S * 100 for daemon, took_s in took.items()}
    return Supervision(
        percent.pop(leader),
        max(percent.values()),
        (ended["step"] - began["step"]) / MEASURED_S,
    )


def _processor_s(daemon: Daemon) -> float:
    times = psutil.Process(daemon.pid).cpu_times()
    return times.user + times.system

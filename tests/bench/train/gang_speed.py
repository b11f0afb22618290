"""What guarding a gang costs: the tokens a second of one that trains in one way and in another.

Owns the measurement. All of a lab's machines share this one's processor, so what guards takes it
from what trains: on machines of their own it costs less of the time, and as much of a core.
"""

import asyncio
import contextlib
import sys
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench.train.gangs import Gang, Home, on_machines, training
from tests.support.daemons.cluster import Cluster, running
from tests.support.network.lab import lab_of
from tests.support.network.machines import Machine, Machines

MEASURED_S = 15.0
WARM_UP_S = 3.0
RANKS = 2
DAEMON: Final = Path(__file__).with_name("filtered_daemon.py")


def filtered(is_on: str) -> Home:
    """Return machines whose gangs have the filter (on) or not (off), and nothing else apart."""

    @contextlib.asynccontextmanager
    async def home(folder: Path) -> AsyncGenerator[Cluster]:
        with lab_of(3) as lab:
            machines = [Machine(folder, host) for host in lab.hosts]
            for machine in machines:
                machine.command = (sys.executable, "-P", DAEMON, is_on)
            async with running(machines):
                yield Machines(machines, lab)

    return home


@dataclass(frozen=True)
class Way:
    """How a gang trains."""

    home: Home = on_machines
    options: Sequence[str] = ()


FILTERED: Final = Way(filtered("off")), Way(filtered("on"))
ENCRYPTED: Final = (
    Way(options=("--gang-encryption", "off")),
    Way(options=("--gang-encryption", "on")),
)
"""Without, and with."""


async def speeds(
    engine: str, times: int, size: str, ways: tuple[Way, Way]
) -> AsyncGenerator[tuple[float, float]]:
    """Yield the tokens a second in the one way and in the other; each is first by turns."""
    without, with_it = ways
    for turn in range(times):
        if turn % 2 == 0:
            both = await _speed(engine, size, without), await _speed(engine, size, with_it)
        else:
            guarded = await _speed(engine, size, with_it)
            both = await _speed(engine, size, without), guarded
        yield both


async def _speed(engine: str, size: str, way: Way) -> float:
    async with training(engine, way.home, size=size, ranks=RANKS, more=way.options) as gang:
        await asyncio.sleep(WARM_UP_S)
        began = await gang.trains(RANKS)
        await asyncio.sleep(MEASURED_S)
        ended = await gang.trains(RANKS)
        assert ended["epoch"] == began["epoch"], "the gang was formed anew meanwhile"
        return (ended["step"] - began["step"]) / MEASURED_S * await _tokens_of_a_step(gang)


async def _tokens_of_a_step(gang: Gang) -> float:
    cycle = ((await gang.asked.ask("cycle")) or {}).get("cycle") or {}
    return cycle["tokens"] / cycle["step"]

"""What a daemon costs that has nothing to do, among many.

Owns one measurement for all its figures: a minute of looking at many daemons is dear.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import psutil

from tests.bench.cluster.machines import settled_machines
from tests.bench.figure import Figure, Goal
from tests.support.network.machines import Machine

MANY, FEWER = 16, 8
BYTES_EACH = 150 << 20
SETTLE_S = 75.0
"""Links settle on the better of two addresses within a minute of their making, and log it."""
MEASURED_S = 60.0


@dataclass(frozen=True)
class Cost:
    """What one daemon took in the measured time."""

    cpu_percent: float
    rss_mb: float
    written_bytes: int


@dataclass(frozen=True)
class Idle:
    """What all of them took."""

    leader: Cost
    followers: list[Cost]

    @property
    def all(self) -> list[Cost]:
        """Leader and followers alike."""
        return [self.leader, *self.followers]


@dataclass(frozen=True)
class _Reading:
    cpu_s: float
    written_bytes: int
    received_bytes: int


_measured: list[Idle] = []


async def measure_idle() -> Idle:
    """Let many daemons do nothing for a minute."""
    count = MANY if psutil.virtual_memory().available > MANY * BYTES_EACH else FEWER
    async with settled_machines(count) as machines:
        await asyncio.sleep(SETTLE_S)
        before = {machine: _read(machine) for machine in machines.machines}
        await asyncio.sleep(MEASURED_S)
        (view, *_) = await machines.one_cluster(SETTLE_S)
        costs = {machine: _cost(before[machine], machine) for machine in machines.machines}
        received = [_read(m).received_bytes - before[m].received_bytes for m in before]
    leader = next(machine for machine in costs if machine is machines.leader(view))
    kbit_s = max(received) * 8 / 1000 / MEASURED_S
    print(f"  {count} daemons on this machine's {psutil.cpu_count()} cores")
    print(f"  at most {kbit_s:.0f} kbit/s received by one of them")
    return Idle(costs[leader], [costs[machine] for machine in costs if machine is not leader])


def _read(machine: Machine) -> _Reading:
    process = psutil.Process(machine.pid)
    times = process.cpu_times()
    written_bytes = process.io_counters().write_bytes
    return _Reading(times.user + times.system, written_bytes, machine.host.received_bytes())


def _cost(before: _Reading, machine: Machine) -> Cost:
    after, process = _read(machine), psutil.Process(machine.pid)
    cpu_percent = (after.cpu_s - before.cpu_s) / MEASURED_S * 100
    rss_mb = process.memory_info().rss / 1e6
    return Cost(cpu_percent, rss_mb, after.written_bytes - before.written_bytes)


def _of_each_trial(pick: Callable[[Idle], float]) -> Callable[[], Awaitable[float]]:
    """Return a trial that takes up the n-th measurement, and makes it where nobody has yet."""
    taken = 0

    async def trial() -> float:
        nonlocal taken
        if taken == len(_measured):
            _measured.append(await measure_idle())
        taken += 1
        return pick(_measured[taken - 1])

    return trial


FIGURES = (
    Figure(
        "idle among many: CPU of the busiest follower",
        "% of a core",
        (Goal(0.5, 2.5),),
        _of_each_trial(lambda idle: max(cost.cpu_percent for cost in idle.followers)),
        1,
    ),
    Figure(
        "idle among many: CPU of the leader",
        "% of a core",
        (Goal(0.5, 4.0),),
        _of_each_trial(lambda idle: idle.leader.cpu_percent),
        1,
    ),
    Figure(
        "idle among many: memory of the largest",
        "MB",
        (Goal(0.5, 80.0),),
        _of_each_trial(lambda idle: max(cost.rss_mb for cost in idle.all)),
        1,
    ),
    Figure(
        "idle among many: written to disk by all",
        "bytes",
        (Goal(0.5, 0.0),),
        _of_each_trial(lambda idle: float(sum(cost.written_bytes for cost in idle.all))),
        1,
    ),
)

"""How soon another leads: the leader is killed, asked to stop, cut off, or disturbed."""

import asyncio
import contextlib
import time
from collections.abc import Callable

from tests.bench.cluster.machines import Looks, looking_at, settled_machines
from tests.bench.figure import Figure, Goal
from tests.support.network import links
from tests.support.network.machines import Machine, Views, ids, leaders
from tests.support.network.reigns import watched

MACHINES = 3
TIMEOUT_S = 30.0
FLAPPING_S = 60.0
FLAP_INTERVAL_S = 0.5


async def kill() -> float:
    """Return the seconds from kill -9 of the leader to a survivor's naming another."""
    return await _until_another_leads(Machine.kill)


async def stop() -> float:
    """Return the seconds from SIGTERM to the leader to another's being named."""
    return await _until_another_leads(Machine.stop)


async def pull() -> float:
    """Return the seconds from pulling the leader's cable to another's being named."""
    return await _until_another_leads(lambda leader: links.pull(leader.host))


async def _until_another_leads(strike: Callable[[Machine], None]) -> float:
    async with settled_machines(MACHINES) as machines:
        (view, *_) = await machines.views()
        assert view is not None
        old, leader = view["cluster"]["leader"], machines.leader(view)
        async with looking_at(machines.but(leader)) as looks:
            began_s = time.monotonic()
            strike(leader)
            return await _another_leads(looks, old) - began_s


async def _another_leads(looks: Looks, old: str) -> float:
    def is_so(views: Views) -> bool:
        named = {view["cluster"]["leader"] for view in views if view is not None}
        return bool(named & set(ids(views)) & leaders(views) - {old})

    return await looks.until(is_so, TIMEOUT_S)


async def flap() -> float:
    """Return the longest time without a leader while another's link comes and goes."""
    async with settled_machines(MACHINES) as machines:
        (view, *_) = await machines.views()
        assert view is not None
        flapping = machines.but(machines.leader(view))[0]
        ends_s = time.monotonic() + FLAPPING_S
        async with watched(machines, machines.but(flapping)) as reigns:
            while time.monotonic() < ends_s:
                links.pull(flapping.host)
                await asyncio.sleep(FLAP_INTERVAL_S)
                links.plug(flapping.host)
                await asyncio.sleep(FLAP_INTERVAL_S)
        with contextlib.suppress(AssertionError):
            await machines.one_cluster(TIMEOUT_S)
        print(f"  {len(reigns.all_leaders())} led, {len(reigns.looks)} looks in {FLAPPING_S:g} s")
        return reigns.longest_s(leaders=0)


FIGURES = (
    Figure("leader killed -9: another leads", "s", (Goal(0.5, 2.0), Goal(0.99, 3.5)), kill),
    Figure("leader told to stop: another leads", "s", (Goal(0.95, 0.3),), stop),
    Figure("leader's cable pulled: another leads", "s", (Goal(0.95, 8.0),), pull, 10),
    Figure(
        "longest time without a leader, a third link down or up every 0.5 s for 60 s",
        "s",
        (Goal(1.0, 5.0),),
        flap,
        3,
    ),
)

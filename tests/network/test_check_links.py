"""A cable that carries less than it seems: measuring finds it out, and the other one is used."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.network import links
from tests.support.network.lab import interface
from tests.support.network.machines import Machine, Machines
from tests.support.network.twice import SECOND, all_use, wired_twice

pytestmark = [pytest.mark.timeout(150), pytest.mark.usefixtures("traffic_shaper")]

SLOW_MBIT = range(35, 60)
"""Of 50 Mbit/s, what TCP, TLS and a busy machine leave."""

FAST_MBIT = 150.0
CHECK_S = 40.0
LEFT_S = 60.0
"""A way that works is left for one that has been better for half a minute."""


@pytest.mark.parametrize(
    "measures_who_decides", [True, pytest.param(False, marks=pytest.mark.long)]
)
async def test_a_slow_cable_is_measured_and_left_for_the_fast_one(
    tmp_path: Path, measures_who_decides: bool
) -> None:
    async with wired_twice(tmp_path) as machines:
        views = await machines.one_cluster(LEFT_S)
        slow, fast = (0, SECOND) if all_use(views, 0) else (SECOND, 0)
        for host in machines.lab.hosts:
            links.throttle(host, slow, "50mbit")
        ids = [view["node"]["id"] for view in views]
        asker = machines[ids.index(min(ids) if measures_who_decides else max(ids))]

        ways = await measured(machines, asker)
        for way in ways:
            for mbit in (way["out_mbit_per_s"], way["in_mbit_per_s"]):
                if way["interface"] == interface(slow):
                    assert SLOW_MBIT.start <= mbit <= SLOW_MBIT.stop, ways
                else:
                    assert mbit > FAST_MBIT, ways
        assert {way["interface"] for way in ways} == {interface(slow), interface(fast)}

        await machines.until_all(
            lambda views: None not in views and all_use(views, fast),
            "the fast cable is used",
            LEFT_S,
        )
        await machines.one_cluster(LEFT_S)


async def measured(machines: Machines, asker: Machine) -> list[dict[str, Any]]:
    """Measure as somebody at that machine does."""
    command = ("check", "links", "-o", "json")
    done = await asyncio.to_thread(machines.ctl, *command, daemon=asker, timeout_s=CHECK_S)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["paths"]

"""Six machines at once, and a network without multicast."""

import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.support.daemons.cluster import running
from tests.support.network import links
from tests.support.network.lab import lab_of
from tests.support.network.machines import Machine, Machines, agree, ids, machines_of, machines_on

pytestmark = pytest.mark.timeout(180)

JOIN_S = 40.0
"""Six daemons start on the cores of this one machine."""

NAMED_S = 30.0


async def test_six_machines_switched_on_together_are_one_cluster(tmp_path: Path) -> None:
    async with machines_on(6, tmp_path) as machines:
        views = await machines.one_cluster(JOIN_S)
        assert len(set(ids(views))) == 6
        assert all(len(view["nodes"]) == 6 for view in views)


async def test_without_multicast_a_named_address_brings_all_together(
    tmp_path: Path, packet_filter: None
) -> None:
    async with led_by_the_named_one(tmp_path) as machines:
        views = await machines.until_all(agree, "all are alive in one cluster", NAMED_S)
        assert all(view["cluster"]["nodes_alive"] == 3 for view in views)


async def test_without_multicast_those_left_stay_together_when_the_named_one_dies(
    tmp_path: Path, packet_filter: None
) -> None:
    async with led_by_the_named_one(tmp_path) as machines:
        await machines.one_cluster(NAMED_S)
        named, *others = machines.machines
        named.kill()
        await machines.one_cluster(NAMED_S, others)


@contextlib.asynccontextmanager
async def led_by_the_named_one(folder: Path) -> AsyncGenerator[Machines]:
    """Run a machine that leads a cluster with a name; then two that are told its address alone."""
    with lab_of(3) as lab:
        for host in lab.hosts:
            links.silence_multicast(host)
        first, *others = lab.hosts
        named = Machine(folder, first)
        told = [Machine(folder, host, ("--peer", first.address)) for host in others]
        machines = Machines([named, *told], lab)
        async with running([named]):
            await machines.until_all(agree, "it leads", JOIN_S, [named])
            for words in ("rename", "attic"), ("open",):
                done = machines.ctl("cluster", *words, daemon=named)
                assert done.returncode == 0, done.stderr
            async with running(told):
                yield machines


async def test_a_machine_is_found_by_a_cable_that_is_plugged_in_later(tmp_path: Path) -> None:
    with lab_of(3) as lab:
        late = lab.hosts[-1]
        links.pull(late)
        async with machines_of(lab, tmp_path) as machines:
            await machines.one_cluster(JOIN_S, machines.machines[:2])
            alone = await machines.until_all(
                lambda views: all(view and view["cluster"]["leader"] for view in views),
                "it leads itself",
                JOIN_S,
                machines.machines[2:],
            )
            assert len(alone[0]["nodes"]) == 1
            links.plug(late)
            views = await machines.one_cluster(JOIN_S)
            assert all(len(view["nodes"]) == 3 for view in views)

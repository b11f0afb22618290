"""Links that carry packets one way only, or of which one of two breaks."""

import asyncio
from pathlib import Path

import pytest

from tests.support.network import links
from tests.support.network.lab import lab_of
from tests.support.network.machines import leaders, machines_of, machines_on, state_of
from tests.support.network.reigns import watched

pytestmark = pytest.mark.timeout(240)

JOIN_S = 20.0
DEAF_S = 30.0
BACK_S = 15.0
SWITCHED_S = 8.0
"""Longer than a silence may last before it is suspicious."""

SETTLED_S = 3.0


async def test_a_machine_that_hears_nobody_is_not_followed(
    tmp_path: Path, packet_filter: None
) -> None:
    """Its packets arrive, and nothing comes back: TCP knows no such thing as half a link."""
    async with machines_on(3, tmp_path) as machines:
        (view, *_) = await machines.one_cluster(JOIN_S)
        old, deaf = view["cluster"]["leader"], machines.leader(view)
        others = machines.but(deaf)
        links.deafen(deaf.host, [machine.host for machine in others])
        views = await machines.until_all(
            lambda views: (
                None not in views
                and len(leaders(views)) == 1
                and all(v["cluster"]["leader"] in leaders(views) for v in views if v)
                and all(state_of(v, old) == "gone" for v in views if v)
            ),
            "those who hear each other have a leader, and miss the deaf one",
            DEAF_S,
            others,
        )
        links.restore(deaf.host)
        again = await machines.one_cluster(BACK_S)
        assert again[0]["cluster"]["leader"] == views[0]["cluster"]["leader"]


async def test_two_that_cannot_hear_each_other_stay_in_by_the_third(
    tmp_path: Path, packet_filter: None
) -> None:
    """A link fault is no death: the third hears both."""
    async with machines_on(3, tmp_path) as machines:
        (view, *_) = await machines.one_cluster(JOIN_S)
        one, other = machines.but(machines.leader(view))
        links.deafen(one.host, [other.host])
        async with watched(machines) as reigns:
            await asyncio.sleep(DEAF_S)
        assert reigns.states() == {"alive"}
        assert reigns.all_leaders() == {view["cluster"]["leader"]}
        links.restore(one.host)
        await machines.one_cluster(BACK_S)


async def test_with_two_cables_one_may_be_pulled(tmp_path: Path) -> None:
    with lab_of(3) as lab:
        lab.add_switch(1)
        for host in lab.hosts:
            host.plug_in(1)
        async with machines_of(lab, tmp_path) as machines:
            (view, *_) = await machines.one_cluster(JOIN_S)
            old, leader = view["cluster"]["leader"], machines.leader(view)
            struck = machines.but(leader)[0]
            async with watched(machines) as reigns:
                for switch in (0, 1):  # one of the two is the one in use
                    links.pull(struck.host, switch)
                    await asyncio.sleep(SWITCHED_S)
                    views = await machines.one_cluster(BACK_S)
                    links.plug(struck.host, switch)
                    await asyncio.sleep(SETTLED_S)
            assert views[0]["cluster"]["leader"] == old, "it isn't disturbed"
            assert views[0]["cluster"]["term"] == view["cluster"]["term"]
            assert reigns.states() == {"alive"}, machines.failure_text("somebody was suspected")

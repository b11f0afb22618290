"""kill -9, and a process that stands still: those who are left go on, and nobody leads twice."""

import asyncio
from pathlib import Path

import pytest

from tests.support.network.machines import Machine, Machines, ids, machines_on, state_of
from tests.support.network.reigns import watched

pytestmark = pytest.mark.timeout(150)

JOIN_S = 15.0
NOTICED_S = 3.0
"""A machine without its daemon refuses connections: that is known at once."""

ANOTHER_LEADS_S = 5.0
STILL_S = 12.0
"""Long enough for the others to suspect it (5 s) and to elect (3 s)."""

TWO_LEADERS_S = 1.5
"""Whoever wakes steps down before it takes in anything: looks may come in between."""


async def another_leads(machines: Machines, old: str, among: list[Machine], within_s: float) -> str:
    """Wait until all of these follow another leader, one of them; return it."""
    views = await machines.until_all(
        lambda views: (
            None not in views
            and len({v["cluster"]["leader"] for v in views if v}) == 1
            and views[0] is not None
            and views[0]["cluster"]["leader"] in set(ids(views)) - {old}
        ),
        "another leads",
        within_s,
        among,
    )
    return views[0]["cluster"]["leader"]


async def test_the_death_of_a_follower_and_then_of_the_leader_is_noticed_at_once(
    tmp_path: Path,
) -> None:
    async with machines_on(3, tmp_path) as machines:
        (view, *_) = await machines.one_cluster(JOIN_S)
        leader = machines.leader(view)
        follower, other = machines.but(leader)
        dead = next(node["id"] for node in view["nodes"] if node["name"] == follower.name)
        follower.kill()
        await machines.until_all(
            lambda views: all(v is not None and state_of(v, dead) == "gone" for v in views),
            "the dead one is gone",
            NOTICED_S,
            [leader, other],
        )
        follower.start()
        again = await machines.one_cluster(JOIN_S)
        assert again[0]["cluster"]["leader"] == view["cluster"]["leader"], "it isn't disturbed"

        leader.kill()
        new = await another_leads(
            machines, view["cluster"]["leader"], [follower, other], ANOTHER_LEADS_S
        )
        leader.start()
        last = await machines.one_cluster(JOIN_S)
        assert last[0]["cluster"]["leader"] == new, "a working leader isn't disturbed"


async def test_a_leader_that_stood_still_finds_another_and_steps_down(tmp_path: Path) -> None:
    async with machines_on(3, tmp_path) as machines:
        await stand_still(machines, STILL_S)


async def stand_still(machines: Machines, still_s: float) -> None:
    """Stop the leader's process for a while; another leads, and goes on leading afterwards."""
    (view, *_) = await machines.one_cluster(JOIN_S)
    old = view["cluster"]["leader"]
    leader = machines.leader(view)
    with leader.frozen():
        is_over = asyncio.get_running_loop().time() + still_s
        new = await another_leads(machines, old, machines.but(leader), still_s)
        async with watched(machines, machines.but(leader)) as meanwhile:
            await asyncio.sleep(is_over - asyncio.get_running_loop().time())
        assert meanwhile.all_leaders() == {new}
    async with watched(machines) as reigns:
        views = await machines.one_cluster(JOIN_S)
    assert views[0]["cluster"]["leader"] == new, "a working leader isn't disturbed"
    assert reigns.all_leaders() <= {old, new}
    assert reigns.longest_s(leaders=2) <= TWO_LEADERS_S
    assert reigns.longest_s(leaders=0) == 0.0

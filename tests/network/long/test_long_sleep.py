"""The long form of a process that stands still, and cables of followers."""

from pathlib import Path

import pytest

from tests.network.test_dying import stand_still
from tests.support.network import links
from tests.support.network.machines import machines_on, state_of

pytestmark = pytest.mark.timeout(240)

JOIN_S = 15.0
STILL_S = 60.0
GONE_S = 20.0
BACK_S = 15.0


async def test_a_leader_that_slept_for_a_minute_steps_down_when_it_wakes(tmp_path: Path) -> None:
    async with machines_on(3, tmp_path) as machines:
        await stand_still(machines, STILL_S)


async def test_a_follower_without_its_cable_is_missed_and_comes_back(tmp_path: Path) -> None:
    async with machines_on(3, tmp_path) as machines:
        (view, *_) = await machines.one_cluster(JOIN_S)
        leader = machines.leader(view)
        follower, other = machines.but(leader)
        missed = next(node["id"] for node in view["nodes"] if node["name"] == follower.name)
        links.pull(follower.host)
        views = await machines.until_all(
            lambda views: all(v is not None and state_of(v, missed) == "gone" for v in views),
            "it is missed",
            GONE_S,
            [leader, other],
        )
        assert {v["cluster"]["leader"] for v in views} == {view["cluster"]["leader"]}
        links.plug(follower.host)
        again = await machines.one_cluster(BACK_S)
        assert again[0]["cluster"]["leader"] == view["cluster"]["leader"], "it isn't disturbed"

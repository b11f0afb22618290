"""A cable is pulled, as when the power goes: the others go on, and it comes back by itself."""

from pathlib import Path

import pytest

from tests.network.test_dying import another_leads
from tests.support.network import links
from tests.support.network.machines import machines_on, state_of

pytestmark = pytest.mark.timeout(120)

JOIN_S = 15.0
ANOTHER_LEADS_S = 12.0
"""Nothing refuses: it takes five seconds of silence, and an election."""

GONE_S = 20.0
BACK_S = 15.0


async def test_a_leader_without_its_cable_is_replaced_and_follows_when_it_is_back(
    tmp_path: Path,
) -> None:
    async with machines_on(3, tmp_path) as machines:
        (view, *_) = await machines.one_cluster(JOIN_S)
        old, leader = view["cluster"]["leader"], machines.leader(view)
        links.pull(leader.host)
        others = machines.but(leader)
        await another_leads(machines, old, others, ANOTHER_LEADS_S)
        (alone,) = await machines.until_all(
            lambda views: views[0] is not None and views[0]["cluster"]["nodes_alive"] == 1,
            "it sees nobody",
            GONE_S,
            [leader],
        )
        assert alone["cluster"]["leader"] == old, "alone, it goes on leading itself"
        await machines.until_all(
            lambda views: (
                views[0] is not None
                and [state_of(views[0], node["id"]) for node in alone["nodes"]].count("gone") == 2
            ),
            "it has given the others up",
            GONE_S,
            [leader],
        )
        links.plug(leader.host)
        views = await machines.one_cluster(BACK_S)
        assert views[0]["cluster"]["leader"] != old, "the larger group's leader stays"

"""A machine's address changes, as DHCP may have it: it stays the same node, in the same cluster."""

from pathlib import Path

import pytest

from tests.support.network import links
from tests.support.network.machines import Views, are_one, machines_on
from tests.support.network.reigns import watched

pytestmark = pytest.mark.timeout(120)

JOIN_S = 15.0
MOVED_S = 15.0


async def test_a_machine_with_another_address_is_found_there(tmp_path: Path) -> None:
    async with machines_on(3, tmp_path) as machines:
        (view, *_) = await machines.one_cluster(JOIN_S)
        leader = machines.leader(view)
        moving = machines.but(leader)[0]
        async with watched(machines) as reigns:
            new = links.readdress(moving.host, 77)
            views = await machines.until_all(
                lambda views: are_one_at(views, new), "all see the new address", MOVED_S
            )
        assert views[0]["cluster"]["leader"] == view["cluster"]["leader"], "it isn't disturbed"
        assert views[0]["cluster"]["term"] == view["cluster"]["term"]
        assert reigns.states() == {"alive"}, machines.failure_text("somebody was suspected")
        assert len(views[0]["nodes"]) == 3


def are_one_at(views: Views, address: str) -> bool:
    """Say whether they are one cluster, and all know one of them to be at this address."""
    return are_one(views) and all(
        any(address in told for node in view["nodes"] for told in node["addresses"])
        for view in views
        if view is not None
    )

"""Machines that are joined twice: both ways are known, both ends use the better, one is enough."""

from pathlib import Path

import pytest

from tests.support.network import links
from tests.support.network.lab import WIRELESS
from tests.support.network.reigns import watched
from tests.support.network.twice import all_use, joined_twice

pytestmark = [pytest.mark.timeout(120), pytest.mark.usefixtures("traffic_shaper")]

ELSEWHERE_S = 5.0
"""About two seconds until it is noticed, and some for a busy machine."""


async def test_both_ways_are_known_and_both_ends_use_the_better(tmp_path: Path) -> None:
    async with joined_twice(tmp_path, 3) as machines:
        for view in await machines.one_cluster(ELSEWHERE_S):
            assert all_use([view], 0)


async def test_a_way_on_which_nothing_arrives_any_more_is_left_before_anybody_is_suspected(
    tmp_path: Path, packet_filter: None
) -> None:
    """No cable is pulled, so no address goes: only silence tells."""
    async with joined_twice(tmp_path) as machines:
        async with watched(machines) as reigns:
            links.drop_all(machines[0].host, 0)
            await machines.until_all(
                lambda views: None not in views and all_use(views, WIRELESS),
                "the other way is used",
                ELSEWHERE_S,
            )
            await machines.one_cluster(ELSEWHERE_S)
        assert reigns.states() == {"alive"}, machines.failure_text("somebody was suspected")

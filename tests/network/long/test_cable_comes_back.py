"""Of two ways between machines one is cut, and comes back."""

import asyncio
import time
from pathlib import Path

import pytest

from tests.support.network import links
from tests.support.network.lab import WIRELESS
from tests.support.network.reigns import watched
from tests.support.network.twice import all_use, joined_twice

pytestmark = [pytest.mark.timeout(150), pytest.mark.usefixtures("traffic_shaper")]

ELSEWHERE_S = 5.0
BACK_S = 50.0
"""Thirty seconds must pass, and it is looked at every ten."""

QUIET_S = 8.0


async def test_when_the_cable_in_use_is_pulled_the_other_way_carries_on_and_it_is_used_again_later(
    tmp_path: Path,
) -> None:
    async with joined_twice(tmp_path) as machines:
        (view, *_) = await machines.one_cluster(ELSEWHERE_S)
        async with watched(machines) as reigns:
            began_s = time.monotonic()
            links.pull(machines[0].host)
            await machines.until_all(
                lambda views: None not in views and all_use(views, WIRELESS),
                "the other way is used",
                ELSEWHERE_S,
            )
            print(f"the other way is used {time.monotonic() - began_s:.1f} s after the cable went")
            await asyncio.sleep(QUIET_S)
            links.plug(machines[0].host)
            began_s = time.monotonic()
            (after, *_) = await machines.until_all(
                lambda views: None not in views and all_use(views, 0), "Ethernet again", BACK_S
            )
            took_s = time.monotonic() - began_s
            print(f"Ethernet is used again {took_s:.1f} s after the cable was back")
        assert took_s > 25.0, "a cable with a loose contact isn't followed"
        assert reigns.states() == {"alive"}, machines.failure_text("somebody was suspected")
        assert after["cluster"]["leader"] == view["cluster"]["leader"]
        assert after["cluster"]["term"] == view["cluster"]["term"]

"""A network that loses packets all the time is slow, and nothing else."""

import asyncio
from pathlib import Path

import pytest

from tests.support.network import links
from tests.support.network.machines import machines_on
from tests.support.network.reigns import watched

pytestmark = pytest.mark.timeout(120)

JOIN_S = 20.0
LOSS_PERCENT = 20
BACK_S = 15.0


@pytest.mark.parametrize("loss_s", [12.0, pytest.param(30.0, marks=pytest.mark.long)])
async def test_a_fifth_of_all_packets_lost_costs_nobody_anything(
    tmp_path: Path, packet_filter: None, loss_s: float
) -> None:
    async with machines_on(3, tmp_path) as machines:
        (view, *_) = await machines.one_cluster(JOIN_S)
        for machine in machines.machines:
            links.lose(machine.host, LOSS_PERCENT)
        async with watched(machines) as reigns:
            await asyncio.sleep(loss_s)
        assert "gone" not in reigns.states(), machines.failure_text("somebody was declared gone")
        assert reigns.all_leaders() == {view["cluster"]["leader"]}
        for machine in machines.machines:
            links.restore(machine.host)
        await machines.one_cluster(BACK_S)

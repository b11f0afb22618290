"""A script on two machines goes on across a cut of 20 s and daemons that are killed."""

import asyncio
import sys
from pathlib import Path

import pytest

from tests.support.network import links
from tests.support.network.launched import Launched, two_machines

pytestmark = [pytest.mark.timeout(300)]

SCRIPT = Path(__file__).parents[2] / "e2e" / "scripts" / "ddp_steps.py"
ARGUMENTS = (sys.executable, str(SCRIPT), "60", "0.2")
CUT_S = 20.0
DEAD_S = 3.0


async def test_a_cut_and_killed_daemons_change_nothing_of_a_script(tmp_path: Path) -> None:
    async with two_machines(tmp_path) as machines:
        calm = Launched(machines[0], tmp_path, ARGUMENTS)
        assert await calm.end() == 0, machines.failure_text(calm.said)
        struck = Launched(machines[0], tmp_path, ARGUMENTS)
        await struck.read_until("iter 10:")
        links.separate([machines[1].host])
        await asyncio.sleep(CUT_S)
        links.heal([machines[1].host])
        await struck.read_until("iter 30:")
        for machine in machines.machines:  # whichever of them leads
            machine.kill()
            await asyncio.sleep(DEAD_S)
            machine.start()
        assert await struck.end() == 0, machines.failure_text(struck.said)
        assert struck.losses() == calm.losses()
        assert len(struck.losses()) == 2 * 60
        assert "m2 isn't heard of" in struck.said
        assert "m2 is heard of again" in struck.said

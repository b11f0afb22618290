"""A stranger knocks at all that the ranks of a launched script listen with: nobody is in."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.support.network.lab import Host
from tests.support.network.launched import Launched, two_machines
from tests.support.network.listening import Place, places_of
from tests.support.network.machines import Machines

pytestmark = [pytest.mark.timeout(120)]

SCRIPT = Path(__file__).parents[1] / "e2e" / "scripts" / "ddp_steps.py"
STEPS = 20
ARGUMENTS = (sys.executable, str(SCRIPT), str(STEPS), "0.2")
TOLD_S = 20.0
CONNECTIONS_REFUSED = "gang-knocked"

KNOCK = """
import json, socket, sys
answered = []
for host, port in json.loads(sys.argv[1]):
    try:
        socket.create_connection((host, port), 0.3).close()
    except TimeoutError:
        continue
    answered.append([host, port])
print(json.dumps(answered))
"""


async def test_a_stranger_reaches_no_rank_of_a_launched_script_and_is_told_of(
    tmp_path: Path,
) -> None:
    async with two_machines(tmp_path) as machines:
        (stranger,) = machines.lab.add_hosts(1)
        launched = Launched(machines[0], tmp_path, ARGUMENTS)
        await launched.read_until("iter 3:")
        places = places_of(SCRIPT.name, machines.machines)
        assert {host for host, _ in places} == {m.host.address for m in machines.machines}, places
        answered = await asyncio.to_thread(answering, stranger, places)
        assert answered == [], machines.failure_text(f"{answered} of {places}")
        assert await launched.end() == 0, machines.failure_text(launched.said)
        assert len(launched.losses()) == 2 * STEPS
        await told_by_all(machines)


def answering(stranger: Host, places: Iterable[Place]) -> list[Place]:
    """Return the places at which somebody answers a stranger."""
    command = [*stranger.inside.prefix, sys.executable, "-c", KNOCK, json.dumps(sorted(places))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [(str(host), int(port)) for host, port in json.loads(done.stdout)]


async def told_by_all(machines: Machines) -> None:
    """Wait until every machine's health names both at which somebody knocked."""
    named = {machine.name for machine in machines.machines}
    async with asyncio.timeout(TOLD_S):
        while True:
            views = [view for view in await machines.views() if view is not None]
            told = [
                {
                    name
                    for row in view["health"]
                    if row["code"] == CONNECTIONS_REFUSED
                    for name in named
                    if name in row["title"]
                }
                for view in views
            ]
            if told == [named, named]:
                return
            await asyncio.sleep(0.5)

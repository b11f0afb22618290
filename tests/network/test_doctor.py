"""A firewall that keeps others out is found, named, and gone again when its rule is."""

import asyncio
import json
from pathlib import Path

from tests.support.daemons.cluster import running
from tests.support.network import links
from tests.support.network.lab import lab_of
from tests.support.network.machines import Machine, Machines

JOIN_S = 20.0
LOOK_S = 40.0


async def test_a_firewall_is_named_and_what_it_drops_really_does_not_arrive(
    tmp_path: Path, packet_filter: None
) -> None:
    with lab_of(2) as lab:
        daemons = [Machine(tmp_path, host) for host in lab.hosts]
        async with running(daemons):
            machines = Machines(daemons, lab)
            await machines.one_cluster(JOIN_S)
            assert await statuses(machines, daemons[0], 0) == {
                "multicast": {"ok"},
                "firewall": {"ok"},
                "versions": {"ok"},
            }
            links.silence_multicast(lab.hosts[0])
            assert await statuses(machines, daemons[0], 8) == {
                "multicast": {"fail"},
                "firewall": {"fail"},
                "versions": {"ok"},
            }
            links.restore(lab.hosts[0])


async def statuses(machines: Machines, machine: Machine, code: int) -> dict[str, set[str]]:
    """Return how the checks of the network came out at that machine."""
    done = await asyncio.to_thread(
        machines.ctl, "doctor", "-o", "json", daemon=machine, timeout_s=LOOK_S
    )
    assert done.returncode == code, (done.stdout, done.stderr)
    found: dict[str, set[str]] = {"multicast": set(), "firewall": set(), "versions": set()}
    for finding in json.loads(done.stdout)["findings"]:
        if finding["check"] in found:
            found[finding["check"]].add(finding["status"])
    return found

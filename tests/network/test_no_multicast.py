"""Where multicast is blocked, as in many offices: named addresses do, and then those kept."""

import asyncio
from pathlib import Path

import pytest

from jupiterd.daemon.links.address_book import load_addresses
from tests.support.daemons.cluster import running
from tests.support.network import links
from tests.support.network.lab import address_of, lab_of
from tests.support.network.machines import Machine, Machines

pytestmark = pytest.mark.timeout(120)

JOIN_S = 20.0
KEPT_S = 5.0


def keeps_an_address(machine: Machine) -> bool:
    """Say whether it has written down where anybody is."""
    return bool(load_addresses(machine.state_dir / "peers.json"))


async def test_a_named_peer_is_enough_and_after_a_restart_what_was_kept_is(
    tmp_path: Path, packet_filter: None
) -> None:
    with lab_of(3) as lab:
        for host in lab.hosts:
            links.silence_multicast(host)
        named = ["--peer", address_of(1)]
        daemons = [Machine(tmp_path, host, named) for host in lab.hosts]
        async with running(daemons):
            machines = Machines(daemons, lab)
            (view, *_) = await machines.one_cluster(JOIN_S)
            async with asyncio.timeout(KEPT_S):
                while not all(map(keeps_an_address, daemons)):  # noqa: ASYNC110 - files are watched
                    await asyncio.sleep(0.1)
            for machine in daemons:
                machine.kill()
                machine.options = ()
                machine.start()
            (again, *_) = await machines.one_cluster(JOIN_S)
            assert again["cluster"]["id"] == view["cluster"]["id"]
            assert len(again["nodes"]) == 3


async def test_without_either_nobody_is_found(tmp_path: Path, packet_filter: None) -> None:
    """Or the test above would show nothing."""
    with lab_of(2) as lab:
        for host in lab.hosts:
            links.silence_multicast(host)
        daemons = [Machine(tmp_path, host) for host in lab.hosts]
        async with running(daemons):
            with pytest.raises(AssertionError, match="one cluster: not within"):
                await Machines(daemons, lab).one_cluster(8.0)

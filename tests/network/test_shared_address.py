"""Two machines with one IPv4 address meet over IPv6: both say whose address is whose."""

from pathlib import Path

import pytest

from tests.support.daemons.cluster import Document, running
from tests.support.network import links
from tests.support.network.lab import lab_of
from tests.support.network.machines import Machine, Machines

pytestmark = pytest.mark.timeout(120)

JOIN_S = 40.0


async def test_two_machines_of_one_address_are_named_on_both(tmp_path: Path) -> None:
    with lab_of(2) as lab:
        address = links.readdress(lab.hosts[1], 1)
        daemons = [Machine(tmp_path, host) for host in lab.hosts]
        async with running(daemons):
            machines = Machines(daemons, lab)
            await machines.one_cluster(JOIN_S)
            await machines.until_all(
                lambda views: all(address in _shared(view) for view in views if view),
                "the address is told",
                JOIN_S,
            )


def _shared(view: Document) -> str:
    return " ".join(line["title"] for line in view["health"] if line["code"] == "shared-address")

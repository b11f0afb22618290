"""Multicast passes and TCP doesn't: each machine names the other, until TCP gets through."""

from pathlib import Path

import pytest

from tests.support.daemons.cluster import Document, running
from tests.support.network import links
from tests.support.network.lab import lab_of
from tests.support.network.machines import Machine, Machines, Views

pytestmark = pytest.mark.timeout(120)

TOLD_S = 45.0
JOIN_S = 40.0


async def test_who_is_heard_and_kept_out_is_named_on_both_machines(
    tmp_path: Path, packet_filter: None
) -> None:
    with lab_of(2) as lab:
        one, other = lab.hosts
        links.drop_tcp(other)
        daemons = [Machine(tmp_path, host) for host in lab.hosts]
        async with running(daemons):
            machines = Machines(daemons, lab)

            def each_names_the_other(views: Views) -> bool:
                told = [_blocked(view) if view else "" for view in views]
                return other.address in told[0] and one.address in told[1]

            await machines.until_all(each_names_the_other, "each names the other", TOLD_S)
            links.restore(other)
            views = await machines.one_cluster(JOIN_S)
            await machines.until_all(
                lambda views: not any(_blocked(view) for view in views if view), "over", JOIN_S
            )
            assert len(views[0]["nodes"]) == 2


def _blocked(view: Document) -> str:
    return " ".join(line["title"] for line in view["health"] if line["code"] == "tcp-blocked")

"""A node that is removed is out, everywhere and for good; a role that is pinned is kept."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from jupiterd.cluster.planning.roles import PINNED
from tests.support.daemons.cluster import LOOK_S, Cluster, Daemon, Document, three_daemons

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.timeout(120),
]


async def sees(daemon: Daemon, is_so: Callable[[Document], bool]) -> Document:
    """Wait until a daemon's status is so."""
    async with asyncio.timeout(30):
        while True:
            view = await daemon.ask()
            if view is not None and is_so(view):
                return view
            await asyncio.sleep(LOOK_S)


def is_told_of_its_removal(view: Document) -> bool:
    return any(found["code"] == "removed" for found in view["health"])


async def test_a_removed_node_is_out_even_after_a_restart(tmp_path: Path) -> None:
    async with three_daemons(tmp_path) as cluster:
        view = (await cluster.meet())[0]
        leader = cluster.by_id(view["cluster"]["leader"], view)
        removed, other = (daemon for daemon in cluster.daemons if daemon is not leader)
        await cluster.say_yes()
        done = cluster.ctl("node", "remove", removed.name, "--yes", daemon=other)
        assert (done.returncode, done.stdout) == (0, f"{removed.name} is no longer a member\n")
        await sees(removed, is_told_of_its_removal)
        await cluster.meet(among=[leader, other])
        removed.kill()
        removed.start()
        view = await sees(removed, is_told_of_its_removal)
        assert view["cluster"]["leader"] is None
        for view in await cluster.meet(among=[leader, other]):
            assert {node["name"] for node in view["nodes"]} == {leader.name, other.name}


async def test_a_pinned_role_is_shown_with_its_reason(cluster: Cluster) -> None:
    assert cluster.ctl("node", "role", "node-2", "idle").returncode == 0

    def is_idle(view: Document) -> bool:
        found = {node["name"]: node for node in view["nodes"]}
        return found["node-2"]["role"] == "idle" and found["node-1"]["role"] == "hybrid"

    view = await sees(cluster[0], is_idle)
    (idle,) = (node for node in view["nodes"] if node["name"] == "node-2")
    assert idle["reason"] == PINNED

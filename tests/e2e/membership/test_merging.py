"""Two clusters that have work become one by a command, with all their nodes and all their work."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.daemons.cluster import LOOK_S, Cluster, Daemon, running
from tests.support.daemons.surroundings import own_network
from tests.support.sources.tiny_domain import write_domain

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.timeout(240),
]


async def work(cluster: Cluster, label: str, domain: Path) -> str:
    """Let a cluster record a cycle, a role and its name; return its id."""
    view = (await cluster.meet())[0]
    for arguments in (
        ("cluster", "rename", label),
        ("cycle", "start", "--domain", str(domain)),
        ("cycle", "stop", "--yes"),
        ("node", "role", cluster[0].name, "trainer"),
    ):
        ran = cluster.ctl(*arguments)
        assert ran.returncode == 0, cluster.failure_text(ran.stderr)
    await cluster.meet()
    return str(view["cluster"]["id"])


async def in_sight(cluster: Cluster, daemon: Daemon, label: str) -> str:
    """Wait until a cluster is in sight; return what a dry run against it says."""
    async with asyncio.timeout(60):
        while True:
            ran = cluster.ctl("cluster", "merge", label, "--dry-run", daemon=daemon)
            if ran.returncode != 6:
                return ran.stdout + ran.stderr
            await asyncio.sleep(LOOK_S)


def pair(folder: Path, prefix: Sequence[str], *names: str) -> list[Daemon]:
    return [Daemon(folder, name, prefix) for name in names]


@pytest.mark.parametrize(
    "is_struck",
    [
        pytest.param(False, id="in peace", marks=pytest.mark.long),
        pytest.param(True, id="with a kill -9"),
    ],
)
async def test_two_clusters_with_work_become_one(tmp_path: Path, *, is_struck: bool) -> None:
    domain = write_domain(tmp_path)
    with own_network() as prefix:
        first = pair(tmp_path, prefix, "node-1", "node-2")
        second = pair(tmp_path, prefix, "node-3", "node-4")
        async with running(first) as cluster:
            goes_on = await work(cluster, "attic", domain)
        async with running(second) as cluster:
            ends = await work(cluster, "cellar", domain)
        assert goes_on != ends
        async with running([*first, *second]) as cluster:
            await cluster.say_yes(first)
            await cluster.say_yes(second)
            asked = second[1]
            assert "attic" in await in_sight(cluster, asked, "attic")
            refused = cluster.ctl("cluster", "merge", "attic", "--yes", daemon=asked)
            assert refused.returncode == 5, refused.stderr
            assert "jupiterctl cluster open" in refused.stderr

            assert cluster.ctl("cluster", "open", daemon=first[1]).returncode == 0
            plan = cluster.ctl("cluster", "merge", "attic", daemon=asked)
            assert "nothing was changed" in plan.stdout, plan.stderr
            done = cluster.ctl("cluster", "merge", "attic", "--yes", "-o", "json", daemon=asked)
            assert done.returncode == 0, cluster.failure_text(done.stderr)
            assert json.loads(done.stdout)["done"] is True
            for daemon in cluster.daemons[1:] if is_struck else ():
                daemon.kill()
                daemon.start()

            views = await cluster.meet()
            assert {view["cluster"]["id"] for view in views} == {goes_on}
            assert {view["cluster"]["name"] for view in views} == {"attic"}
            assert all(len(view["nodes"]) == 4 for view in views)
            for daemon in cluster.daemons:
                state = daemon.state()
                assert len(state.cycles) == 2, cluster.failure_text(daemon.name)
                assert all(
                    cycle.has_nothing_to_do and cycle.started for cycle in state.cycles.values()
                )
                assert [pin.role for pin in state.pins.values()] == ["trainer", "trainer"]

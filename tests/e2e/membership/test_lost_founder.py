"""The only machine that may say yes is gone for good: the others go on without it."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.support.daemons.cluster import LOOK_S, Cluster, Daemon, three_daemons
from tests.support.sources.tiny_domain import write_domain

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.full,
    pytest.mark.timeout(120),
]


def typed(cluster: Cluster, daemon: Daemon, *arguments: str) -> str:
    ran = cluster.ctl(*arguments, daemon=daemon)
    assert ran.returncode == 0, cluster.failure_text(ran.stderr)
    return ran.stdout


async def test_the_others_leave_unite_and_lose_no_work(tmp_path: Path) -> None:
    async with three_daemons(tmp_path) as cluster:
        view = (await cluster.meet())[0]
        (trusted,) = [row["id"] for row in view["nodes"] if row["trusted"]]
        founder = cluster.by_id(trusted, view)
        one, other = (daemon for daemon in cluster.daemons if daemon is not founder)
        typed(cluster, one, "cycle", "start", "--domain", str(write_domain(tmp_path)))
        typed(cluster, one, "cycle", "stop", "--yes")
        await cluster.meet()
        founder.kill()
        await cluster.meet([one, other])

        refused = cluster.ctl("node", "trust", other.name, "--yes", daemon=one)
        assert refused.returncode == 5, refused.stderr
        assert "cluster leave" in refused.stderr
        for daemon in (one, other):
            left = json.loads(typed(cluster, daemon, "cluster", "leave", "--yes", "-o", "json"))
            assert founder.name in left["left"]["nodes"]
            await cluster.meet([daemon])
        goes_on = str((await cluster.meet([one]))[0]["cluster"]["id"])
        made = json.loads(typed(cluster, one, "cluster", "token", "-o", "json"))
        (tmp_path / "token").write_text(made["token"])
        with_token = ("--token", str(tmp_path / "token"), "--yes")
        async with asyncio.timeout(30):
            merge = ("cluster", "merge", goes_on, *with_token)
            while cluster.ctl(*merge, daemon=other).returncode:  # noqa: ASYNC110 - not in sight yet
                await asyncio.sleep(LOOK_S)
        views = await cluster.meet([one, other])
        assert {view["cluster"]["id"] for view in views} == {goes_on}
        assert all(row["trusted"] for view in views for row in view["nodes"])
        for daemon in (one, other):
            (cycle,) = daemon.state().cycles.values()
            assert cycle.wanted == "stopped"

        founder.start()  # it comes back after all, and is nothing to the new cluster
        await cluster.meet([founder])
        assert founder.name not in typed(cluster, one, "node", "list")

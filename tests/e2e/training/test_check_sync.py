"""`jupiterctl check sync` between real daemons, with both engines."""

import json

import pytest

from tests.support.daemon.two_nodes import until
from tests.support.daemons.cluster import Cluster

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.timeout(240),
]


# Whoever is asked has the leader do it, whatever the engine: each is asked of one of them.
ASKED = (("torch", "torch/gloo", True), ("mlx", "mlx/ring", False))


def workers_of(cluster: Cluster) -> set[int]:
    return {pid for daemon in cluster.daemons for pid in daemon.workers()}


async def test_every_rank_adds_up_the_same_with_both_engines(cluster: Cluster) -> None:
    (view, *_) = await cluster.meet()
    leader = cluster.by_id(view["cluster"]["leader"], view)
    follower = next(daemon for daemon in cluster.daemons if daemon is not leader)
    before = workers_of(cluster)  # another test of this cluster may have left some that are warm
    for engine, label, of_leader in ASKED:
        asked = leader if of_leader else follower
        done = cluster.ctl(
            "check", "sync", "--nodes", "3", "--engine", engine, "-o", "json", daemon=asked
        )
        assert done.returncode == 0, cluster.failure_text(done.stderr + done.stdout)
        rows = json.loads(done.stdout)["nodes"]
        assert sorted(row["rank"] for row in rows) == [0, 1, 2]
        assert {row["result"] for row in rows} == {"ok"}
        assert {row["engine"] for row in rows} == {label}
        assert all(row["mbit_per_s"] > 1 and row["time_ms"] > 0 for row in rows)
        if engine == "torch":
            # Whoever has answered ends; one that waits for more work, warm, would stay a minute.
            await until(lambda: workers_of(cluster) <= before)

"""`jupiterctl check sync` between real daemons, with both engines."""

import json
from pathlib import Path

import pytest

from tests.e2e.cluster import three_daemons

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.xdist_group("e2e"),
    pytest.mark.timeout(240),
]


async def test_every_rank_adds_up_the_same_with_both_engines(tmp_path: Path) -> None:
    async with three_daemons(tmp_path) as cluster:
        await cluster.meet()
        for engine, label in (("torch", "torch/gloo"), ("mlx", "mlx/ring")):
            for asked in (cluster[0], cluster[2]):  # the leader or not: both are told the same
                done = cluster.ctl(
                    "check", "sync", "--nodes", "3", "--engine", engine, "-o", "json", daemon=asked
                )
                assert done.returncode == 0, cluster.told(done.stderr + done.stdout)
                rows = json.loads(done.stdout)["nodes"]
                assert sorted(row["rank"] for row in rows) == [0, 1, 2]
                assert {row["result"] for row in rows} == {"ok"}
                assert {row["engine"] for row in rows} == {label}
                assert all(row["mbit_per_s"] > 1 and row["time_ms"] > 0 for row in rows)
            if engine == "torch":
                assert not any(daemon.workers() for daemon in cluster.daemons)

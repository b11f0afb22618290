"""What three daemons do that have nothing to do."""

import asyncio
import time
from pathlib import Path

import pytest

from tests.support.daemons.cluster import Cluster

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.timeout(180),
]

QUIET_S = 8.0
"""Longer than the pauses between all looks that may end in writing."""

TIMEOUT_S = 60.0
LOOK_S = 0.5

Written = dict[Path, tuple[int, int]]


def written(cluster: Cluster) -> Written:
    """What lies in the state folders, and when each file was written."""
    found: Written = {}
    for daemon in cluster.daemons:
        for path in daemon.state_dir.rglob("*"):
            if path.is_file():
                status = path.stat()
                found[path] = status.st_mtime_ns, status.st_size
    return found


async def test_a_settled_cluster_writes_nothing(cluster: Cluster) -> None:
    before, since_s, began_s = written(cluster), time.monotonic(), time.monotonic()
    while time.monotonic() - since_s < QUIET_S:
        await asyncio.sleep(LOOK_S)
        now = written(cluster)
        changed = sorted(str(p) for p in now.keys() | before if now.get(p) != before.get(p))
        if changed:
            before, since_s = now, time.monotonic()
        late = time.monotonic() - began_s > TIMEOUT_S
        assert not late, cluster.failure_text(f"still written: {changed}")
    assert any(path.name == "peers.json" for path in before), "addresses are kept"

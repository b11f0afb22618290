"""A round's data, from its start until it is frozen, on real daemons.

Owns how a cycle is started for its data alone, and ended. Doesn't know what any test does to it.
"""

import asyncio
import json
import time
from pathlib import Path

from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.ids import ArtifactId, CycleId
from tests.support.daemons.cluster import Cluster

FREEZE_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 60.0
LOOK_S = 0.02

Frozen = tuple[ArtifactId, tuple[ArtifactId, ...]]
"""The tokenizer and the shards of a round."""


def start(cluster: Cluster, domain: Path) -> CycleId:
    options = ("--domain", str(domain), "--seed", "7", "-o", "json")
    started = cluster.ctl("cycle", "start", *options)
    assert started.returncode == 0, started.stderr
    return CycleId(json.loads(started.stdout)["cycle"])


def known(cluster: Cluster, cycle: CycleId) -> list[CycleState]:
    """Return what each daemon that knows the cycle has on its disk of it."""
    states = [daemon.state() for daemon in cluster.daemons]
    return [state.cycles[cycle] for state in states if cycle in state.cycles]


async def frozen(cluster: Cluster, cycle: CycleId) -> Frozen:
    """Wait until the round's data is frozen; return what it is."""
    deadline_s = time.monotonic() + FREEZE_TIMEOUT_S
    while True:
        for of in known(cluster, cycle):
            if (manifest := of.manifests.get(1)) is not None:
                return manifest.tokenizer, manifest.shards
        assert time.monotonic() < deadline_s, cluster.failure_text("the data wasn't frozen")
        await asyncio.sleep(LOOK_S)


async def stop(cluster: Cluster, cycle: CycleId) -> None:
    """Stop the cycle, once there is a leader again to be asked."""
    deadline_s = time.monotonic() + STOP_TIMEOUT_S
    while True:
        stopped = cluster.ctl("cycle", "stop", cycle, "--yes")
        if stopped.returncode == 0:
            return
        assert time.monotonic() < deadline_s, cluster.failure_text(stopped.stderr)
        await asyncio.sleep(LOOK_S)

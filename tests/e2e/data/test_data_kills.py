"""Collecting, filtering and packing under random kills end with the same shards.

A cycle is started again and again with one seed. Worker processes and whole daemons are killed with
-9 at random moments until the data is frozen, which is compared with that of a single daemon that
nobody disturbed. `make data-kills KILLS=100` is the long form.
"""

import asyncio
import contextlib
import json
import os
import random
import signal
import time
from pathlib import Path

import pytest

from jupiterd.daemon.leader.work_item import MAX_FAILURES
from jupiterd.ids import CycleId
from jupiterd.processes.orphans import SUFFIX
from tests.support.daemons.cluster import Cluster, Daemon, running, three_daemons
from tests.support.daemons.surroundings import own_network
from tests.support.sources.frozen_data import (
    FREEZE_TIMEOUT_S,
    LOOK_S,
    Frozen,
    frozen,
    known,
    start,
    stop,
)
from tests.support.sources.tiny_domain import write_domain
from tests.support.strikes.wholeness import left_over

KILLS = int(os.environ.get("JUPITER_DATA_KILLS", "3"))

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.timeout(120 + 30 * KILLS),
]

PAUSE_S = (0.0, 0.8)
"""Between two kills: the phases of so little text take a second or two each."""

KILLS_OF_A_CYCLE = 4
WORKERS_SHARE = 0.6
"""Of the kills; the others hit daemons, which come back at once."""


async def test_random_kills_change_no_shard(tmp_path: Path, seed: int) -> None:
    domain = write_domain(tmp_path)
    expected = await undisturbed(tmp_path, domain)
    chance, left = random.Random(seed), KILLS
    async with three_daemons(tmp_path) as cluster:
        while left > 0:
            await cluster.meet()
            cycle = start(cluster, domain)
            killed = await strike(cluster, cycle, min(left, KILLS_OF_A_CYCLE), chance)
            found = await frozen(cluster, cycle)
            print(f"{killed} kills: {found[1][0][:8]}")
            assert found == expected, cluster.failure_text(f"after {killed} kills in {cycle}")
            left -= killed
            await stop(cluster, cycle)
    assert left_over(tmp_path, []) == []


async def undisturbed(folder: Path, domain: Path) -> Frozen:
    with own_network() as prefix:
        async with running([Daemon(folder, "alone", prefix)]) as cluster:
            await cluster.meet()
            return await frozen(cluster, start(cluster, domain))


async def strike(cluster: Cluster, cycle: CycleId, kills: int, chance: random.Random) -> int:
    """Kill so many times, or fewer where the data is frozen before; return how often.

    No more workers than one item may lose: all might be of the same.
    """
    killed = workers = 0
    while killed < kills:
        await asyncio.sleep(chance.uniform(*PAUSE_S))
        if is_frozen(cluster, cycle):
            break
        if chance.random() < WORKERS_SHARE and workers < MAX_FAILURES - 1:
            is_dead = await kill_worker(cluster, cycle)
            killed, workers = killed + is_dead, workers + is_dead
        else:
            victim = chance.choice(cluster.daemons)
            victim.kill()
            victim.start()
            killed += 1
    return killed


async def kill_worker(cluster: Cluster, cycle: CycleId) -> bool:
    """Kill a worker process of the cycle's once there is one; say whether it was still there."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(await worker(cluster, cycle), signal.SIGKILL)
        return True
    return False


async def worker(cluster: Cluster, cycle: CycleId) -> int:
    """Wait for a worker process of the cycle's; return its pid.

    Raises:
        ProcessLookupError: the data is frozen, so none comes any more.
    """
    deadline_s = time.monotonic() + FREEZE_TIMEOUT_S
    while not is_frozen(cluster, cycle):
        for daemon in cluster.daemons:
            for path in (daemon.state_dir / "logs").glob(f"{cycle[:8]}-r1-*{SUFFIX}"):
                with contextlib.suppress(OSError, ValueError):  # it has just begun, or just ended
                    return int(json.loads(path.read_text())["pid"])
        assert time.monotonic() < deadline_s, cluster.failure_text("nobody works")
        await asyncio.sleep(LOOK_S)
    raise ProcessLookupError


def is_frozen(cluster: Cluster, cycle: CycleId) -> bool:
    return any(1 in of.manifests for of in known(cluster, cycle))

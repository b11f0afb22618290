"""The same domain gives the same data, however many nodes share its work, in whatever order.

Clusters of one, two and four daemons collect, filter and pack the same sources. In each another
source is held up, so that it is the last one collected. Who did what is taken from the ledger.
Quality is judged, too: its scores depend on every text.
"""

import asyncio
import contextlib
import json
import os
import signal
import time
from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import WorkCompleted
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.phases.view import item_id
from jupiterd.processes.orphans import SUFFIX
from tests.support.daemons.cluster import Cluster, Daemon, running
from tests.support.daemons.surroundings import own_network
from tests.support.sources.frozen_data import FREEZE_TIMEOUT_S, LOOK_S, Frozen, frozen, start
from tests.support.sources.tiny_domain import write_domain

SIZES = (1, 2, 4)
SOURCES = ("alpha", "beta", "gamma", "delta")
QUALITY = "filters: {quality: {like: [beta], keep_share: 0.7}}\n"

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.timeout(240),
]


async def test_one_two_and_four_nodes_make_the_same_data(tmp_path: Path) -> None:
    domain = write_domain(tmp_path, sources=SOURCES, more=QUALITY)
    made: dict[int, Frozen] = {}
    for last, size in enumerate(SIZES):
        with own_network() as prefix:
            names = [f"{number}-of-{size}" for number in range(1, size + 1)]
            async with running([Daemon(tmp_path, name, prefix) for name in names]) as cluster:
                made[size] = await made_by(cluster, domain, last)
    assert len(set(made.values())) == 1, made


async def made_by(cluster: Cluster, domain: Path, last: int) -> Frozen:
    """Return what the cluster makes of the domain; its source of that number comes last."""
    await cluster.meet()
    async with asyncio.TaskGroup() as group:
        group.create_task(hold_up(cluster, last))
        cycle = await asyncio.to_thread(start, cluster, domain)
    found = await frozen(cluster, cycle)
    nodes = {fact.node for fact in completed(cluster).values()}
    # Whoever has least to do comes first, and four sources are collected at once.
    assert len(nodes) == len(cluster.daemons), cluster.failure_text(f"{nodes} did the work")
    united = completed(cluster)[item_id(1, Phase.FILTER, 0)]
    assert united.counts["dropped.quality"] > 0
    return found


async def hold_up(cluster: Cluster, number: int) -> None:
    """Stop the worker that collects the source of that number until the others are collected."""
    others = {item_id(1, Phase.COLLECT, other) for other in range(len(SOURCES)) if other != number}
    pid = await collector(cluster, number)
    os.kill(pid, signal.SIGSTOP)
    try:
        await until_completed(cluster, others)
    finally:
        os.kill(pid, signal.SIGCONT)


async def collector(cluster: Cluster, number: int) -> int:
    """Wait for the process that collects the source of that number, on whatever node."""
    pattern = f"*-r1-collect-{number}-*{SUFFIX}"
    async with asyncio.timeout(FREEZE_TIMEOUT_S):
        while True:
            for daemon in cluster.daemons:
                for path in (daemon.state_dir / "logs").glob(pattern):
                    with contextlib.suppress(OSError, ValueError):  # it is just being written
                        return int(json.loads(path.read_text())["pid"])
            await asyncio.sleep(LOOK_S)


async def until_completed(cluster: Cluster, expected: set[str]) -> None:
    """Wait until these items are done, and see that no other one is."""
    deadline_s = time.monotonic() + FREEZE_TIMEOUT_S
    while (found := set(completed(cluster))) != expected:
        assert found < expected, cluster.failure_text(f"too early: {found - expected}")
        assert time.monotonic() < deadline_s, cluster.failure_text(f"not done: {expected - found}")
        await asyncio.sleep(LOOK_S)


def completed(cluster: Cluster) -> dict[str, WorkCompleted]:
    """Return what any daemon knows to be done in its only cycle, by item."""
    cycles = [of for daemon in cluster.daemons for of in daemon.state().cycles.values()]
    return {fact.item: fact for of in cycles for fact in of.completed.values()}

"""A daemon that is told to stop in the midst of training hands over, and no step is lost."""

import asyncio
import signal
import time
from pathlib import Path

import pytest

from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.daemon.gangs.attempt_end import STOPPED
from tests.support.daemons.cluster import (
    NAMES,
    Cluster,
    Daemon,
    Document,
    all_gone,
    running,
    three_daemons,
)
from tests.support.daemons.surroundings import own_network
from tests.support.sources.tiny_domain import write_domain

pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.timeout(240)]

STEPS = 100_000
"""More than anybody waits for."""

TRAIN_TIMEOUT_S = 90.0
LEADER_S = 5.0
"""Far below the 15 s after which a silent node is gone; the benchmarks have the figures."""

STOP_S = 10.0


def seen_of(status: Document | None) -> str | None:
    return None if status is None else status["cluster"]["leader"]


async def another_leads(daemon: Daemon, before: str) -> float:
    """Return after how many seconds somebody else leads, as a daemon sees it."""
    began_s = time.monotonic()
    while (waited_s := time.monotonic() - began_s) < LEADER_S + STOP_S:
        if seen_of(await daemon.ask()) not in (None, before):
            return waited_s
        await asyncio.sleep(0.02)
    raise AssertionError(f"nobody else leads within {waited_s:g} s")


async def begin_training(cluster: Cluster, folder: Path, ranks: int, watcher: Daemon) -> Document:
    domain = str(write_domain(folder, STEPS))
    started = cluster.ctl("cycle", "start", "--domain", domain, "--seed", "7", daemon=watcher)
    assert started.returncode == 0, started.stderr
    return await cluster.until(
        lambda cycle: len(cycle["gang"]) == ranks and (cycle["step"] or 0) >= 20,
        "a gang that trains",
        TRAIN_TIMEOUT_S,
        watcher,
    )


async def trains_again(cluster: Cluster, before: Document, ranks: int, watcher: Daemon) -> Document:
    return await cluster.until(
        lambda cycle: (
            len(cycle["gang"]) == ranks
            and cycle["epoch"] > before["epoch"]
            and cycle["step"] > cycle["resumed_from_step"]
        ),
        "a gang that trains again",
        TRAIN_TIMEOUT_S,
        watcher,
    )


async def stopped(daemon: Daemon) -> float:
    """Tell a daemon to stop; return how many seconds that took it."""
    assert daemon.process is not None
    began_s = time.monotonic()
    daemon.process.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(daemon.process.wait, STOP_S) == 0
    return time.monotonic() - began_s


def last_of_attempt(cycle: CycleState, attempt: int) -> int:
    last = cycle.last_of_attempt(attempt)
    assert last is not None, "its last step was recorded"
    return last.step


async def test_a_leader_that_trains_hands_over_and_training_goes_on_from_its_last_step(
    tmp_path: Path,
) -> None:
    async with three_daemons(tmp_path) as cluster:
        await cluster.meet()
        for daemon in cluster.daemons:
            assert cluster.ctl("node", "role", daemon.name, "trainer").returncode == 0
        before = await begin_training(cluster, tmp_path, 3, cluster[0])
        view = await cluster[0].ask()
        assert view is not None
        leader = cluster.by_id(view["cluster"]["leader"], view)
        others = [daemon for daemon in cluster.daemons if daemon is not leader]
        workers, begun_s = leader.workers(), time.monotonic()
        took_s, leads_s = await asyncio.gather(
            stopped(leader), another_leads(others[0], view["cluster"]["leader"])
        )
        print(f"another leads after {leads_s:.2f} s, the old one ended after {took_s:.2f} s")
        assert leads_s < LEADER_S
        assert await all_gone(workers, 5.0)
        after = await trains_again(cluster, before, 2, others[0])
        print(f"training again after {time.monotonic() - begun_s:.2f} s")
        (cycle,) = others[0].state().cycles.values()
        assert cycle.attempts_closed[before["epoch"]].reason == STOPPED
        assert after["resumed_from_step"] == last_of_attempt(cycle, before["epoch"])
        assert after["resumed_from_step"] >= before["step"]

        print("both at once", await asyncio.gather(*map(stopped, others)))
        (cycle,) = others[0].state().cycles.values()
        assert last_of_attempt(cycle, after["epoch"]) >= after["step"]


@pytest.mark.long
async def test_the_only_machine_that_trains_leaves_its_last_step_with_the_leader(
    tmp_path: Path,
) -> None:
    with own_network() as prefix:
        daemons = [Daemon(tmp_path, name, prefix) for name in NAMES[:2]]
        async with running(daemons) as cluster:
            (view, *_) = await cluster.meet()
            leader = cluster.by_id(view["cluster"]["leader"], view)
            (trainer,) = (daemon for daemon in daemons if daemon is not leader)
            for daemon, role in ((leader, "generator"), (trainer, "trainer")):
                assert cluster.ctl("node", "role", daemon.name, role).returncode == 0
            before = await begin_training(cluster, tmp_path, 1, leader)
            print(f"ended after {await stopped(trainer):.2f} s")
            (cycle,) = leader.state().cycles.values()
            last = cycle.last_of_attempt(before["epoch"])
            assert last is not None
            assert last.step >= before["step"]
            assert leader.holds(last.artifact)


async def test_a_machine_that_trains_alone_goes_on_from_its_last_step_when_it_is_started_again(
    tmp_path: Path,
) -> None:
    with own_network() as prefix:
        async with running([Daemon(tmp_path, "node-1", prefix)]) as cluster:
            await cluster.meet()
            before = await begin_training(cluster, tmp_path, 1, cluster[0])
            print(f"ended after {await stopped(cluster[0]):.2f} s")
            (cycle,) = cluster[0].state().cycles.values()
            last = last_of_attempt(cycle, before["epoch"])
            assert last >= before["step"]
            cluster[0].start()
            after = await trains_again(cluster, before, 1, cluster[0])
            assert after["resumed_from_step"] == last

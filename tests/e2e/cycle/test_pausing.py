"""Pausing a cycle while its data is made and while it trains, and losing the leader in between."""

from pathlib import Path

import pytest

from tests.support.daemons.cluster import Cluster, Document, all_gone, three_daemons
from tests.support.sources.tiny_domain import write_domain
from tests.support.strikes.wholeness import assert_whole

pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.timeout(240)]

STEPS = 220
"""Enough that a pause comes before the end, however fast the machine."""


def trains(cycle: Document) -> bool:
    return cycle["state"] == "running" and cycle["phase"] == "train" and cycle["step"] > 0


async def test_a_paused_cycle_outlives_its_leader_and_ends_as_if_nothing_was(
    tmp_path: Path,
) -> None:
    domain = str(write_domain(tmp_path, steps=STEPS))
    async with three_daemons(tmp_path) as cluster:
        view, *_ = await cluster.meet()
        leader = cluster.by_id(view["cluster"]["leader"], view)
        others = [daemon for daemon in cluster.daemons if daemon is not leader]
        started = cluster.ctl("cycle", "start", "--domain", domain, "--seed", "7")
        assert started.returncode == 0, started.stderr
        await _pause(cluster)

        leader.kill()
        await cluster.meet(others)
        shown = cluster.ctl("cycle", "status", daemon=others[0])
        assert "paused by node-2 at " in shown.stdout
        _resume(cluster, daemon=others[1])
        leader.start()
        await cluster.meet()

        await cluster.until(trains, "a step", 60)
        await _pause(cluster)
        (cycle,) = cluster[0].state().cycles.values()
        kept = cycle.last_checkpoint(1)
        assert kept is not None, cluster.failure_text("no checkpoint")
        assert 0 < kept.step < STEPS
        _resume(cluster)
        ended = await cluster.until(lambda found: found["state"] != "running", "the end", 120)
        assert ended["state"] == "finished", cluster.failure_text(str(ended["failure"]))
        await cluster.meet()
        (cycle,) = cluster[0].state().cycles.values()
        resumed = max(cycle.attempts_opened.values(), key=lambda attempt: attempt.attempt)
        assert (resumed.from_step, resumed.from_checkpoint) == (kept.step, kept.artifact)
        await assert_whole(cluster, cycle, STEPS, tmp_path)


async def _pause(cluster: Cluster) -> None:
    """Pause the cycle as soon as there is work, and see that none is left."""
    workers = [pid for daemon in cluster.daemons for pid in daemon.workers()]
    paused = cluster.ctl("cycle", "pause", "--wait", "--timeout", "30s", daemon=cluster[1])
    assert paused.returncode == 0, paused.stderr
    assert "is paused, and no machine works on it any more" in paused.stdout
    assert await all_gone(workers, 15), "a worker goes on"
    await cluster.until(lambda cycle: cycle["state"] == "paused", "the pause", 10)


def _resume(cluster: Cluster, **where: object) -> None:
    resumed = cluster.ctl("cycle", "resume", **where)
    assert resumed.returncode == 0, resumed.stderr

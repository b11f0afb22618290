"""A leader's death ends no gang that it has no part in: the next leader takes it up."""

import asyncio
import signal
from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import CheckpointCommitted
from tests.support.daemons.cluster import (
    Cluster,
    Daemon,
    Document,
    all_gone,
    is_running,
    three_daemons,
)
from tests.support.sources.tiny_domain import write_domain
from tests.support.strikes.wholeness import assert_whole, left_over

pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.timeout(300)]

STEPS = {"torch": 240, "mlx": 160}
"""Ten seconds after the leader's end there must still be something to train."""

TRUNK_ENDS = {"torch": 192, "mlx": 128}
"""The branch is a fifth; where it begins there is a checkpoint, too."""

EVERY_STEPS = 100
"""How far apart the size 1m writes checkpoints."""

TRAIN_TIMEOUT_S = 90.0
ADOPT_TIMEOUT_S = 20.0
END_TIMEOUT_S = 120.0


def pids(cycle: Document) -> list[int]:
    return [seat["pid"] for seat in cycle["gang"]]


async def leader_without_a_rank(cluster: Cluster) -> Daemon:
    """Pin the leader's role, so that the two others train."""
    (view, *_) = await cluster.meet()
    leader = cluster.by_id(view["cluster"]["leader"], view)
    for daemon in cluster.daemons:
        role = "generator" if daemon is leader else "trainer"
        pinned = cluster.ctl("node", "role", daemon.name, role)
        assert pinned.returncode == 0, pinned.stderr
    return leader


async def begin_training(cluster: Cluster, folder: Path, engine: str, watcher: Daemon) -> Document:
    """Start a cycle; return its document just before the gang's first checkpoint."""
    options = ("--domain", write_domain(folder, STEPS[engine]), "--engine", engine, "--seed", 7)
    started = cluster.ctl("cycle", "start", *map(str, options))
    assert started.returncode == 0, started.stderr
    return await cluster.until(
        lambda cycle: len(cycle["gang"]) == 2 and all(pids(cycle)) and cycle["step"] >= 80,
        "a gang that trains",
        TRAIN_TIMEOUT_S,
        watcher,
    )


@pytest.mark.parametrize(
    ("engine", "end"),
    [("torch", signal.SIGKILL), pytest.param("mlx", signal.SIGTERM, marks=pytest.mark.long)],
)
async def test_a_gang_goes_on_when_the_leader_that_launched_it_ends(
    tmp_path: Path, engine: str, end: signal.Signals
) -> None:
    async with three_daemons(tmp_path) as cluster:
        leader = await leader_without_a_rank(cluster)
        survivor = next(daemon for daemon in cluster.daemons if daemon is not leader)
        before = await begin_training(cluster, tmp_path, engine, survivor)
        assert leader.process is not None
        leader.process.send_signal(end)
        await asyncio.to_thread(leader.process.wait)
        await cluster.recorded(
            lambda cycle: bool(cycle.attempts_adopted), "the adoption", ADOPT_TIMEOUT_S, survivor
        )
        after = await cluster.until(
            lambda cycle: len(cycle["gang"]) == 2 and cycle["step"] > before["step"],
            "a gang under another leader",
            ADOPT_TIMEOUT_S,
            survivor,
        )
        assert pids(after) == pids(before)
        assert all(map(is_running, pids(after)))
        assert (after["epoch"], after["resumed_from_step"]) == (1, 0)
        leader.start()
        ended = await cluster.until(
            lambda cycle: cycle["state"] not in ("running", "waiting"),
            "the end",
            END_TIMEOUT_S,
            survivor,
        )
        assert ended["state"] == "finished", cluster.failure_text(str(ended["failure"]))
        assert await all_gone(pids(before), 5)
        await cluster.meet()
        (cycle,) = survivor.state().cycles.values()
        assert set(cycle.attempts_opened) == set(cycle.attempts_adopted) == {1}
        assert cycle.attempts_closed[1].reason == "finished"
        steps = [
            fact.step for fact in cycle.canonical_branch() if isinstance(fact, CheckpointCommitted)
        ]
        usual = range(EVERY_STEPS, STEPS[engine], EVERY_STEPS)
        assert steps == sorted([*usual, TRUNK_ENDS[engine], STEPS[engine]])
        await assert_whole(cluster, cycle, STEPS[engine], tmp_path)
        assert left_over(tmp_path, list(cluster.daemons)) == []
    assert left_over(tmp_path, []) == []

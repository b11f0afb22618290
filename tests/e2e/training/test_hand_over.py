"""A leader that walked in lets a trusted one lead while a run trains, and nothing is lost."""

import asyncio
import json
from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import CheckpointCommitted
from tests.support.daemons.cluster import Cluster, Daemon
from tests.support.daemons.training_runs import (
    TwoDaemons,
    two_daemons,
    until_trained,
    write_letters,
)

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(180),
]

STEPS = 100
"""Enough that a yes comes before the end, however fast the machine."""


async def test_a_yes_while_a_run_trains_costs_it_no_step(tmp_path: Path) -> None:
    letters = write_letters(tmp_path)
    async with two_daemons(tmp_path) as two:
        cluster, founder, guest = two.cluster, *await led_by_who_walked_in(two)
        pair = TwoDaemons(cluster, leader=guest, survivor=founder)
        follower = pair.train(letters, "--max-steps", str(STEPS))
        before = await until_trained(cluster, founder, 2, 90)
        assert before["step"] < STEPS, "it must still train"
        yes = ("node", "trust", guest.name, "--yes")
        said = await asyncio.to_thread(cluster.ctl, *yes, daemon=founder)
        assert said.returncode == 0, cluster.failure_text(said.stderr)
        assert await leader_of(cluster, founder) is founder
        ended = await follower
        assert ended.returncode == 0, cluster.failure_text(ended.stdout + ended.stderr)
        views = await cluster.meet()
        assert all(row["trusted"] for view in views for row in view["nodes"])
        for daemon in (founder, guest):
            (run,) = daemon.state().cycles.values()
            made = [
                fact for fact in run.canonical_branch() if isinstance(fact, CheckpointCommitted)
            ]
            assert made[-1].step == STEPS
            assert not run.other_leaves(), "one history"
        audited = cluster.ctl("data", "audit", "-o", "json", daemon=founder)
        (proof,) = json.loads(audited.stdout)["audit"]
        assert (proof["ok"], proof["rounds"][0]["cursor"]) == (True, made[-1].cursor)


async def led_by_who_walked_in(two: TwoDaemons) -> tuple[Daemon, Daemon]:
    """Let the one lead that walked in; return the founder, and that one."""
    cluster = two.cluster
    (view, *_) = await cluster.meet()
    (trusted,) = [row["id"] for row in view["nodes"] if row["trusted"]]
    founder = cluster.by_id(trusted, view)
    (guest,) = [daemon for daemon in cluster.daemons if daemon is not founder]
    if await leader_of(cluster, guest) is founder:
        await asyncio.to_thread(founder.stop)
        await cluster.meet([guest])
        founder.start()
    await cluster.meet()
    assert await leader_of(cluster, founder) is guest
    return founder, guest


async def leader_of(cluster: Cluster, asked: Daemon) -> Daemon:
    view = await asked.ask()
    assert view is not None
    return cluster.by_id(view["cluster"]["leader"], view)

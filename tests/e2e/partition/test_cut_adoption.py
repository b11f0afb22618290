"""A leader's death ends no gang that holds a model together: the next leader takes it up."""

import asyncio
import json
import re
import signal
from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import CheckpointCommitted
from tests.support.daemons.cluster import Cluster, Daemon, Document, three_daemons
from tests.support.daemons.training_runs import write_letters

pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.full, pytest.mark.timeout(500)]

STEPS = 230
"""Sets of parts are due after 100 steps and 200, and at the end."""

WAIT_S = 120.0
ADOPT_S = 20.0


def pids(run: Document) -> list[int]:
    return [seat["pid"] for seat in run["gang"]]


def recorded_steps(daemon: Daemon) -> list[int]:
    (run,) = daemon.state().cycles.values()
    return [fact.step for fact in run.canonical_branch() if isinstance(fact, CheckpointCommitted)]


def assembled(daemon: Daemon) -> list[int]:
    """Return the steps whose parts a daemon has put together."""
    found = re.findall(r"checkpoint_assembled step=(\d+)", daemon.log.read_text())
    return [int(step) for step in found]


async def leader_without_a_rank(cluster: Cluster) -> Daemon:
    (view, *_) = await cluster.meet()
    leader = cluster.by_id(view["cluster"]["leader"], view)
    for daemon in cluster.daemons:
        role = "generator" if daemon is leader else "trainer"
        assert cluster.ctl("node", "role", daemon.name, role).returncode == 0
    return leader


async def test_another_leader_takes_a_cut_gang_up_and_puts_nothing_together_twice(
    tmp_path: Path,
) -> None:
    letters = write_letters(tmp_path)
    async with three_daemons(tmp_path) as cluster:
        leader = await leader_without_a_rank(cluster)
        survivors = [daemon for daemon in cluster.daemons if daemon is not leader]
        asked = survivors[0]
        command = ("train", "start", "--data", str(letters), "--model", "1m", "--seq-len", "64")
        options = ("--max-steps", str(STEPS), "--engine", "torch", "--shard", "2")
        more = ("--batch-size", "1", "--gradient-accumulation-steps", "1")
        started = cluster.ctl(*command, *options, *more)
        assert started.returncode == 0, cluster.failure_text(started.stderr)
        before = await cluster.until(
            lambda run: run["step"] >= 105 and len(run["gang"]) == 2,
            "a set",
            WAIT_S,
            asked,
            "train",
        )
        await cluster.recorded(
            lambda run: run.last_checkpoint(1) is not None, "its checkpoint", WAIT_S, asked
        )
        assert leader.process is not None
        leader.process.send_signal(signal.SIGKILL)
        await asyncio.to_thread(leader.process.wait)
        await cluster.recorded(
            lambda run: bool(run.attempts_adopted), "the adoption", ADOPT_S, asked
        )
        ended = await cluster.until(
            lambda run: run["state"] not in ("running", "waiting"),
            "the end",
            WAIT_S,
            asked,
            "train",
        )
        assert ended["state"] == "finished", cluster.failure_text(str(ended["failure"]))
        (run,) = asked.state().cycles.values()
        assert set(run.attempts_opened) == set(run.attempts_adopted) == {before["epoch"]}
        assert recorded_steps(asked) == [100, 200, STEPS]
        later = [step for daemon in survivors for step in assembled(daemon)]
        assert sorted(later) == [200, STEPS], "100 was recorded by the leader before"
        tried = [daemon for daemon in survivors if "not_assembled" in daemon.log.read_text()]
        assert not tried, "the parts of 100 are gone"
        audited = cluster.ctl("data", "audit", "-o", "json", daemon=asked)
        (proof,) = json.loads(audited.stdout)["audit"]
        assert proof["ok"]

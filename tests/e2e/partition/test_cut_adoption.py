"""A leader's death ends no gang that holds a model together: the next leader takes it up."""

import asyncio
import json
import re
import signal
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import CheckpointCommitted
from jupiterd.protocol.checkpoint_part import DESCRIPTION_FILE
from tests.support.daemons.cluster import Cluster, Daemon, three_daemons
from tests.support.daemons.training_runs import write_letters

pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.full, pytest.mark.timeout(500)]

STEPS = 230
"""Sets of parts are due after 100 steps and 200, and at the end."""

WAIT_S = 120.0
ADOPT_S = 20.0


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


async def first_set_is_recorded(cluster: Cluster, trainers: Sequence[Daemon]) -> None:
    await cluster.recorded(
        lambda run: run.last_checkpoint(1) is not None, "a checkpoint", WAIT_S, trainers[0]
    )


async def first_set_is_written(_: Cluster, trainers: Sequence[Daemon]) -> None:
    """Wait until each rank's daemon has its part; the leader has yet to fetch them."""
    async with asyncio.timeout(WAIT_S):
        while not all(map(holds_part, trainers)):  # noqa: ASYNC110 - disks are looked at
            await asyncio.sleep(0.005)


def holds_part(daemon: Daemon) -> bool:
    return any(daemon.state_dir.glob(f"store/*/*/files/{DESCRIPTION_FILE}"))


@pytest.mark.parametrize("moment", [first_set_is_recorded, first_set_is_written])
async def test_another_leader_takes_a_cut_gang_up_loses_no_set_and_puts_none_together_twice(
    tmp_path: Path, moment: Callable[[Cluster, Sequence[Daemon]], Awaitable[None]]
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
        await moment(cluster, survivors)
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
        assert set(run.attempts_opened) == set(run.attempts_adopted) == {1}
        assert recorded_steps(asked) == [100, 200, STEPS]
        later = [step for daemon in survivors for step in assembled(daemon)]
        assert sorted(later) in ([200, STEPS], [100, 200, STEPS])
        assert 100 not in later or moment is first_set_is_written, "it was recorded before"
        tried = [daemon for daemon in survivors if "not_assembled" in daemon.log.read_text()]
        assert not tried, "the parts of 100 are gone"
        audited = cluster.ctl("data", "audit", "-o", "json", daemon=asked)
        (proof,) = json.loads(audited.stdout)["audit"]
        assert proof["ok"]

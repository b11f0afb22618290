"""Killing anything at any time and starting it again leads to the same data, and to the end."""

import asyncio
import os
import random
import signal
from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import CheckpointCommitted
from jupiterd.cycle.base.work_item import Phase
from tests.support.daemons.cluster import Cluster, Document, all_gone, three_daemons
from tests.support.sources.tiny_domain import write_domain
from tests.support.strikes.undisturbed import data_of_round_one

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.timeout(300),
]

ORDER = [str(phase) for phase in Phase]
CYCLE_TIMEOUT_S = 120.0
CHECKPOINT_STEPS = 100
"""How far apart the size 1m writes checkpoints."""


def start_cycle(cluster: Cluster, domain: Path) -> None:
    started = cluster.ctl("cycle", "start", "--domain", str(domain), "--seed", "7")
    assert started.returncode == 0, started.stderr


async def test_a_cycle_survives_the_death_of_all_daemons_at_a_random_moment(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    phase = chance.choice(["collect", "pack", "train", "evaluate"])
    moment_s = chance.uniform(0.0, 3.0)
    print(f"killed {moment_s:.2f} s after {phase} was seen")

    def has_come_to(cycle: Document) -> bool:
        return cycle["phase"] is not None and ORDER.index(cycle["phase"]) >= ORDER.index(phase)

    domain = write_domain(tmp_path, steps=120)
    async with three_daemons(tmp_path) as cluster:
        await cluster.meet()
        start_cycle(cluster, domain)
        await cluster.until(has_come_to, phase, CYCLE_TIMEOUT_S)
        await asyncio.sleep(moment_s)
        workers = [pid for daemon in cluster.daemons for pid in daemon.workers()]
        for daemon in cluster.daemons:
            daemon.kill()
        assert await all_gone(workers, 10), "a worker outlived its daemon"
        for daemon in cluster.daemons:
            daemon.start()
        await cluster.meet()
        ended = await cluster.until(
            lambda cycle: cycle["state"] not in ("running", "waiting"), "the end", CYCLE_TIMEOUT_S
        )
        assert ended["state"] == "finished", cluster.failure_text(str(ended["failure"]))
        assert len(ended["verdicts"]) == 1
        await cluster.meet()
        (cycle,) = cluster[0].state().cycles.values()
        assert cycle.started is not None
        expected = await data_of_round_one(cycle.started, tmp_path)
        made = {fact.item: fact.outputs for fact in cycle.completed.values()}
        assert {item: made[item] for item in expected} == expected
        assert {fact.phase for fact in cycle.completed.values()} == {
            "collect", "filter", "pack", "evaluate", "gate",
        }  # fmt: skip


@pytest.mark.long  # like `test_ranks_of_one_node`, with a machine for each rank
async def test_training_goes_on_from_the_last_finished_step_when_a_worker_is_killed(
    tmp_path: Path,
) -> None:
    domain = write_domain(tmp_path, steps=240)
    async with three_daemons(tmp_path) as cluster:
        await cluster.meet()
        start_cycle(cluster, domain)
        seen = await cluster.until(
            lambda cycle: bool(cycle["gang"]) and cycle["step"] >= CHECKPOINT_STEPS,
            "step 100",
            CYCLE_TIMEOUT_S,
        )
        assert [seat["rank"] for seat in seen["gang"]] == [0, 1]
        assert len({seat["node"] for seat in seen["gang"]}) == 2
        await cluster.recorded(lambda cycle: bool(cycle.canonical_branch()), "a checkpoint", 30)
        os.kill(seen["gang"][1]["pid"], signal.SIGKILL)
        again = await cluster.until(lambda cycle: cycle["epoch"] == 2, "epoch 2", 30)
        assert again["resumed_from_step"] >= seen["step"], "a finished step was lost"
        assert await all_gone([seat["pid"] for seat in seen["gang"]], 10), "a rank goes on alone"
        ended = await cluster.until(
            lambda cycle: cycle["state"] != "running", "the end", CYCLE_TIMEOUT_S
        )
        assert ended["state"] == "finished", cluster.failure_text(str(ended["failure"]))
        assert ended["step"] == 240
        assert ended["epoch"] == 2
        assert ended["resumed_from_step"] == again["resumed_from_step"]
        assert any("attempt 1 ended" in event["text"] for event in ended["events"])
        (cycle,) = cluster[0].state().cycles.values()
        steps = [
            fact.step for fact in cycle.canonical_branch() if isinstance(fact, CheckpointCommitted)
        ]
        at_branch = 192  # the last fifth is the branch
        assert steps == sorted({100, 200, at_branch, 240, ended["resumed_from_step"]})

"""A gang with two ranks on one machine and one on another: it heals, and trains as one process."""

import asyncio
import os
import random
import re
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import CheckpointCommitted
from jupiterd.cluster.ledger.cycle_state import CycleState
from tests.support.daemons.cluster import NAMES, Cluster, Daemon, all_gone, running
from tests.support.daemons.surroundings import own_network
from tests.support.daemons.training_runs import until_trained, write_letters
from tests.support.strikes.wholeness import left_over

pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.timeout(400)]

STEPS = 80
WINDOW_STEPS = 20
"""A checkpoint's loss is the mean over so many steps, or over those since its attempt began."""

STRUCK_FROM, STRUCK_TO = 25, 50
"""Steps between which a rank is killed; the seed below says after which. Early enough that the
new epoch's last loss is one over WINDOW_STEPS steps, like that of the training that nobody struck.
"""

BATCH = 6
TOLERANCE = 1e-3
"""Gradients are added up in another order, and what that changes grows with the steps: 6e-6 apart
after 100, 1.3e-4 after 120."""


async def test_one_of_two_ranks_of_a_node_dies_and_the_gang_heals(
    tmp_path: Path, seed: int
) -> None:
    letters = write_letters(tmp_path)
    struck_at = random.Random(seed).randrange(STRUCK_FROM, STRUCK_TO)
    with own_network() as prefix:
        two = Daemon(tmp_path, NAMES[0], prefix, environment={"JUPITER_DEVICES": "cpu,cpu"})
        one = Daemon(tmp_path, NAMES[1], prefix)
        async with running([two, one]) as cluster:
            (view, *_) = await cluster.meet()
            node = next(seen["id"] for seen in view["nodes"] if seen["name"] == two.name)
            ended = asyncio.ensure_future(trained(cluster, letters, accumulation=BATCH // 3))
            document = await until_trained(cluster, one, struck_at, 150)
            seats = {seat["rank"]: seat for seat in document["gang"]}
            pids = [seat["pid"] for seat in seats.values() if seat["node"] == node]
            assert (sorted(seats), len(pids)) == ([0, 1, 2], 2)
            os.kill(pids[-1], signal.SIGKILL)
            assert await all_gone(pids, 10.0), cluster.failure_text(
                "a rank of the ended epoch goes on"
            )
            await ended
            (healed,) = runs(one)
            epochs = [healed.attempts_opened[number] for number in sorted(healed.attempts_opened)]
            assert [fact.gang.count(node) for fact in epochs] == [2, 2]
            assert epochs[1].from_step >= struck_at, "more than the running step was lost"
            ends = healed.attempts_closed[min(healed.attempts_opened)]
            assert re.match(rf"rank \d, .*\(pid {pids[-1]}\) was killed by SIGKILL", ends.reason)
            assert ends.code == "worker-killed", "not what a survivor's socket says"
            audited = cluster.ctl("data", "audit", daemon=one)
            assert audited.returncode == 0, audited.stdout + audited.stderr

            await trained(cluster, letters, "--nodes", "1", accumulation=BATCH)
            (alone,) = [run for run in runs(one) if len(gang_of(run)) == 1]
            of_gang, of_one = losses(healed), losses(alone)
            resumed_at = epochs[1].from_step
            assert resumed_at + WINDOW_STEPS <= STEPS, "struck too late to compare its last loss"
            whole = {step for step in of_gang if step - resumed_at >= WINDOW_STEPS}
            assert STEPS in whole & of_one.keys()
            for step in whole & of_one.keys():
                assert abs(of_gang[step] - of_one[step]) < TOLERANCE, (step, of_gang, of_one)
        assert left_over(tmp_path, []) == []


async def trained(cluster: Cluster, letters: Path, *more: str, accumulation: int) -> None:
    """Train to the end, with sequences that are shared by however many ranks there are."""
    ended = await asyncio.to_thread(
        cluster.ctl,
        *("train", "start", "--data", str(letters), "--model", "1m", "--engine", "torch"),
        *("--max-steps", str(STEPS), "--seq-len", "64", "--wait", "--timeout", "200"),
        *("--gradient-accumulation-steps", str(accumulation), *more),
        timeout_s=220,
    )
    assert ended.returncode == 0, cluster.failure_text(ended.stdout + ended.stderr)


def runs(daemon: Daemon) -> list[CycleState]:
    return [run for run in daemon.state().cycles.values() if run.attempts_opened]


def gang_of(run: CycleState) -> Sequence[str]:
    return run.attempts_opened[max(run.attempts_opened)].gang


def losses(run: CycleState) -> Mapping[int, float]:
    made = [fact for fact in run.canonical_branch() if isinstance(fact, CheckpointCommitted)]
    return {fact.step: fact.loss for fact in made}

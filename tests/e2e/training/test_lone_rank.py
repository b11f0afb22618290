"""The only rank of a training is killed again and again: at most one step is lost each time."""

import json
import os
import signal
from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import CheckpointCommitted
from tests.support.daemons.cluster import Cluster, Daemon, Document, running
from tests.support.daemons.surroundings import own_network
from tests.support.daemons.training_runs import until_trained, write_letters
from tests.support.strikes.wholeness import left_over

pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.timeout(400)]

STRIKES = 3
EVERY_STEPS = 100
"""How far apart the size 1m writes checkpoints: further than this test trains."""

TRAIN_TIMEOUT_S = 120.0
BATCH = 16
"""Sequences of a step, which then takes so long that a copy after each costs below 2 %."""

AHEAD = 3
"""Steps that are taken between two strikes."""


def begin(cluster: Cluster, folder: Path, engine: str) -> None:
    command = ("train", "start", "--data", str(write_letters(folder)), "--model", "1m")
    batch = ("--batch-size", str(BATCH), "--gradient-accumulation-steps", "1")
    sizes = ("--seq-len", "64", *batch, "--max-steps", "100000")
    started = cluster.ctl(*command, *sizes, "--engine", engine)
    assert started.returncode == 0, started.stderr


async def strike(cluster: Cluster, daemon: Daemon, at_least: int) -> tuple[Document, Document]:
    """Kill the rank once it is so far; return what was shown before, and of the next attempt."""
    before = await until_trained(cluster, daemon, at_least, TRAIN_TIMEOUT_S)
    os.kill(before["gang"][0]["pid"], signal.SIGKILL)
    while True:
        after = await until_trained(cluster, daemon, before["step"], TRAIN_TIMEOUT_S)
        if after["epoch"] > before["epoch"] and after["step"] > after["resumed_from_step"]:
            return before, after


def told_every(shown: Document) -> float:
    (row,) = (row for row in shown["phases"] if row["phase"] == "train")
    return row["values"]["snapshot_every_steps"]


@pytest.mark.parametrize("engine", ["torch", pytest.param("mlx", marks=pytest.mark.long)])
async def test_kill_9_of_the_only_rank_costs_a_step_at_the_most(
    tmp_path: Path, engine: str
) -> None:
    with own_network() as prefix:
        async with running([Daemon(tmp_path, "node-1", prefix)]) as cluster:
            await cluster.meet()
            (daemon,) = cluster.daemons
            begin(cluster, tmp_path, engine)
            step = 5
            for _ in range(STRIKES):
                before, after = await strike(cluster, daemon, step + AHEAD)
                print(f"step {before['step']} -> {after['resumed_from_step']}")
                may_be_lost = max(1.0, told_every(before))
                assert after["resumed_from_step"] >= before["step"] - may_be_lost
                step = after["step"]
            assert step < EVERY_STEPS, "no checkpoint of the plan has helped"
            (run,) = daemon.state().cycles.values()
            made = [f for f in run.canonical_branch() if isinstance(f, CheckpointCommitted)]
            assert len(made) >= STRIKES
            audited = cluster.ctl("data", "audit", "-o", "json")
            assert audited.returncode == 0, audited.stdout + audited.stderr
            (proof,) = json.loads(audited.stdout)["audit"]
            assert proof["ok"]
            assert proof["rounds"][0]["cursor"] == made[-1].step * BATCH, "each sequence once"
    assert left_over(tmp_path, []) == []

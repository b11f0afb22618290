"""A gang that trains DoRA with dropout loses a rank, and goes on with the losses of a calm one."""

import asyncio
import json
import os
import signal
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file

from jupiterd.adapter_folder import ADAPTER_CONFIG, ADAPTER_FILE
from jupiterd.cluster.facts.facts import CheckpointCommitted
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cycle.training.adapters.adapter import MAGNITUDE
from jupiterd.ids import CycleId
from jupiterd.workers.train.loop import WINDOW_STEPS
from tests.support.daemons.adapter_runs import write_base
from tests.support.daemons.cluster import Cluster, Daemon, Document, all_gone, running
from tests.support.daemons.surroundings import own_network
from tests.support.daemons.training_runs import until_trained, write_letters
from tests.support.strikes.wholeness import left_over

Matrix = NDArray[np.float32]

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.full,
    pytest.mark.timeout(300),
]

STEPS, BATCH, AHEAD, WAIT_S = 200, 4, 5, 120.0
DORA = ("--lora", "rank=8,dropout=0.1,dora", "--lr", "0.01")
SAME_LOSS = 1e-5
"""In nats a token: sums are rounded otherwise where other ranks share them."""
SAME_ADAPTER = 0.01
"""How far the adapters may lie from each other, of their length."""


@pytest.mark.parametrize("shard", [(), ("--shard", "3")], ids=["whole base", "cut base"])
async def test_a_gang_that_loses_a_rank_goes_on_with_the_losses_of_a_calm_one(
    shard: tuple[str, ...], tmp_path: Path
) -> None:
    letters = write_letters(tmp_path)
    base = write_base(tmp_path, letters)
    with own_network() as prefix:
        daemons = [Daemon(tmp_path, name, prefix) for name in ("one", "two")]
        async with running(daemons) as cluster:
            await cluster.meet()
            calm = begin(cluster, letters, base, ranks=1)
            await until_over(cluster)
            struck = begin(cluster, letters, base, *shard, ranks=2)
            lost_at = await lose_a_rank(cluster)
            shown = await until_over(cluster)
            assert shown["best_bits_per_byte"] < shown["bits_per_byte_before"]
            assert_same_losses(*(cluster[0].state().cycles[CycleId(run)] for run in (calm, struck)))
            assert_cut(cluster[0].state().cycles[CycleId(struck)], 3 if shard else 0, lost_at)
            folders = [exported(cluster, run, tmp_path / run) for run in (calm, struck)]
            done(cluster, "model", "export", struck, "--merge", "--to", str(tmp_path / "whole"))
        assert left_over(tmp_path, []) == []
    said = json.loads((folders[1] / ADAPTER_CONFIG).read_text())
    assert (said["use_dora"], said["lora_dropout"], said["r"]) == (True, 0.1, 8)
    assert_same_adapters(*(load_file(folder / ADAPTER_FILE) for folder in folders))
    assert not (tmp_path / "whole" / ADAPTER_CONFIG).exists()


def begin(cluster: Cluster, letters: Path, base: Path, *options: str, ranks: int) -> str:
    """Start a run; return its name. However many ranks there are, a step has as many sequences."""
    asked = ("train", "start", "--data", str(letters), "--model", str(base), *DORA, *options)
    nodes = "1" if ranks == 1 else "all"
    shown = done(
        cluster,
        *(*asked, "--engine", "torch", "--nodes", nodes, "--seed", "7", "--seq-len", "64"),
        *("--islands", "off", "--batch-size", str(BATCH // ranks)),
        *("--gradient-accumulation-steps", "1", "--max-steps", str(STEPS), "-o", "json"),
    )
    return json.loads(shown)["train"]


async def lose_a_rank(cluster: Cluster) -> int:
    """Kill a rank in the midst, and return after which step at the earliest.

    The gang goes on from the step before at the earliest.
    """
    before = await cluster.until(
        lambda run: len(run["gang"]) == 2 and run["step"] > 0, "two ranks train", WAIT_S,
        noun="train",
    )  # fmt: skip
    before = await until_trained(cluster, cluster[0], before["step"] + AHEAD, WAIT_S)
    assert before["state"] != "finished", "it must still train"
    pid = before["gang"][-1]["pid"]
    os.kill(pid, signal.SIGKILL)
    assert await asyncio.wait_for(all_gone([pid], 10.0), 20.0)
    return before["step"]


def assert_cut(struck: CycleState, stage: int, lost_at: int) -> None:
    """Whatever was cut, its survivor had all that is trained: a step is lost at the most."""
    attempts = [struck.attempts_opened[number] for number in sorted(struck.attempts_opened)]
    assert {attempt.stage for attempt in attempts if len(attempt.gang) > 1} == {stage}
    assert attempts[1].from_step >= lost_at


def assert_same_losses(calm: CycleState, struck: CycleState) -> None:
    """Compare the losses that checkpoints have, once their windows hold no lost step."""
    attempts = [struck.attempts_opened[number] for number in sorted(struck.attempts_opened)]
    assert len(attempts) > 1, "no rank was lost"
    begun = attempts[-1].from_step + WINDOW_STEPS
    assert begun < STEPS, "struck too late to compare its last loss"
    wanted, found = (
        {fact.step: fact.loss for fact in run.canonical_branch()
         if isinstance(fact, CheckpointCommitted) and fact.step >= begun}
        for run in (calm, struck)
    )  # fmt: skip
    both = wanted.keys() & found.keys()
    assert STEPS in both
    print(f"losses {max(abs(found[step] - wanted[step]) for step in both):.1e} apart")
    for step in both:
        assert found[step] == pytest.approx(wanted[step], abs=SAME_LOSS), step


def assert_same_adapters(calm: Mapping[str, Matrix], struck: Mapping[str, Matrix]) -> None:
    assert calm.keys() == struck.keys()
    assert any(name.endswith(MAGNITUDE) for name in calm)
    apart, whole = (
        np.sqrt(sum(float(np.square(matrix).sum()) for matrix in matrices))
        for matrices in ((struck[name] - calm[name] for name in calm), calm.values())
    )
    print(f"{apart / whole:.5f} apart")
    assert apart < SAME_ADAPTER * whole


def exported(cluster: Cluster, run: str, folder: Path) -> Path:
    done(cluster, "model", "export", run, "--to", str(folder))
    return folder


async def until_over(cluster: Cluster) -> Document:
    return await cluster.until(
        lambda run: run["state"] == "finished", "the run is over", WAIT_S, noun="train"
    )


def done(cluster: Cluster, *words: str) -> str:
    found = cluster.ctl(*words)
    assert found.returncode == 0, cluster.failure_text(found.stdout + found.stderr)
    return found.stdout

"""A gang that trains an adapter is struck, grows, is started anew, and ends as a calm one does."""

import asyncio
import contextlib
import json
import os
import re
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file

from jupiterd.cluster.facts.facts import CheckpointCommitted
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cycle.training.adapters.adapter import FACTORS, module_of, tensor_name
from jupiterd.ids import CycleId
from jupiterd.workers.train.weight_sync import ALONE, CATCHING_UP, IN_SYNC
from tests.support.daemons.adapter_runs import ADAPTER, write_base
from tests.support.daemons.cluster import NAMES, Cluster, Daemon, Document, all_gone, running
from tests.support.daemons.surroundings import own_network
from tests.support.daemons.training_runs import until_trained, write_letters
from tests.support.strikes.wholeness import left_over

pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.timeout(600)]

STEPS, BATCH, SEQ_LEN = 200, 6, 64
"""Enough that it trains until the last strike; of the batch two or three ranks have equal parts."""

AHEAD = 5
"""Steps that are taken between two strikes."""

WAIT_S = 120.0
SAME_BPB = 0.02
SAME_ADAPTER = 0.01
"""How far apart the products of the factors are, beside their length: sums are rounded otherwise
where other ranks share them."""

Matrix = NDArray[np.float32]

SAID = re.compile(r"Sync=(.+)")


@pytest.mark.parametrize("engine", ["torch", pytest.param("mlx", marks=pytest.mark.long)])
async def test_the_adapter_of_a_gang_that_is_struck_is_that_of_a_calm_one(
    tmp_path: Path, engine: str
) -> None:
    letters = write_letters(tmp_path)
    base = write_base(tmp_path, letters)
    with own_network() as prefix:
        daemons = [Daemon(tmp_path, name, prefix) for name in NAMES]
        async with running(daemons) as three:
            await three.meet()  # the first work that is started closes the door
            pin_roles(three)
            await asyncio.to_thread(daemons[2].stop)
            two = Cluster(daemons[:2])
            await two.meet()
            calm = begin(two, letters, base, engine, "1")
            wanted = await until_over(two)
            run = begin(two, letters, base, engine, "all")
            for blow in (signal.SIGKILL, signal.SIGSTOP):
                await strike(two, blow)
            await restart(two)
            daemons[2].start()
            await grow(Cluster(daemons), run)
            found = await until_over(two)
            print(f"val_bpb {found:.4f}, calm {wanted:.4f}")
            assert found == pytest.approx(wanted, abs=SAME_BPB)
            runs = two[0].state().cycles
            assert_trained_once(two, run)
            apart = distance(*(adapter(daemons, runs[CycleId(each)]) for each in (run, calm)))
            print(f"{apart:.4f} apart")
            assert apart < SAME_ADAPTER
            assert {*said_of_sync(daemons)} - {ALONE, CATCHING_UP} == {IN_SYNC}
    assert left_over(tmp_path, []) == []


def pin_roles(cluster: Cluster) -> None:
    for name in NAMES:
        role = cluster.ctl("node", "role", name, "trainer")
        assert role.returncode == 0, role.stderr


def begin(cluster: Cluster, letters: Path, base: Path, engine: str, nodes: str) -> str:
    """Start a run of an adapter; return its name. One machine takes the batch of three."""
    ranks = 1 if nodes == "1" else 2
    started = cluster.ctl(
        *("train", "start", "--data", str(letters), "--model", str(base), *ADAPTER),
        *("--engine", engine, "--nodes", nodes, "--seed", "7", "--seq-len", str(SEQ_LEN)),
        *("--batch-size", str(BATCH // ranks), "--gradient-accumulation-steps", "1"),
        *("--max-steps", str(STEPS), "-o", "json"),
    )
    assert started.returncode == 0, started.stderr
    return json.loads(started.stdout)["train"]


async def until_over(cluster: Cluster) -> float:
    """Wait until the newest run has ended; return the bits per byte of its model."""
    async with asyncio.timeout(WAIT_S * 2):
        while True:
            shown = await until_trained(cluster, cluster[0], STEPS, WAIT_S * 2)
            if shown["state"] == "finished":
                return shown["val_bpb"]
            await asyncio.sleep(0.2)


async def strike(cluster: Cluster, blow: signal.Signals) -> None:
    """Kill or freeze a rank; the gang goes on from the step before at the earliest."""
    before = await until_ranks(cluster, 2)
    before = await until_trained(cluster, cluster[0], before["step"] + AHEAD, WAIT_S)
    pid = before["gang"][-1]["pid"]
    os.kill(pid, blow)
    after = await until_ranks(cluster, 2, before["epoch"])
    print(f"{blow.name}: step {before['step']} -> {after['resumed_from_step']}")
    assert after["resumed_from_step"] >= before["step"] - 1
    assert await all_gone([pid], 10.0)


async def until_ranks(cluster: Cluster, ranks: int, after: int = 0) -> Document:
    """Wait until so many ranks have finished a step of a later attempt."""
    async with asyncio.timeout(WAIT_S):
        while True:
            run = await until_trained(cluster, cluster[0], 1, WAIT_S)
            assert run["state"] != "finished", "it must still train"
            is_whole = len(run["gang"]) == ranks and all(seat["pid"] for seat in run["gang"])
            if is_whole and run["epoch"] > after and run["step"] > run["resumed_from_step"]:
                return run
            await asyncio.sleep(0.1)


async def restart(cluster: Cluster) -> None:
    """End every process at once, and start the daemons again; the gang goes on where it was."""
    before = await until_ranks(cluster, 2)
    workers = [pid for daemon in cluster.daemons for pid in daemon.workers()]
    for daemon in cluster.daemons:
        daemon.kill()
    for pid in workers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for daemon in cluster.daemons:
        daemon.start()
    await cluster.meet()
    after = await until_ranks(cluster, 2, before["epoch"])
    print(f"all anew: step {before['step']} -> {after['resumed_from_step']}")


async def grow(cluster: Cluster, run: str) -> None:
    """Go on with another machine, which has come meanwhile."""
    stopped = cluster.ctl("train", "stop", "--yes", "--wait", "--timeout", "30s")
    assert stopped.returncode == 0, stopped.stderr
    await cluster.meet()
    resumed = cluster.ctl("train", "start", "--resume", run)
    assert resumed.returncode == 0, cluster.failure_text(resumed.stderr)
    await until_ranks(cluster, 3)


def assert_trained_once(cluster: Cluster, run: str) -> None:
    audited = cluster.ctl("data", "audit", run, "-o", "json")
    assert audited.returncode == 0, audited.stdout + audited.stderr
    (proof,) = json.loads(audited.stdout)["audit"]
    (only,) = proof["rounds"]
    cursor = STEPS * BATCH
    assert (proof["ok"], only["cursor"], only["tokens"]) == (True, cursor, cursor * SEQ_LEN)


def adapter(daemons: Sequence[Daemon], run: CycleState) -> Mapping[str, Matrix]:
    """Return what the last checkpoint of a run adds to each matrix; all of it is an adapter's."""
    made = [fact for fact in run.canonical_branch() if isinstance(fact, CheckpointCommitted)]
    assert (made[-1].step, made[-1].is_final) == (STEPS, True)
    name = made[-1].artifact
    holder = next(daemon for daemon in daemons if daemon.holds(name))
    files = holder.state_dir / "store" / name[:2] / name / "files"
    assert not [*files.rglob("model*.safetensors")], "nothing of the base is in a checkpoint"
    tensors = load_file(files / "adapter_model.safetensors")
    modules = {module_of(each)[0] for each in tensors}
    first, second = FACTORS
    return {m: tensors[tensor_name(m, second)] @ tensors[tensor_name(m, first)] for m in modules}


def distance(ours: Mapping[str, Matrix], theirs: Mapping[str, Matrix]) -> float:
    """Return how far apart two adapters are, as a part of how long the second one is."""
    assert ours.keys() == theirs.keys()
    apart, whole = (
        np.sqrt(sum(float(np.square(matrix).sum()) for matrix in matrices))
        for matrices in ((ours[m] - theirs[m] for m in theirs), theirs.values())
    )
    return float(apart / whole)


def said_of_sync(daemons: Sequence[Daemon]) -> list[str]:
    """Return what ranks have said of their weights beside the others'."""
    logs = (log for daemon in daemons for log in (daemon.state_dir / "logs").glob("*train*.log"))
    return [said for log in logs for said in SAID.findall(log.read_text(errors="replace"))]

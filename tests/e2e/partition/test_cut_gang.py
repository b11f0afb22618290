"""Three machines that hold a model together by their memory: some are lost, and come back."""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from jupiterd.cluster.facts.attempt_facts import AttemptOpened
from jupiterd.cluster.facts.facts import CheckpointCommitted
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.daemon.gangs.attempt_end import STOPPED
from jupiterd.protocol.checkpoint_part import DESCRIPTION_FILE
from tests.support.daemons.cluster import Cluster, Daemon, Document, three_daemons
from tests.support.daemons.cut_runs import SEQ_LEN, limits_gb, write_deep
from tests.support.daemons.training_runs import write_letters

pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.full, pytest.mark.timeout(500)]

RATIO = (24, 12, 16)
"""Of what the machines have to spare."""

ONE_MORE = 10
"""Steps of each gang that a test waits for."""

WAIT_S = 120.0


async def start(cluster: Cluster, folder: Path, steps: int) -> None:
    """Have all three train what two of them hold in a higher stage, and none alone."""
    await cluster.meet()
    letters = write_letters(folder)
    model = write_deep(folder, letters)
    for daemon in cluster.daemons:
        assert cluster.ctl("node", "role", daemon.name, "trainer").returncode == 0
    sizes = zip(cluster.daemons, limits_gb(model, RATIO, len(RATIO)), strict=True)
    options = {
        "--data": letters,
        "--model": model,
        "--max-steps": steps,
        "--seq-len": SEQ_LEN,
        "--batch-size": 1,
        "--gradient-accumulation-steps": 1,
        "--optimizer": "adamw",
        "--gradient-checkpointing": "off",
        "--engine": "torch",
    }
    said = [str(word) for option in options.items() for word in option]
    limits = [f"--memory={daemon.name}={size_gb}" for daemon, size_gb in sizes]
    started = cluster.ctl("train", "start", *said, *limits)
    assert started.returncode == 0, cluster.failure_text(started.stderr)


async def trains(cluster: Cluster, asked: Daemon, ranks: int, after: int = -1) -> Document:
    """Wait until a gang of so many ranks, later than an attempt, has made some steps."""
    return await cluster.until(
        lambda run: (
            len(run["gang"]) == ranks
            and all(seat["pid"] for seat in run["gang"])
            and run["epoch"] > after
            and run["step"] >= (run["resumed_from_step"] or 0) + ONE_MORE
        ),
        f"a gang of {ranks}",
        WAIT_S,
        asked,
        "train",
    )


async def waits_for_memory(cluster: Cluster, asked: Daemon) -> None:
    async with asyncio.timeout(WAIT_S):
        while "GB more memory" not in (said := status_of(cluster, asked)):  # noqa: ASYNC110 - asks
            await asyncio.sleep(0.5)
    for other in cluster.daemons:
        assert (f"{other.name} is gone" in said) == (other is not asked), said


def status_of(cluster: Cluster, asked: Daemon) -> str:
    return cluster.ctl("train", "status", daemon=asked).stdout


async def ended(cluster: Cluster, asked: Daemon) -> None:
    run = await cluster.until(
        lambda run: run["state"] not in ("running", "waiting"), "the end", WAIT_S, asked, "train"
    )
    assert run["state"] == "finished", cluster.failure_text(str(run["failure"]))


async def leader_of(cluster: Cluster, among: Sequence[Daemon] = ()) -> Daemon:
    view = (await cluster.meet(among))[0]
    return cluster.by_id(view["cluster"]["leader"], view)


def cut_power(daemon: Daemon) -> None:
    """End a daemon and its workers at once."""
    workers = daemon.workers()
    daemon.kill()
    for pid in workers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def run_of(daemon: Daemon) -> CycleState:
    (run,) = daemon.state().cycles.values()
    return run


def opened(daemon: Daemon, shown: Document) -> AttemptOpened:
    return run_of(daemon).attempts_opened[shown["epoch"]]


def checkpoints(run: CycleState) -> list[int]:
    """Return the steps of those that count."""
    return [fact.step for fact in run.canonical_branch() if isinstance(fact, CheckpointCommitted)]


def left_parts(daemon: Daemon) -> list[Path]:
    return [*daemon.state_dir.glob(f"store/*/*/files/{DESCRIPTION_FILE}")]


def assert_trained_once(cluster: Cluster, asked: Daemon, steps: int) -> None:
    made = checkpoints(run_of(asked))
    assert made == sorted(set(made))
    assert made[-1] == steps
    audited = cluster.ctl("data", "audit", "-o", "json", daemon=asked)
    assert audited.returncode == 0, audited.stdout + audited.stderr
    (proof,) = json.loads(audited.stdout)["audit"]
    (only,) = proof["rounds"]
    assert (proof["ok"], only["cursor"]) == (True, steps * len(RATIO))


async def test_machines_of_unlike_memory_go_on_with_those_that_are_left_and_take_others_in(
    tmp_path: Path,
) -> None:
    steps = 120
    async with three_daemons(tmp_path) as cluster:
        await start(cluster, tmp_path, steps)
        leader = await leader_of(cluster)
        victim, asked = (daemon for daemon in cluster.daemons if daemon is not leader)
        whole = await trains(cluster, asked, 3)
        held = opened(asked, whole)
        assert held.stage == 1
        assert sorted(held.parts) == [
            pytest.approx(1000 * part / 52, abs=2) for part in (12, 16, 24)
        ]

        cut_power(victim)
        fewer = await trains(cluster, asked, 2, whole["epoch"])
        assert opened(asked, fewer).stage > 1, "two have less to spare"
        assert fewer["resumed_from_step"] >= whole["resumed_from_step"]

        victim.start()
        again = await trains(cluster, asked, 3, fewer["epoch"])
        assert opened(asked, again).stage == 1
        assert again["resumed_from_step"] >= fewer["step"], "who joins costs nothing"

        await asyncio.to_thread(leader.stop, 30)
        left = await trains(cluster, asked, 2, again["epoch"])
        assert run_of(asked).attempts_closed[again["epoch"]].reason == STOPPED
        assert left["resumed_from_step"] >= again["step"], "who leaves in order costs nothing"
        await ended(cluster, asked)
        assert_trained_once(cluster, asked, steps)
        assert not left_parts(asked)


async def test_after_all_lost_their_power_one_waits_and_two_go_on_with_what_three_had(
    tmp_path: Path,
) -> None:
    steps = 130
    async with three_daemons(tmp_path) as cluster:
        await start(cluster, tmp_path, steps)
        asked = cluster[0]
        await cluster.recorded(lambda run: bool(checkpoints(run)), "a checkpoint", WAIT_S, asked)
        before = await trains(cluster, asked, 3)
        for daemon in cluster.daemons:
            cut_power(daemon)
        asked.start()
        await waits_for_memory(cluster, asked)
        cluster[1].start()
        after = await trains(cluster, asked, 2, before["epoch"])
        assert after["resumed_from_step"] >= checkpoints(run_of(asked))[0]
        await ended(cluster, asked)
        assert_trained_once(cluster, asked, steps)

"""Two islands train one model: one of two machines that hold it together, one of one machine."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import OuterStepTaken
from jupiterd.cluster.ledger.cycle_state import CycleState
from tests.support.daemons.cluster import Cluster, Daemon, Document, three_daemons
from tests.support.daemons.training_runs import write_letters
from tests.support.strikes.outer_digests import digests

pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.full, pytest.mark.timeout(400)]

STEPS, EVERY = 200, 10
WAIT_S = 150.0


async def start(cluster: Cluster, folder: Path, engine: str, stage: int) -> None:
    await cluster.meet()
    for daemon in cluster.daemons:
        assert cluster.ctl("node", "role", daemon.name, "trainer").returncode == 0
    first, second, third = (daemon.name for daemon in cluster.daemons)
    options = {
        "--data": write_letters(folder),
        "--model": "1m",
        "--seq-len": 64,
        "--max-steps": STEPS,
        "--gradient-accumulation-steps": 2,
        "--shard": stage,
        "--islands": f"{engine}:{first},{second} torch:{third}",
        "--sync-every": EVERY,
    }
    said = [str(word) for option in options.items() for word in option]
    started = cluster.ctl("train", "start", *said)
    assert started.returncode == 0, cluster.failure_text(started.stdout + started.stderr)
    assert f"Island 1: 1m over 2 machines, stage {stage}: " in started.stdout


def has_ended(run: Document) -> bool:
    return run["state"] not in ("running", "waiting")


def run_of(daemon: Daemon) -> CycleState:
    """Return the run; its islands are runs of their own."""
    runs = [run for run in daemon.state().cycles.values() if run.training is not None]
    return next(run for run in runs if run.training and not run.training.parent)


def cut_island(daemon: Daemon) -> CycleState:
    islands = daemon.state().cycles.values()
    return next(each for each in islands if each.training and len(each.training.nodes) == 2)


def outer_steps(daemon: Daemon) -> list[OuterStepTaken]:
    return [*run_of(daemon).outer_branch().values()]


async def until_outer_step(daemon: Daemon, number: int) -> None:
    async with asyncio.timeout(WAIT_S):
        while len(outer_steps(daemon)) <= number:  # noqa: ASYNC110 - a ledger file tells nobody
            await asyncio.sleep(0.2)


def assert_equal_weights(daemons: list[Daemon]) -> None:
    """Wherever both islands took an outer step, all ranks had the same weights, to the bit."""
    found = [digests(daemon) for daemon in daemons]
    both = set.intersection(*({*each} for each in found))
    assert len(both) >= 3
    assert all(len({*found[0][step]} | {*each[step]}) == 1 for each in found for step in both)


@pytest.mark.parametrize("engine", ["torch", pytest.param("mlx", marks=pytest.mark.mlx)])
async def test_a_cut_island_goes_on_after_one_of_its_ranks_was_killed(
    engine: str, tmp_path: Path
) -> None:
    async with three_daemons(tmp_path) as cluster:
        await start(cluster, tmp_path, engine, 3)
        asked = cluster[2]
        await until_outer_step(asked, 3)
        opened = [*cut_island(asked).attempts_opened.values()]
        assert (opened[0].stage, len(opened[0].parts)) == (3, 2)
        for pid in cluster[1].workers():
            os.kill(pid, signal.SIGKILL)
        ended = await cluster.until(
            lambda run: run["state"] not in ("running", "waiting"),
            "the end",
            WAIT_S,
            asked,
            "train",
        )
        assert ended["state"] == "finished", cluster.failure_text(str(ended["failure"]))
        taken = outer_steps(asked)
        again = [*cut_island(asked).attempts_opened.values()]
    assert len(again) > 1
    assert all(each.stage == 3 for each in again)
    assert [step.number for step in taken] == list(range(len(taken)))
    assert (taken[-1].first_step, taken[-1].steps) == (STEPS, 0)
    assert {len(taken[n].islands) for n in (2, -1)} == {2}, "it is back with the others"
    assert_equal_weights([*cluster.daemons])

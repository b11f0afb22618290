"""A machine that comes back while islands train becomes one of them, with the same weights."""

import asyncio
import subprocess
from pathlib import Path

import pytest

from tests.e2e.islands.test_islands import outer_steps, until_step
from tests.support.daemons.cluster import NAMES, Cluster, Daemon, running
from tests.support.daemons.surroundings import own_network
from tests.support.daemons.training_runs import write_letters
from tests.support.strikes.outer_digests import digests

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.long,  # like `unit/daemon/test_islands_conductor`, with real machines
    pytest.mark.timeout(300),
]

STEPS, EVERY = 4000, 10


async def test_a_machine_that_comes_back_while_others_train_as_islands_becomes_one(
    tmp_path: Path,
) -> None:
    letters = write_letters(tmp_path)
    with own_network() as prefix:
        daemons = [Daemon(tmp_path, name, prefix) for name in NAMES]
        *first, newcomer = daemons
        async with running(daemons) as cluster:
            await cluster.meet()
            for name in NAMES:
                done(cluster.ctl("node", "role", name, "trainer"))
            newcomer.stop()
            done(await asyncio.to_thread(start, cluster, letters))
            await until_step(first[0], 5, 120)
            newcomer.start()
            await until_counted(first[0], 3, 120)
            await until_step(newcomer, len(outer_steps(first[0])), 60)
            done(await asyncio.to_thread(cluster.ctl, "train", "stop", "--yes"))
            assert_equal_weights(*daemons)
            done(cluster.ctl("data", "audit", daemon=newcomer))


def done(command: subprocess.CompletedProcess[str]) -> None:
    assert command.returncode == 0, command.stdout + command.stderr


def start(cluster: Cluster, letters: Path) -> subprocess.CompletedProcess[str]:
    return cluster.ctl(
        *("train", "start", "--data", str(letters), "--model", "1m", "--seq-len", "64"),
        *("--max-steps", str(STEPS), "--gradient-accumulation-steps", "4"),
        *("--batch-size", "2", "--islands", "on", "--sync-every", str(EVERY)),
    )


async def until_counted(daemon: Daemon, many: int, timeout_s: float) -> None:
    """Wait until so many islands' ways are merged in one outer step."""
    async with asyncio.timeout(timeout_s):
        while max(len(step.islands) for step in outer_steps(daemon)) < many:  # noqa: ASYNC110
            await asyncio.sleep(0.2)


def assert_equal_weights(*daemons: Daemon) -> None:
    """Whoever has taken an outer step has the same weights after it, the newcomer's among them."""
    found = digests(*daemons)
    assert all(len(each) == 1 for each in found.values())
    assert len(found.keys() & digests(daemons[-1]).keys()) >= 2

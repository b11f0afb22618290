"""A gang that stands though every process lives: it is noticed soon, told, and formed anew."""

import asyncio
import time
from pathlib import Path

import pytest

from jupiterd.cluster.training.gang_watchdog import LEAST_STEP_S
from tests.support.daemons.training_runs import write_letters
from tests.support.network import links
from tests.support.network.asked_run import LOOK_S, AskedRun
from tests.support.network.machines import Machine, machines_on

pytestmark = [pytest.mark.timeout(120), pytest.mark.usefixtures("packet_filter")]

JOIN_S = 15.0
TRAINS_S = 60.0
SLACK_S = 2.0
"""Its end must also be recorded, on a busy machine."""


class EndlessRun(AskedRun):
    """A run that doesn't end before the test does."""

    def start(self, letters: Path) -> None:
        """Ask for it."""
        size = ("--seq-len", 32, "--gradient-accumulation-steps", 2, "--max-steps", 100_000)
        self._start("--data", letters, "--model", "1m", *size, "--islands", "off")

    async def has_come_to(self, step: int) -> None:
        """Wait until two have trained so far."""
        async with asyncio.timeout(TRAINS_S):
            while True:
                run, _ = await self._told(self._machines.machines)
                if run.get("step", 0) >= step and len(run["gang"]) == 2:
                    return
                await asyncio.sleep(LOOK_S)


def listening_ports(machine: Machine) -> set[int]:
    """Return where its daemon answers, for members and for anybody: nothing else listens there."""
    told = machine.host.inside.run("ss", "--listening", "--tcp", "--numeric", "--no-header")
    return {int(line.split()[3].rpartition(":")[2]) for line in told.splitlines()}


async def test_a_gang_whose_ranks_hear_each_other_no_more_is_formed_anew(tmp_path: Path) -> None:
    letters = write_letters(tmp_path)
    async with machines_on(2, tmp_path) as machines:
        (view, *_) = await machines.one_cluster(JOIN_S)
        leader = machines.leader(view)
        daemons = set().union(*map(listening_ports, machines.machines))
        run = EndlessRun(machines)
        run.start(letters)
        await run.has_come_to(20)
        links.block_all_but(leader.host, daemons)  # the daemons go on hearing each other
        began_s = time.monotonic()
        trained = await machines.recorded(
            lambda trained: bool(trained.attempts_closed), "its end", 30.0, leader
        )
        assert time.monotonic() - began_s < LEAST_STEP_S + SLACK_S
        (closed,) = trained.attempts_closed.values()
        # One of the two may have heard the last sum, and the other not: then that one is named.
        assert closed.reason.startswith("no step has come to its end for")
        links.restore(leader.host)
        await machines.recorded(lambda trained: bool(trained.open_attempts), "more", 30.0, leader)

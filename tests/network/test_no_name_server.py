"""Machines whose name server never answers: nothing on the way of a restart asks for a name."""

import asyncio
import os
import random
import re
import signal
import time
from pathlib import Path

import pytest

from tests.support.daemons.training_runs import write_letters
from tests.support.network import links
from tests.support.network.lab import lab_of
from tests.support.network.machines import Machines, machines_of

pytestmark = pytest.mark.timeout(120)

JOIN_S = 15.0
NO_ANSWER_S = 2.0
LOOK_S = 0.1
AGAIN_S = 4.0
"""Half a second on a machine that does nothing else; torch's own store cost 12 s."""


async def test_a_killed_rank_costs_no_look_up_of_a_name(tmp_path: Path) -> None:
    letters = write_letters(tmp_path, lines=4)
    with lab_of(2) as lab:
        took = [await asyncio.to_thread(links.lose_name_server, host) for host in lab.hosts]
        assert min(took) > NO_ANSWER_S, "somebody answers who asks"
        async with machines_of(lab, tmp_path) as machines:
            await machines.one_cluster(JOIN_S)
            command = ("train", "start", "--data", str(letters), "--model", "1m", "--yes")
            size = ("--seq-len", "32", "--max-steps", "100000", "--islands", "off")
            started = machines.ctl(*command, *size, "--engine", "torch")
            assert started.returncode == 0, machines.failure_text(started.stderr)
            pids = await trains(machines)
            os.kill(random.choice(pids), signal.SIGKILL)
            assert await changed(machines) < AGAIN_S


async def trains(machines: Machines, timeout_s: float = 60.0) -> list[int]:
    """Wait until two ranks have done a step; return their pids."""
    deadline_s = time.monotonic() + timeout_s
    while time.monotonic() < deadline_s:
        run = ((await machines[0].ask("train")) or {}).get("train") or {}
        pids = [seat["pid"] for seat in run.get("gang") or [] if seat["pid"]]
        if len(pids) == 2 and run["step"] > 0:
            return pids
        await asyncio.sleep(LOOK_S)
    raise AssertionError(machines.failure_text("two ranks don't train"))


async def changed(machines: Machines, timeout_s: float = 60.0) -> float:
    """Wait for the first step after a rank's death; return how long it took, as logged."""
    deadline_s = time.monotonic() + timeout_s
    while time.monotonic() < deadline_s:
        logs = "".join(machine.log.read_text(errors="replace") for machine in machines.machines)
        if found := re.search(r"epoch_changed .*first_step_s=([0-9.]+)", logs):
            return float(found[1])
        await asyncio.sleep(LOOK_S)
    raise AssertionError(machines.failure_text("no gang after the one that lost a rank"))

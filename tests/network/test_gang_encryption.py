"""Ranks that talk through tunnels: nobody reads on the network what they send each other."""

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from tests.support.daemons.training_runs import write_letters
from tests.support.network.lab import lab_of
from tests.support.network.machines import Machine, Machines, machines_of

pytestmark = pytest.mark.timeout(120)

JOIN_S = 15.0
LOOK_S = 0.1


@pytest.mark.parametrize("engine", ["torch", "mlx"])
async def test_ranks_of_an_encrypted_gang_are_reached_on_loopback_alone(
    tmp_path: Path, engine: str
) -> None:
    letters = write_letters(tmp_path, lines=4)
    with lab_of(2) as lab:
        async with machines_of(lab, tmp_path) as machines:
            await machines.one_cluster(JOIN_S)
            command = ("train", "start", "--data", str(letters), "--model", "1m", "--yes")
            size = ("--seq-len", "32", "--max-steps", "100000", "--islands", "off")
            started = machines.ctl(*command, *size, "--engine", engine, "--gang-encryption")
            assert started.returncode == 0, machines.failure_text(started.stderr)
            pids = await trains(machines)
            for machine in machines.machines:
                ends = connections(machine, pids)
                assert ends, machines.failure_text("a rank talks to nobody")
                assert all(end.startswith("127.0.0.1:") for end in ends), ends
            os.kill(min(pids), signal.SIGKILL)
            assert await trains(machines, without=min(pids))


def connections(machine: Machine, pids: set[int]) -> list[str]:
    """Return where ranks on a machine listen, and whom they talk to."""
    rows = machine.host.inside.run("ss", "-tnap").splitlines()
    own = [row.split() for row in rows if any(f"pid={pid}," in row for pid in pids)]
    return [end for row in own for end in row[3:5] if not end.endswith(":*")]


async def trains(machines: Machines, timeout_s: float = 60.0, without: int = 0) -> set[int]:
    """Wait until two ranks, other ones than that, have done some steps; return their pids."""
    deadline_s = time.monotonic() + timeout_s
    while time.monotonic() < deadline_s:
        run = ((await machines[0].ask("train")) or {}).get("train") or {}
        pids = {seat["pid"] for seat in run.get("gang") or [] if seat["pid"]}
        if len(pids - {without}) == 2 and run["step"] > (run["resumed_from_step"] or 0) + 5:
            return pids
        await asyncio.sleep(LOOK_S)
    raise AssertionError(machines.failure_text("two ranks don't train"))

"""A stranger scans, floods and asks to join while a gang trains: no step lost, no split."""

import asyncio
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from jupiterd.cluster.text.health_words import WELL_ANYWAY
from jupiterd.daemon.runtime.address_text import DEFAULT_PORT
from tests.support.daemons.training_runs import write_letters
from tests.support.network.asked_run import AskedRun
from tests.support.network.listening import ports_of
from tests.support.network.machines import Machine, Machines, machines_on
from tests.support.network.reigns import watched

pytestmark = pytest.mark.timeout(300)

JOIN_S = 30.0
TRAINS_S = 90.0
FIRST_STEPS = 5
END_S = 180.0
TOLD_S = 45.0
PREPARED_S = 60.0
STEPS = {"torch": 1000, "mlx": 400}
CONNECTIONS_REFUSED = "gang-knocked"


@pytest.mark.parametrize("engine", ["torch", "mlx"])
async def test_a_stranger_who_scans_floods_and_asks_to_join_costs_a_gang_nothing(
    tmp_path: Path, engine: str
) -> None:
    letters = write_letters(tmp_path)
    async with machines_on(3, tmp_path) as machines:
        (view, *_) = await machines.one_cluster(JOIN_S)
        for machine in machines.machines:
            assert machines.ctl("node", "role", machine.name, "trainer").returncode == 0
        command = ("data", "prepare", str(letters), "--wait", "--timeout", str(PREPARED_S))
        prepared = machines.ctl(*command)
        assert prepared.returncode == 0, prepared.stderr
        (elsewhere,) = machines.lab.add_hosts(1)
        newcomer = Machine(tmp_path, elsewhere)
        with troubled(machines, newcomer) as stranger, running(newcomer):
            async with watched(machines) as reigns:
                run = TroubledRun(machines, engine)
                await run.trains()
                run.name_ports(stranger)
                await run.ended()
                told = await told_by_all(machines)
        got = json.loads(stranger.communicate()[0])
        print(engine, got, *told, sep="\n")
        run.assert_nothing_lost()
        assert reigns.all_leaders() == {view["cluster"]["leader"]}, "there was a split"
        assert "gone" not in reigns.states()
        assert got["tried"]["scan"] > 60_000
        assert sum(n for what, n in got["tried"].items() if what.startswith("flood")) > 1000
        await machines.one_cluster(JOIN_S)
        members = [len(machine.state().members) for machine in machines.machines]
        assert members == [3, 3, 3], "a stranger was let in"


class TroubledRun(AskedRun):
    """One training run that is started while the stranger is at work already."""

    def __init__(self, machines: Machines, engine: str) -> None:
        super().__init__(machines)
        self._engine = engine
        options = {
            "--data": "letters", "--model": "1m", "--engine": engine, "--nodes": "all",
            "--max-steps": STEPS[engine], "--seq-len": 64, "--batch-size": 1,
            "--gradient-accumulation-steps": 1, "--seed": 7,
        }  # fmt: skip
        self._start(*(word for option in options.items() for word in option))

    async def trains(self) -> None:
        """Wait for its first steps."""
        deadline_s = time.monotonic() + TRAINS_S
        while True:
            run, _ = await self._told(self._machines.machines)
            if run.get("step", 0) >= FIRST_STEPS and len(run.get("gang", [])) == 3:
                return
            assert time.monotonic() < deadline_s, await self._failure("it doesn't train")
            await asyncio.sleep(0.1)

    def name_ports(self, stranger: subprocess.Popen[str]) -> None:
        """Tell the stranger at which ports the ranks listen; a scan finds none of torch's."""
        assert stranger.stdin is not None
        found = {
            (machine.host.address, port)
            for machine in self._machines.machines
            for pid in machine.workers()
            for port in ports_of(pid)
        }
        assert len(found) >= 3, found
        stranger.stdin.writelines(f"{host} {port}\n" for host, port in found)
        stranger.stdin.flush()

    async def ended(self) -> None:
        """Wait for its end."""
        await self._ended(END_S)

    def assert_nothing_lost(self) -> None:
        """There was one attempt, and it has done all steps."""
        run = self._recorded()
        assert len(run.attempts_opened) == 1, self._machines.failure_text("it was begun anew")
        assert {attempt.engine.partition("/")[0] for attempt in run.attempts_opened.values()} == {
            self._engine
        }


async def told_by_all(machines: Machines) -> list[str]:
    """Return what each machine's health says of it; all must say the same of who knocked."""
    async with asyncio.timeout(TOLD_S):
        while True:
            views = await machines.views()
            rows = [view["health"] for view in views if view is not None]
            codes = [{row["code"] for row in each} for each in rows]
            if len(rows) == 3 and all(
                {CONNECTIONS_REFUSED, "node-waits"} <= each for each in codes
            ):
                break
            await asyncio.sleep(0.5)
    assert CONNECTIONS_REFUSED in WELL_ANYWAY
    return [row["title"] for each in rows for row in each if row["code"] == CONNECTIONS_REFUSED]


@contextlib.contextmanager
def troubled(machines: Machines, newcomer: Machine) -> Generator[subprocess.Popen[str]]:
    """Let the stranger begin; it goes on until the context ends."""
    places = [word for m in machines.machines for word in (m.host.address, str(DEFAULT_PORT))]
    program = (sys.executable, "-m", "tests.support.network.stranger")
    process = subprocess.Popen(
        [*newcomer.host.inside.prefix, *program, *places],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield process
    except BaseException:
        process.kill()
        process.communicate()
        raise


@contextlib.contextmanager
def running(machine: Machine) -> Generator[None]:
    """Run a daemon of a stranger's, which asks to be let in."""
    machine.start()
    try:
        yield
    finally:
        machine.kill()

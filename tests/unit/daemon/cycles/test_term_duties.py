"""What a leader does with a cycle that it can't read, and who is ready to conduct one."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import PairingWindowSet
from jupiterd.daemon.app.on_ledger_change import follow_ledger
from jupiterd.daemon.cycles import term_duties
from jupiterd.daemon.runtime.clock import now_s
from tests.support.cluster.building import CYCLE, commanded, started
from tests.support.daemon.two_nodes import found, lead, serving, until


async def test_a_cycle_of_another_version_waits_with_a_reason_and_holds_up_nothing(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as one:
        await lead(one)
        assert one.leading is not None
        board = one.leading.board
        await one.leading.term.record(started())  # of its domain this version understands nothing
        await until(lambda: "can't go on with it" in str(board.to_plain(now_s())))
        assert not one.replica.state.cycles[CYCLE].has_nothing_to_do
        await one.leading.term.record(
            commanded("stopped", 1), PairingWindowSet(is_open=True, edit=1)
        )
        await until(lambda: board.to_plain(now_s()) == [])


def test_a_daemon_loads_what_conducts_only_when_it_is_told_to() -> None:
    program = (
        "import asyncio, sys, jupiterd.daemon.app.node\n"
        "from jupiterd.daemon.cycles import term_duties\n"
        "print('jupiterd.daemon.gangs.gang_supervisor' in sys.modules)\n"
        "asyncio.run(term_duties.get_ready())\n"
        "print('jupiterd.daemon.gangs.gang_supervisor' in sys.modules)\n"
    )
    told = (sys.executable, "-c", program)
    done = subprocess.run(told, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["False", "True"], done.stderr


async def test_who_may_have_to_go_on_with_a_leaders_work_is_ready_to_conduct_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_ready = asyncio.Event()

    async def get_ready() -> None:
        is_ready.set()

    monkeypatch.setattr(term_duties, "get_ready", get_ready)
    async with serving(tmp_path, "one") as one, asyncio.TaskGroup() as group:
        await found(one)
        following = group.create_task(follow_ledger(one))
        await one.replica.append(1, [started()])
        await asyncio.wait_for(is_ready.wait(), 10.0)
        following.cancel()

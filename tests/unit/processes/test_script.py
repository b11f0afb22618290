"""Real processes of scripts; each test ends them all."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from jupiterd.errors import BadRouteError, NotFoundError, PortInUseError
from jupiterd.processes.script import (
    QUEUED,
    ScriptGroup,
    bind_meeting,
    free_ports,
    rank_environment,
    script_python,
    start_script,
)
from jupiterd.processes.script_plan import RankOrder, ScriptOrder
from jupiterd.processes.scripts.events import Ended, Notice, Printed, ScriptEvent
from jupiterd.processes.supervised_child import (
    KEEPER,
    ChildProgram,
    SupervisedChild,
    start_supervised,
)
from jupiterd.protocol.frames import ConnectionsRefused

TIMEOUT_S = 20.0
SLEEP = "import time; print('up', flush=True); time.sleep(300)"


def order(folder: Path, program: str, ranks: int = 1, **more: object) -> ScriptOrder:
    argv = (sys.executable, "-c", program)
    made = tuple(RankOrder(rank, {"RANK": str(rank)}) for rank in range(ranks))
    return ScriptOrder(argv, str(folder), made, **more)


async def said(group: ScriptGroup) -> tuple[bytes, dict[int, int]]:
    printed, ended = b"", {}
    async with asyncio.timeout(TIMEOUT_S):
        async for event in group.events():
            match event:
                case Printed(_, _, data):
                    printed += data
                case Ended(rank, status):
                    ended[rank] = status
    return printed, ended


async def first_words(events: AsyncIterator[ScriptEvent]) -> bytes:
    async with asyncio.timeout(TIMEOUT_S):
        async for event in events:
            if isinstance(event, Printed):
                return event.data
    raise AssertionError("it said nothing")


async def gone(*pids: int) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while any(is_running(pid) for pid in pids):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.02)


def is_running(pid: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


async def test_each_rank_has_its_own_variables_and_its_status_is_told(tmp_path: Path):
    # One write a line: here the ranks' pieces aren't kept apart.
    program = "import os; rank = os.environ['RANK']; os.write(1, b'I am %s\\n' % rank.encode())"
    program += "; raise SystemExit(int(rank))"
    async with start_script(order(tmp_path, program, ranks=3), os.environ) as group:
        printed, ended = await said(group)
    assert sorted(printed.splitlines()) == [b"I am 0", b"I am 1", b"I am 2"]
    assert ended == {0: 0, 1: 1, 2: 2}


async def test_a_signal_is_told_as_shells_do(tmp_path: Path):
    program = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    async with start_script(order(tmp_path, program), os.environ) as group:
        assert (await said(group))[1] == {0: 128 + signal.SIGKILL}


async def test_what_a_script_leaves_behind_ends_with_it(tmp_path: Path):
    program = (
        "import subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-c', {SLEEP!r}])\n"
        "print(child.pid, flush=True)\n"
    )
    async with start_script(order(tmp_path, program), os.environ) as group:
        printed, ended = await said(group)
    assert ended == {0: 0}
    await gone(int(printed.split()[0]))


async def test_leaving_ends_a_script_that_ignores_the_gentle_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("jupiterd.processes.script.STOP_GRACE_S", 0.3)
    program = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print(os.getpid(), flush=True)\n"
        "time.sleep(300)\n"
    )
    async with start_script(order(tmp_path, program), os.environ) as group:
        pid = int(await first_words(group.events()))
        assert is_running(pid)
    await gone(pid)


async def test_many_that_wait_to_be_heard_are_ended(tmp_path: Path):
    chatter = ScriptOrder(
        ("/bin/sh", "-c", "yes err >&2 & yes out"),
        str(tmp_path),
        tuple(RankOrder(rank, {}) for rank in range(3)),
    )
    async with asyncio.timeout(TIMEOUT_S):
        async with start_script(chatter, os.environ) as group:
            group._events = asyncio.Queue(2)  # fewer than there are writers
            while not group._events.full():  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.02)
            await asyncio.sleep(0.2)  # the others queue up behind
            pids = group.pids.values()
    await gone(*pids)


async def test_a_start_that_is_given_up_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    listen = SupervisedChild.listen
    started: list[SupervisedChild] = []

    async def interrupted(kept: SupervisedChild, descriptor: int, *, is_error: bool) -> None:
        started.append(kept)
        starting.cancel()
        await listen(kept, descriptor, is_error=is_error)
        await asyncio.sleep(0)

    monkeypatch.setattr(SupervisedChild, "listen", interrupted)
    argv = (sys.executable, "-c", "import time; time.sleep(300)")
    starting = asyncio.ensure_future(
        start_supervised(ChildProgram(argv, os.environ, str(tmp_path)))
    )
    with pytest.raises(asyncio.CancelledError):
        await starting
    await gone(started[0].pid)


async def test_an_interrupt_reaches_the_script_and_lets_it_save(tmp_path: Path):
    program = (
        "import time\n"
        "try:\n"
        "    print('up', flush=True)\n"
        "    time.sleep(300)\n"
        "except KeyboardInterrupt:\n"
        "    print('saved')\n"
    )
    async with start_script(order(tmp_path, program), os.environ) as group:
        await first_words(group.events())
        group.signal(signal.SIGINT)
        printed, ended = await said(group)
    assert (printed, ended) == (b"saved\n", {0: 0})


@pytest.mark.parametrize("how", ["starter", "keeper"])
async def test_nothing_outlives_its_starter_or_its_keeper(tmp_path: Path, how: str):
    program = "import os, time; print(os.getpid(), flush=True); time.sleep(300)"
    starter = (
        "import subprocess, sys, time\n"
        f"argv = [sys.executable, '-I', '-S', {str(KEEPER)!r}, sys.executable, '-c', {program!r}]\n"
        "keeper = subprocess.Popen(argv, stdin=subprocess.PIPE, start_new_session=True)\n"
        "print(keeper.pid, flush=True)\n"
        "time.sleep(300)\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", starter, stdout=asyncio.subprocess.PIPE, cwd=tmp_path
    )
    assert process.stdout is not None
    async with asyncio.timeout(TIMEOUT_S):
        keeper = int(await process.stdout.readline())
        script = int(await process.stdout.readline())
    if how == "keeper" and sys.platform != "linux":
        process.kill()
        pytest.skip("only Linux ends a process with its parent")
    os.kill(process.pid if how == "starter" else keeper, signal.SIGKILL)
    await gone(script)
    if process.returncode is None and how == "keeper":
        process.kill()
    await process.wait()
    await gone(keeper)


async def test_a_missing_folder_or_program_is_one_line(tmp_path: Path):
    with pytest.raises(NotFoundError, match="folder"):
        async with start_script(order(tmp_path / "nowhere", SLEEP), os.environ):
            pass
    absent = ScriptOrder(("no-such-program",), str(tmp_path), (RankOrder(0, {}),))
    with pytest.raises(NotFoundError, match="no program no-such-program"):
        async with start_script(absent, os.environ):
            pass


async def test_a_taken_port_is_named(tmp_path: Path):
    with bind_meeting("127.0.0.1", 0) as other:
        port = other.getsockname()[1]
        taken = order(tmp_path, SLEEP, store_host="127.0.0.1", store_port=port)
        with pytest.raises(PortInUseError, match=str(port)):
            async with start_script(taken, os.environ):
                pass


@pytest.mark.parametrize("host", ["localhost", "", "no.such.name"])
def test_names_are_not_looked_up(host: str):
    with pytest.raises(BadRouteError, match="isn't an IP address"):
        free_ports(host, 1)


def test_free_ports_are_different_and_free():
    ports = free_ports("127.0.0.1", 20)
    assert len(set(ports)) == 20
    with socket.create_server(("127.0.0.1", ports[0])):
        pass


def test_what_the_machine_says_counts_before_a_default_and_after_the_order(tmp_path: Path):
    rank = RankOrder(3, {"A": "order"}, {"A": "default", "B": "default", "C": "default"}, "[]")
    found = rank_environment(rank, {"A": "machine", "B": "machine"}, tmp_path)
    assert (found["A"], found["B"], found["C"]) == ("order", "machine", "default")
    assert Path(found["MLX_HOSTFILE"]).read_text() == "[]"


def test_the_store_runs_under_the_python_of_the_script():
    assert script_python(["/opt/conda/bin/python3.12", "train.py"]) == "/opt/conda/bin/python3.12"
    assert script_python(["accelerate", "launch"]) == sys.executable


async def test_a_notice_waits_where_much_is_told_and_a_count_of_knocks_doesnt() -> None:
    group = ScriptGroup()
    for _ in range(QUEUED):
        group.hear(ConnectionsRefused(1, []))
    group.hear(Notice("not closed"))
    group.hear(ConnectionsRefused(2, []))
    async with asyncio.timeout(10.0):
        await asyncio.sleep(0)  # for all that was heard before
        told = [await group._events.get() for _ in range(QUEUED + 1)]
    assert told == [*[ConnectionsRefused(1, [])] * QUEUED, Notice("not closed")]
    await group.end()

"""A part of a script outlives calls and daemons, and nobody else; over the real wire."""

import asyncio
import errno
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing, closing
from pathlib import Path

import psutil
import pytest

from jupiterd.daemon.app.node import Node
from jupiterd.daemon.app.servers import relay_of
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.links.peers import Peers
from jupiterd.daemon.links.refused_connections import RefusedConnections
from jupiterd.daemon.runtime.settings import Settings
from jupiterd.daemon.scripts import relay
from jupiterd.daemon.scripts.running_scripts import RunningScripts
from jupiterd.errors import ConflictError, DiskFullError, NotFoundError
from jupiterd.ids import NodeId
from jupiterd.net.identity import Identity
from jupiterd.processes.script_messages import event_from_proto, order_from_proto, order_to_proto
from jupiterd.processes.script_plan import RankOrder, ScriptOrder
from jupiterd.processes.scripts import record, script_supervisor
from jupiterd.processes.scripts.events import Ended, Over, Printed
from jupiterd.processes.scripts.record import LAUNCHES, LaunchRecord
from jupiterd.rpc.script_pb2 import ScriptEvent, ScriptFollow, ScriptRequest
from jupiterd.store.ledger_file import LedgerFile
from tests.support.daemon.two_nodes import TIMEOUT_S, serving, unite
from tests.unit.processes.test_script import gone, is_running

ID = "abc123.0"
COUNT = (
    "import os, time\n"
    "print(os.getpid(), flush=True)\n"
    "for n in range(80):\n"
    "    print(n, flush=True)\n"
    "    time.sleep(0.02)\n"
)


def order(folder: Path, program: str = COUNT, cut_timeout_s: int = 30) -> ScriptRequest:
    made = ScriptOrder(
        (sys.executable, "-c", program),
        str(folder),
        (RankOrder(0, {}),),
        id=ID,
        cut_timeout_s=cut_timeout_s,
    )
    return ScriptRequest(order=order_to_proto(made))


def follow(offset: int) -> ScriptRequest:
    return ScriptRequest(follow=ScriptFollow(id=ID, offset=offset))


async def call(asker: Node, asked: Node, first: ScriptRequest) -> AsyncGenerator[ScriptEvent]:
    async def requests() -> AsyncGenerator[ScriptRequest]:
        first.node = asked.identity.node_id
        yield first
        await asyncio.Event().wait()  # the call stays open, and is asked for meanwhile

    async with aclosing(relay_of(asker).passed_on(requests())) as messages:
        async for message in messages:
            yield message


async def heard(messages: AsyncGenerator[ScriptEvent], lines: int) -> tuple[bytes, int]:
    """Return what was printed until so many lines were, and where to go on."""
    said, offset = b"", 0
    async with asyncio.timeout(TIMEOUT_S), aclosing(messages):
        async for message in messages:
            event = event_from_proto(message)
            offset = message.offset
            said += event.data if isinstance(event, Printed) else b""
            if said.count(b"\n") >= lines or isinstance(event, Over):
                break
    return said, offset


def launching(asker: Node) -> int:
    """Be the jupiterctl that goes on."""
    return LaunchRecord(asker.state_dir.root / LAUNCHES / ID.partition(".")[0]).hold()


async def test_what_it_prints_while_nobody_follows_is_caught_up_in_order_and_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    was_looked = asyncio.Event()

    def is_launching(root: Path, id_: str) -> bool:
        was_looked.set()
        return record.is_launching(root, id_)

    monkeypatch.setattr(relay, "is_launching", is_launching)
    async with serving(tmp_path, "one") as one:
        lock = launching(one)
        async with serving(tmp_path, "two", allow_scripts=True) as two:
            await unite(one, two)
            before, offset = await heard(call(one, two, order(tmp_path)), lines=5)
            pid = int(before.split()[0])
            await asyncio.wait_for(was_looked.wait(), TIMEOUT_S)  # whether jupiterctl is gone
            assert is_running(pid)
            after, _ = await heard(call(one, two, follow(offset)), lines=1000)
        os.close(lock)
    numbers = [int(line) for line in (before + after).split()[1:]]
    assert numbers == list(range(80))


async def test_it_ends_where_jupiterctl_is_gone_for_good(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        lock = launching(one)
        async with serving(tmp_path, "two", allow_scripts=True) as two:
            await unite(one, two)
            os.close(lock)
            said, _ = await heard(call(one, two, order(tmp_path)), lines=2)
            await gone(int(said.split()[0]))


async def test_it_outlives_its_daemon_and_the_next_one_is_asked_for_it(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        lock = launching(one)
        async with serving(tmp_path, "two", allow_scripts=True) as two:
            await unite(one, two)
            before, offset = await heard(call(one, two, order(tmp_path)), lines=3)
        pid = int(before.split()[0])
        assert is_running(pid)
        async with serving(tmp_path, "two", allow_scripts=True) as two:
            assert [part.id for part in two.running_scripts.running()] == [ID]
            part = two.running_scripts.of(one.identity.node_id, ID)
            said = b""
            async with asyncio.timeout(TIMEOUT_S):
                async for event, _ in two.running_scripts.events(part, offset):
                    part.send("asked")
                    said += event.data if isinstance(event, Printed) else b""
        assert [int(line) for line in (before + said).split()[1:]] == list(range(80))
        os.close(lock)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"allow_scripts": False}, "doesn't run scripts of others"),
        ({"allow_scripts": True}, "no member"),
    ],
)
async def test_a_daemon_that_starts_ends_what_may_run_no_more(
    tmp_path: Path, settings: dict[str, bool], reason: str
) -> None:
    async with serving(tmp_path, "one") as one:
        lock = launching(one)
        async with serving(tmp_path, "two", allow_scripts=True) as two:
            await unite(one, two)
            said, _ = await heard(call(one, two, order(tmp_path)), lines=1)
            (part,) = two.running_scripts.running()
            if settings["allow_scripts"]:  # ordered by somebody who was removed meanwhile
                description = part.folder / "part.json"
                text = description.read_text().replace(one.identity.node_id, "00")
                description.write_text(text)
        async with serving(tmp_path, "two", **settings) as two:
            two.running_scripts.later(two.running_scripts.watch())
            await gone(int(said.split()[0]))
            async with asyncio.timeout(TIMEOUT_S):
                while part.is_alive:  # noqa: ASYNC110 - nobody tells
                    await asyncio.sleep(0.02)
            assert part.over is not None
            assert reason in part.over.reason
        os.close(lock)


async def test_nobody_asks_for_it_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script_supervisor, "RECONNECT_S", 0.0)
    from jupiterd.processes.scripts.machine_share import MachineShare, ShareDescription

    part = MachineShare(tmp_path / "abc.0")
    part.make(ShareDescription("a", "attic", (), "/", (0,), 0.0))
    waits = "import time; time.sleep(300)"
    made = ScriptOrder(
        (sys.executable, "-c", waits), str(tmp_path), (RankOrder(0, {}),), cut_timeout_s=1
    )
    async with asyncio.timeout(TIMEOUT_S):
        await script_supervisor.ScriptSupervisor(part, made).keep()
    assert part.over == Over("nobody asked for it for 1 s")


async def test_a_keeper_that_was_killed_is_told_and_leaves_no_rank(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        lock = launching(one)
        async with serving(tmp_path, "two", allow_scripts=True) as two:
            await unite(one, two)
            said, offset = await heard(call(one, two, order(tmp_path)), lines=1)
            (keeping,) = (
                process.pid
                for process in psutil.process_iter(["cmdline"])
                if str(two.state_dir.root / "scripts" / ID) in (process.info["cmdline"] or ())
            )
            os.kill(keeping, signal.SIGKILL)
            await gone(int(said.split()[0]))
            with pytest.raises(NotFoundError, match="what kept the ranks on two was killed"):
                await heard(call(one, two, follow(offset)), lines=1000)
        os.close(lock)


async def test_nothing_is_left_of_a_part_whose_folder_can_not_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    identity = Identity.load_or_create(tmp_path / "key.pem")
    with closing(LedgerFile(tmp_path / "ledger.db")) as file:
        replica = Replica(identity, file)
    settings, knocks = Settings(name="two"), RefusedConnections()
    parts = RunningScripts(settings, tmp_path, replica, Peers(identity), knocks)
    made = order_from_proto(order(tmp_path).order)
    monkeypatch.setattr("jupiterd.processes.scripts.machine_share.os.mkfifo", full)
    with pytest.raises(DiskFullError):
        await parts.start(NodeId("11"), made, {})
    assert not [*(tmp_path / "scripts").iterdir()]
    monkeypatch.undo()
    monkeypatch.setattr("asyncio.create_subprocess_exec", full)
    with pytest.raises(ConflictError, match=r"no keeper can be started on two: .* No space left"):
        await parts.start(NodeId("11"), made, {})
    assert not [*(tmp_path / "scripts").iterdir()]


async def test_only_who_ordered_it_is_told_of_it(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, "one") as one,
        serving(tmp_path, "three") as three,
        serving(tmp_path, "two", allow_scripts=True) as two,
    ):
        lock = launching(one)
        await unite(one, two, three)
        await heard(call(one, two, order(tmp_path)), lines=1)
        with pytest.raises(NotFoundError, match="no such part"):
            await heard(call(three, two, follow(0)), lines=1)
        for process in two.running_scripts.running():
            process.send("end", "the test is over")
        os.close(lock)


async def test_a_script_that_can_not_start_says_why(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two", allow_scripts=True) as two:
        await unite(one, two)
        request = order(tmp_path / "nowhere")
        async with asyncio.timeout(TIMEOUT_S):
            events = [event_from_proto(m) async for m in call(one, two, request)]
        (over,) = [event for event in events if event is not None]
        assert isinstance(over, Over)
        assert over.code == NotFoundError.code
        assert not [event for event in events if isinstance(event, Ended)]

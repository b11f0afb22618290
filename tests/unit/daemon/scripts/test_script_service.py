"""Scripts on another node, over the real wire: where they may run, and that they end."""

import asyncio
import signal
import sys
from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jupiterd.cluster.facts.facts import NodeRemoved
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.app.servers import relay_of
from jupiterd.daemon.scripts.script_placement import chosen_nodes
from jupiterd.errors import (
    ConflictError,
    NotFoundError,
    PeerUnreachableError,
    RefusedError,
    UsageError,
)
from jupiterd.ids import NodeId
from jupiterd.processes.script_messages import event_from_proto, order_to_proto
from jupiterd.processes.script_plan import MLX, RankOrder, ScriptOrder
from jupiterd.processes.scripts.events import Ended, Over, Printed, ScriptEvent
from jupiterd.rpc.script_pb2 import PrepareScriptRequest, ScriptRequest
from tests.support.daemon.two_nodes import TIMEOUT_S, serving, take_for_alive, unite
from tests.unit.processes.test_script import gone

ONE, TWO, SIX = NodeId("11"), NodeId("22"), NodeId("66")
NAMES = {ONE: "one", TWO: "two", SIX: "six"}
WAIT = "import os, time; print(os.getpid(), flush=True); time.sleep(300)"


def an_order(folder: Path, program: str) -> ScriptOrder:
    return ScriptOrder(
        (sys.executable, "-c", program), str(folder), (RankOrder(0, {"COLOUR": "red"}),)
    )


async def run_on(
    asker: Node, asked: Node, order: ScriptOrder, signals: tuple[int, ...] = ()
) -> AsyncGenerator[ScriptEvent]:
    """Run an order on another node; the signals are sent once it has printed something.

    An order without an id is one of a jupiterctl from before ranks outlived their call.
    """
    has_printed = asyncio.Event()

    async def requests() -> AsyncGenerator[ScriptRequest]:
        yield ScriptRequest(node=asked.identity.node_id, order=order_to_proto(order))
        await has_printed.wait()
        for number in signals:
            yield ScriptRequest(signal=number)
        await asyncio.Event().wait()

    async with aclosing(relay_of(asker).passed_on(requests())) as events:
        async for message in events:
            if event := event_from_proto(message):
                has_printed.set()
                yield event


def asked_for(here: Path, **more: Any) -> PrepareScriptRequest:
    told = {"program": sys.executable, "folder": str(here), "host": "127.0.0.1"}
    return PrepareScriptRequest(**(told | more))


async def test_a_script_of_another_machine_is_refused_unless_the_owner_allows_it(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two") as two:
        await unite(one, two)
        with pytest.raises(RefusedError, match="two doesn't run scripts") as refused:
            async for _ in run_on(one, two, an_order(tmp_path, "print('here')")):
                pass
        assert "--allow-scripts" in refused.value.hint
        arguments = {
            "nodes": "two", "per_node": 1, "engine": "torch", "program": sys.executable,
            "folder": str(tmp_path), "script": "",
        }  # fmt: skip
        take_for_alive(one, two)
        take_for_alive(two, one)
        with pytest.raises(RefusedError, match="two doesn't run scripts"):
            await one.commands.execute("script.prepare", arguments)


async def test_where_it_is_allowed_it_runs_with_what_it_was_given_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_DAEMON", "1")
    program = "import os; print(os.environ['COLOUR'], 'SECRET_OF_THE_DAEMON' in os.environ)"
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two", allow_scripts=True) as two:
        await unite(one, two)
        async with asyncio.timeout(TIMEOUT_S):
            said = [event async for event in run_on(one, two, an_order(tmp_path, program))]
        assert said == [Printed(0, is_error=False, data=b"red False\n"), Ended(0, 0), Over()]


async def test_a_signal_reaches_it_and_other_numbers_mean_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two", allow_scripts=True) as two:
        await unite(one, two)
        signals = (signal.SIGSTOP, signal.SIGKILL)
        async with asyncio.timeout(TIMEOUT_S):
            said = [event async for event in run_on(one, two, an_order(tmp_path, WAIT), signals)]
        assert said[-2:] == [Ended(0, 128 + signal.SIGKILL), Over()]


async def test_one_without_an_id_ends_with_the_call(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two", allow_scripts=True) as two:
        await unite(one, two)
        async with asyncio.timeout(TIMEOUT_S):
            async with aclosing(run_on(one, two, an_order(tmp_path, WAIT))) as events:
                first = await anext(events)
            assert isinstance(first, Printed)
            await gone(int(first.data))


@pytest.mark.parametrize("who", ["the one that started it", "the one that runs it"])
async def test_it_ends_where_a_machine_is_removed(tmp_path: Path, who: str) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two", allow_scripts=True) as two:
        await unite(one, two)
        gone_node = (one if who == "the one that started it" else two).identity.node_id
        removed = NodeRemoved(gone_node, two.replica.state.roster.admissions_of(gone_node), {})
        two.running_scripts.later(two.running_scripts.watch())
        order = replace(an_order(tmp_path, WAIT), id="abc.0")
        async with asyncio.timeout(TIMEOUT_S):
            async with aclosing(run_on(one, two, order)) as events:
                first = await anext(events)
                await two.replica.append(2, [removed])
                assert isinstance(first, Printed)
                await gone(int(first.data))


async def test_those_whose_order_is_still_to_come_count_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupiterd.daemon.scripts.script_service.MAX_CALLS", 1)
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two", allow_scripts=True) as two:
        await unite(one, two)

        async def nothing_yet() -> AsyncGenerator[ScriptRequest]:
            await asyncio.Event().wait()
            yield ScriptRequest()

        stub = one.peers.require(two.identity.node_id).channels.scripts
        calls = [stub.Run(nothing_yet()) for _ in range(2)]

        async def read(call: AsyncIterable[object]) -> None:
            async for _ in call:
                pass

        reading = [asyncio.ensure_future(read(call)) for call in calls]
        done, _ = await asyncio.wait(
            reading, timeout=TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED
        )
        for call in calls:
            call.cancel()
        await asyncio.gather(*reading, return_exceptions=True)
        assert ["by too many" in str(task.exception()) for task in done] == [True]


async def test_a_machine_says_what_it_can_do_for_a_launch(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("pass")
    script = str(tmp_path / "train.py")
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two", allow_scripts=True) as two:
        await unite(one, two)
        stub = one.peers.require(two.identity.node_id).channels.scripts
        reply = await stub.Prepare(
            asked_for(tmp_path, engine=MLX, per_node=3, script=script), timeout=TIMEOUT_S
        )
        assert (reply.processes, len(set(reply.ports)), len(reply.script_hash)) == (3, 4, 32)
        assert reply.cores >= 1


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ({"folder": "/nowhere/at/all"}, "script missing on two: there is no folder"),
        ({"script": "/nowhere/train.py"}, "script missing on two: there is no /nowhere/train.py"),
        ({"program": "no-such-program"}, "script missing on two: there is no program"),
    ],
)
async def test_what_is_missing_is_named_with_the_machine(
    tmp_path: Path, missing: dict[str, str], words: str
) -> None:
    async with serving(tmp_path, "two", allow_scripts=True) as two:
        with pytest.raises(NotFoundError, match=words):
            await two.readiness.prepared(asked_for(tmp_path, **missing))


async def test_only_so_many_run_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jupiterd.daemon.scripts.running_scripts.MAX_RUNNING", 0)
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two", allow_scripts=True) as two:
        await unite(one, two)
        with pytest.raises(ConflictError, match="scripts already"):
            async for _ in run_on(one, two, an_order(tmp_path, WAIT)):
                pass


def test_this_machine_comes_first_where_it_is_one_of_them() -> None:
    everybody = frozenset(NAMES)
    assert chosen_nodes("all", NAMES, everybody, TWO) == [TWO, ONE, SIX]  # the others by name
    assert chosen_nodes("2", NAMES, everybody, SIX) == [SIX, ONE]
    assert chosen_nodes("six,two,six", NAMES, everybody, TWO) == [TWO, SIX]
    assert chosen_nodes("six", NAMES, everybody, TWO) == [SIX]


def test_machines_that_are_not_there_are_refused() -> None:
    alive = frozenset({ONE, TWO})
    with pytest.raises(NotFoundError, match="3 machines were asked for and 2 are alive"):
        chosen_nodes("3", NAMES, alive, ONE)
    with pytest.raises(PeerUnreachableError, match="six isn't alive"):
        chosen_nodes("six", NAMES, alive, ONE)
    with pytest.raises(NotFoundError, match="no node is called seven"):
        chosen_nodes("seven", NAMES, alive, ONE)
    with pytest.raises(NotFoundError, match="no node is called ²"):
        chosen_nodes("²", NAMES, alive, ONE)
    with pytest.raises(UsageError):
        chosen_nodes(",", NAMES, alive, ONE)

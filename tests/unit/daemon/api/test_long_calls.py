"""Calls that may last: their connection isn't closed under them when another is used."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from jupiterd.daemon.app.node import Node
from jupiterd.daemon.executor.dispatcher import Dispatcher
from jupiterd.daemon.membership.heartbeat_loop import HeartbeatLoop
from jupiterd.daemon.runtime.work_events import SaveRequest
from jupiterd.ids import NodeId
from jupiterd.net import channels
from jupiterd.protocol.commands.check_commands import CheckLinks
from tests.support.daemon.two_nodes import TIMEOUT_S, serving, unite

SHORT_S = 0.2


@dataclass(frozen=True)
class Elected:
    """An election that has come to its end."""

    leader: NodeId


Call = Callable[[Node, NodeId], Awaitable[object]]


def end_attempt(node: Node, there: NodeId) -> Awaitable[object]:
    dispatcher = Dispatcher(node.identity.node_id, node.order_executor, node.peers)
    return dispatcher.end(there, 1, 3, SaveRequest(0, TIMEOUT_S))


def check_sync(node: Node, _there: NodeId) -> Awaitable[object]:
    return node.commands.execute("check.sync", {})


def measure(node: Node, there: NodeId) -> Awaitable[object]:
    return node.link_measurement.check(CheckLinks(node=node.identity.node_id, asker=there))


@pytest.mark.parametrize("call", [end_attempt, check_sync, measure])
async def test_a_call_that_may_last_comes_to_its_end(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channels, "BRIEF_CALLS_S", 0.0)
    has_come, may_end = asyncio.Event(), asyncio.Event()

    async def last(result: object) -> object:
        has_come.set()
        await may_end.wait()
        return result

    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        there = other.identity.node_id
        monkeypatch.setattr(other.order_executor, "end", lambda *_: last(None))
        monkeypatch.setattr(other.commands, "execute_here", lambda *_: last({}))
        monkeypatch.setattr(other.link_measurement, "paths_to", lambda *_: last([]))
        leads = property(lambda _: Elected(there))
        monkeypatch.setattr(HeartbeatLoop, "election", leads)
        calling = asyncio.ensure_future(call(one, there))
        await asyncio.wait_for(has_come.wait(), TIMEOUT_S)
        retiring = asyncio.ensure_future(one.peers.require(there).channels.retire())
        done, _ = await asyncio.wait([calling, retiring], timeout=SHORT_S)
        may_end.set()
        await asyncio.wait_for(asyncio.gather(calling, retiring), TIMEOUT_S)
        assert not done

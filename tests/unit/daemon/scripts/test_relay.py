"""Between jupiterctl and another machine's daemon: what is asked there while a call is open."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, nullcontext
from types import SimpleNamespace
from typing import cast

import pytest

from jupiterd.daemon.app.node import Node
from jupiterd.daemon.scripts import relay
from jupiterd.rpc.script_pb2 import ScriptEnded, ScriptEvent, ScriptOrder, ScriptRequest

TIMEOUT_S = 5.0


class Call:
    """A call to a peer that ends once so many requests have come."""

    def __init__(self, requests: AsyncIterator[ScriptRequest], heard: list[str], most: int) -> None:
        self._requests, self._heard, self._most = requests, heard, most

    async def __aiter__(self) -> AsyncGenerator[ScriptEvent]:
        async for request in self._requests:
            self._heard.append(str(request.WhichOneof("request")))
            if len(self._heard) == self._most:
                yield ScriptEvent(ended=ScriptEnded(rank=0, status=0))
                return

    def cancel(self) -> None:
        """Nothing runs any more."""


async def test_ranks_are_asked_for_while_jupiterctl_is_stopped_or_its_terminal_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(relay, "ASK_S", 0.01, raising=False)
    heard: list[str] = []
    scripts = SimpleNamespace(Run=lambda requests: Call(requests, heard, 4))
    channels = SimpleNamespace(in_use=lambda: nullcontext(SimpleNamespace(scripts=scripts)))
    peer = SimpleNamespace(channels=channels, name="cellar")
    peers = SimpleNamespace(require=lambda _: peer)
    node = cast("Node", SimpleNamespace(peers=peers, is_closing=True))

    async def requests() -> AsyncGenerator[ScriptRequest]:
        yield ScriptRequest(node="22", order=ScriptOrder(id="abc.0"))
        yield ScriptRequest(signal=2)
        await asyncio.Event().wait()  # as one that is stopped by Ctrl-Z

    async with asyncio.timeout(TIMEOUT_S), aclosing(relay.passed_on(node, requests())) as events:
        assert [event.ended.rank async for event in events] == [0]
    assert heard == ["order", "signal", "asked", "asked"]

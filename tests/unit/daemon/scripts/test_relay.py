"""Between jupiterctl and another machine's daemon: what is asked there while a call is open."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from jupiterd.daemon.scripts import relay
from jupiterd.ids import NodeId
from jupiterd.rpc.script_pb2 import ScriptEnded, ScriptEvent, ScriptOrder, ScriptRequest

TIMEOUT_S = 5.0


class FewRequests:
    """Ranks that end once so many requests have come."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.heard = list[str]()

    async def followed(
        self, target: NodeId, first: ScriptRequest, more: AsyncIterator[ScriptRequest]
    ) -> AsyncGenerator[ScriptEvent]:
        self.heard += [target, str(first.WhichOneof("request"))]
        async for request in more:
            self.heard.append(str(request.WhichOneof("request")))
            if len(self.heard) > self._most:
                yield ScriptEvent(ended=ScriptEnded(rank=0, status=0))
                return


async def test_ranks_are_asked_for_while_jupiterctl_is_stopped_or_its_terminal_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "ASK_S", 0.01, raising=False)
    ranks = FewRequests(4)
    passes = relay.Relay(ranks, tmp_path, pytest.fail, lambda: True)

    async def requests() -> AsyncGenerator[ScriptRequest]:
        yield ScriptRequest(node="22", order=ScriptOrder(id="abc.0"))
        yield ScriptRequest(signal=2)
        await asyncio.Event().wait()  # as one that is stopped by Ctrl-Z

    async with asyncio.timeout(TIMEOUT_S), aclosing(passes.passed_on(requests())) as events:
        assert [event.ended.rank async for event in events] == [0]
    assert ranks.heard == ["22", "order", "signal", "asked", "asked"]

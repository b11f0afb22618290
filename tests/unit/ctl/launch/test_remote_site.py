"""Ranks on another machine, followed across what breaks on the way."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Callable
from contextlib import nullcontext
from typing import Any, cast

import pytest

from jupiterd.client.channel import ControlChannel
from jupiterd.ctl.launch import remote_site
from jupiterd.ctl.launch.launch_request import LaunchRequest
from jupiterd.ctl.launch.places import _place
from jupiterd.ctl.launch.remote_site import RemoteSite
from jupiterd.errors import PeerUnreachableError
from jupiterd.processes.script_plan import MachinePart, RankOrder, ScriptOrder
from jupiterd.processes.scripts.events import Ended
from jupiterd.rpc import script_pb2

pytestmark = pytest.mark.looptime  # nothing here lasts but by the clock of the loop

TIMEOUT_S = 5.0
PLACE: dict[str, Any] = {
    "node": "22", "name": "cellar", "host": "192.0.2.1", "interface": "eth0", "processes": 1,
    "cores": 1, "ports": [1],
}  # fmt: skip


class SilentCall:
    """One of a version without beats: nothing is heard until a rank ends."""

    async def __aiter__(self) -> AsyncGenerator[script_pb2.ScriptEvent]:
        await asyncio.sleep(0.2)
        yield script_pb2.ScriptEvent(ended=script_pb2.ScriptEnded(rank=0, status=0))

    def cancel(self) -> None:
        """Nobody counts on it."""


class Channel:
    def __init__(self) -> None:
        self.calls = 0
        self.second: Callable[[], None] = lambda: None

    def open_script(self, _requests: AsyncIterable[script_pb2.ScriptRequest]) -> SilentCall:
        self.calls += 1
        if self.calls > 1:
            self.second()
        return SilentCall()

    def translated(self) -> nullcontext[None]:
        return nullcontext()


def a_site(channel: Channel, **more: Any) -> RemoteSite:
    class Here:
        master_port = 0

    place: MachinePart = _place({**PLACE, **more}, cast("LaunchRequest", Here()))
    order = ScriptOrder(("python",), "/", (RankOrder(0, {}),), id="abc.0", cut_timeout_s=60)
    return RemoteSite(cast("ControlChannel", channel), place, order, lambda _: None)


async def test_an_older_version_that_says_nothing_for_long_is_ordered_nothing_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remote_site, "SILENCE_S", 0.05)
    monkeypatch.setattr(remote_site, "RETRY_S", 0.01)
    channel = Channel()
    async with asyncio.timeout(TIMEOUT_S):
        assert [event async for event in a_site(channel).events()] == [Ended(0, 0)]
    assert channel.calls == 1


async def test_an_older_version_is_waited_for_no_longer_than_it_is_given_up() -> None:
    site = a_site(Channel())
    asyncio.get_running_loop().call_later(0.02, site.give_up)
    with pytest.raises(PeerUnreachableError, match="cellar says nothing"):
        async with asyncio.timeout(TIMEOUT_S):
            _ = [event async for event in site.events()]


async def test_one_that_beats_is_called_again_where_it_falls_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remote_site, "SILENCE_S", 0.02)
    monkeypatch.setattr(remote_site, "RETRY_S", 0.01)
    channel = Channel()
    site = a_site(channel, keeps_parts=True)
    channel.second = site.give_up
    with pytest.raises(PeerUnreachableError):
        async with asyncio.timeout(TIMEOUT_S):
            _ = [event async for event in site.events()]
    assert channel.calls == 2

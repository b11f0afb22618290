"""Relays between jupiterctl and the daemon of another machine: requests there, events back.

Owns one call, asking for the ranks over there for as long as it is open, and ending them where
jupiterctl is gone for good. Doesn't know whether a call that broke off is made again: that is
jupiterctl's.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import aclosing
from pathlib import Path
from typing import Final, Protocol

import grpc.aio

from jupiterd.daemon.links.peers import Peers
from jupiterd.errors import JupiterError, MalformedError
from jupiterd.ids import NodeId
from jupiterd.processes.scripts.record import is_launching
from jupiterd.protocol.call_errors import from_rpc
from jupiterd.rpc import script_pb2

GONE_AFTER_S: Final = 0.5
END_TIMEOUT_S: Final = 10.0

ASK_S: Final = 2.0
"""How often a keep-alive is sent while jupiterctl sends nothing and its call is open."""


class Ranks(Protocol):
    """Ranks on other machines; `PeerRanks` is it in a daemon."""

    def followed(
        self,
        target: NodeId,
        first: script_pb2.ScriptRequest,
        more: AsyncIterator[script_pb2.ScriptRequest],
    ) -> AsyncGenerator[script_pb2.ScriptEvent]:
        """Ask a machine, by `first` and by what comes after it; raises JupiterError."""
        ...


class PeerRanks:
    """Ranks on the machines of linked members."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers

    async def followed(
        self,
        target: NodeId,
        first: script_pb2.ScriptRequest,
        more: AsyncIterator[script_pb2.ScriptRequest],
    ) -> AsyncGenerator[script_pb2.ScriptEvent]:
        """Ask its daemon, by `first` and by what comes after it; raises JupiterError."""
        peer = self._peers.require(target)

        async def all_requests() -> AsyncGenerator[script_pb2.ScriptRequest]:
            yield first
            async for request in more:
                yield request

        with peer.channels.in_use() as channels:
            call = channels.scripts.Run(all_requests())
            try:
                async for event in call:
                    yield event
            except grpc.aio.AioRpcError as error:
                raise from_rpc(error, peer.name) from error
            finally:
                call.cancel()


class Relay:
    """Passes on what jupiterctl on this machine asks of others."""

    def __init__(
        self,
        ranks: Ranks,
        root: Path,
        later: Callable[[Coroutine[object, object, None]], None],
        is_closing: Callable[[], bool],
    ) -> None:
        """Take whom it may ask, and what it needs to end the ranks of a jupiterctl that is gone.

        Args:
            ranks: those of other machines.
            root: the state folder, where jupiterctl holds a lock while it launches.
            later: lets something be done that nobody waits for.
            is_closing: says whether this daemon is stopping.
        """
        self._ranks, self._root = ranks, root
        self._later, self._is_closing = later, is_closing

    async def passed_on(
        self, requests: AsyncIterator[script_pb2.ScriptRequest]
    ) -> AsyncGenerator[script_pb2.ScriptEvent]:
        """Follow ranks on the machine that the first request names.

        Raises:
            JupiterError: it can't be reached, or refuses.
        """
        try:
            first = await anext(requests)
        except StopAsyncIteration as error:
            raise MalformedError("a launch came without its order") from error
        target = NodeId(first.node)
        first.node = ""
        id_ = first.follow.id if first.WhichOneof("request") == "follow" else first.order.id
        is_over = False
        try:
            async with aclosing(
                self._ranks.followed(target, first, _keepalives(requests))
            ) as events:
                async for event in events:
                    yield event
                    is_over = is_over or event.WhichOneof("event") == "over"
        finally:
            if id_ and not is_over and not self._is_closing():
                self._later(self._end_if_gone(target, id_))

    async def _end_if_gone(self, target: NodeId, id_: str) -> None:
        """End a part whose jupiterctl was killed; without an answer its own time ends it."""
        await asyncio.sleep(GONE_AFTER_S)  # the system takes its lock a moment after its connection
        if is_launching(self._root, id_):
            return  # it will call again
        end = script_pb2.ScriptRequest(end=script_pb2.ScriptEnd())
        follow = script_pb2.ScriptRequest(follow=script_pb2.ScriptFollow(id=id_))

        async def requests() -> AsyncGenerator[script_pb2.ScriptRequest]:
            yield end
            await asyncio.Event().wait()

        with contextlib.suppress(JupiterError, TimeoutError):
            async with asyncio.timeout(END_TIMEOUT_S):
                async with aclosing(self._ranks.followed(target, follow, requests())) as events:
                    async for _ in events:
                        pass


async def _keepalives(
    requests: AsyncIterator[script_pb2.ScriptRequest],
) -> AsyncGenerator[script_pb2.ScriptRequest]:
    """Pass requests on, and ask for the ranks meanwhile.

    jupiterctl can't for as long as its terminal takes nothing (`| less`), or it is stopped itself.
    """
    while True:
        coming = asyncio.ensure_future(anext(requests))
        try:
            while not (await asyncio.wait((coming,), timeout=ASK_S))[0]:
                yield script_pb2.ScriptRequest(asked=script_pb2.ScriptAsked())
        finally:
            coming.cancel()
        try:
            request = coming.result()
        except StopAsyncIteration:
            return
        yield request

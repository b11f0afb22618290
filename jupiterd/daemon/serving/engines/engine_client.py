"""Requests to one engine over HTTP on the loopback.

Owns the connections: an answer's is closed as soon as nobody wants the rest of it, by which engines
notice that they may stop. Doesn't know what an engine is asked, nor its process. Imports aiohttp:
import it only where a model is asked for.
"""

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import aiohttp

from jupiterd.cluster.serving.engine_command import HOST
from jupiterd.errors import EngineLostError

CONNECT_S: Final = 5.0
SILENCE_S: Final = 300.0
"""An engine that says nothing for so long in the midst of an answer is given up."""

READY_LOOK_S: Final = 2.0
_DONE: Final = b"[DONE]"
_TAIL_BYTES: Final = 32
_AT_ONCE: Final = struct.pack("ii", 1, 0)
"""What is still to be sent is thrown away, and the other side hears of it."""

_LOST = (aiohttp.ClientError, ConnectionError, asyncio.IncompleteReadError)


@dataclass(frozen=True)
class EngineReply:
    """A reply that has begun."""

    status: int
    content_type: str
    chunks: AsyncIterator[bytes]


class EngineClient:
    """The connections to one engine."""

    def __init__(self, port: int, key: str = "") -> None:
        """Take where the engine listens, and the key that it wants; empty: none."""
        self._url = f"http://{HOST}:{port}"
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=SILENCE_S)
        # A connection for each answer: an engine may just be closing one that is kept.
        connector = aiohttp.TCPConnector(limit=0, force_close=True)
        self.headers: Mapping[str, str] = {"Authorization": f"Bearer {key}"} if key else {}
        """Of each request."""
        self._session = aiohttp.ClientSession(
            timeout=timeout, connector=connector, trust_env=False, headers=self.headers
        )
        self._replies: set[aiohttp.ClientResponse] = set()

    @property
    def url(self) -> str:
        """Return where the engine answers."""
        return self._url

    async def is_healthy(self) -> bool:
        """Say whether it is an engine that answers."""
        timeout = aiohttp.ClientTimeout(total=READY_LOOK_S)
        try:
            async with self._session.get(f"{self._url}/health", timeout=timeout) as reply:
                return reply.status == 200
        except (*_LOST, TimeoutError, ValueError):
            return False

    @asynccontextmanager
    async def asked(self, path: str, body: Mapping[str, Any]) -> AsyncGenerator[EngineReply]:
        """Send a request; leaving the context closes its connection.

        Raises:
            EngineLostError: the engine is gone, or breaks its answer off.
        """
        try:
            reply = await self._session.post(f"{self._url}{path}", json=dict(body))
        except (*_LOST, TimeoutError) as error:
            raise EngineLostError(_words(error)) from error
        self._replies.add(reply)
        try:
            yield EngineReply(reply.status, reply.content_type, _chunks(reply))
        finally:
            self._replies.discard(reply)
            _break_off(reply)

    async def close(self) -> None:
        """Close all connections; whoever reads an answer hears that it is lost."""
        for reply in self._replies:  # aiohttp lets them wait for ever
            reply.content.set_exception(aiohttp.ClientConnectionError())
        await self._session.close()


async def _chunks(reply: aiohttp.ClientResponse) -> AsyncGenerator[bytes]:
    tail = b""
    try:
        async for chunk in reply.content.iter_any():
            tail = (tail + chunk)[-_TAIL_BYTES:]
            yield chunk
    except (*_LOST, TimeoutError) as error:
        raise EngineLostError(_words(error)) from error
    if _may_be_cut(reply) and _DONE not in tail:
        raise EngineLostError("it broke its answer off")


def _break_off(reply: aiohttp.ClientResponse) -> None:
    """Close an answer's connection; reset it where more was to come.

    mlx-lm's server notices nothing but a write that fails, and the first one after a usual end
    doesn't: it would write another token or two.
    """
    connection = reply.connection
    if connection is not None and connection.transport is not None:
        ours = connection.transport.get_extra_info("socket")
        with contextlib.suppress(OSError):  # it is closed already
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
    reply.close()


def _may_be_cut(reply: aiohttp.ClientResponse) -> bool:
    """Say whether a killed engine's stream ends like a whole one: nothing tells its length."""
    is_framed = "Transfer-Encoding" in reply.headers or "Content-Length" in reply.headers
    return reply.content_type == "text/event-stream" and not is_framed


def _words(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return f"it said nothing for {SILENCE_S:.0f} s"
    return "its connection broke"

"""How much a path carries: bytes sent over it for a second at most, and counted.

Owns both ends of a measurement and its bounds. A node takes part in one at a time, or two would
measure each other. Doesn't know which paths there are, or what follows from the figures.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from typing import Final

from jupiterd.daemon.runtime.clock import now_s
from jupiterd.errors import ConflictError, MalformedError, TooLargeError
from jupiterd.rpc import peer_pb2
from jupiterd.rpc.peer_pb2_grpc import PeerStub

MAX_BYTES: Final = 64 << 20
SENDING_S: Final = 1.0
CALL_S: Final = 5.0
"""What was sent within a second arrives within this, over all but the slowest networks."""

LEAST_PIECE_BYTES: Final = 64 << 10
MAX_PIECE_BYTES: Final = 1 << 20
"""So large that all of them are far fewer messages than a member may send; see `call_guard`."""


class BandwidthProbe:
    """One node's part in measurements."""

    def __init__(self) -> None:
        self._until_s = float("-inf")

    @contextlib.contextmanager
    def turn(self, longest_s: float) -> Generator[None]:
        """Take part in one measurement; the turn ends by itself after so long.

        Raises:
            ConflictError: another one runs.
        """
        if now_s() < self._until_s:
            raise ConflictError("a measurement runs already", "try again in some seconds")
        until_s = self._until_s = now_s() + longest_s
        try:
            yield
        finally:
            if self._until_s == until_s:
                self._until_s = float("-inf")

    async def take(self, pieces: AsyncIterator[peer_pb2.MeasuredBytes]) -> int:
        """Count what another node sends.

        Raises:
            ConflictError: another measurement runs.
            TooLargeError: it doesn't end.
            MalformedError: it doesn't come.
        """
        size_bytes = 0
        with self.turn(CALL_S):
            try:
                async with asyncio.timeout(CALL_S):
                    async for piece in pieces:
                        size_bytes += len(piece.data)
                        if size_bytes > MAX_BYTES:
                            raise TooLargeError("that is more than a measurement takes")
            except TimeoutError as error:
                raise MalformedError("a measurement didn't come to its end in time") from error
        return size_bytes

    async def give(self) -> AsyncGenerator[peer_pb2.MeasuredBytes]:
        """Send what another node counts; raises ConflictError where another measurement runs."""
        with self.turn(CALL_S):
            for piece in _pieces():
                yield piece


async def bits_per_s_out(peer: PeerStub) -> float:
    """Return how much goes to a peer; raises AioRpcError."""
    began_s = now_s()
    taken = await peer.TakeBytes(_pieces(), timeout=CALL_S)
    return _rate(min(taken.size_bytes, MAX_BYTES), now_s() - began_s)


async def bits_per_s_in(peer: PeerStub) -> float:
    """Return how much comes from a peer; raises AioRpcError.

    The time before the first piece isn't the network's alone: the connection is made in it.
    """
    size_bytes, began_s = 0, None
    async for piece in peer.GiveBytes(peer_pb2.GiveBytesRequest(), timeout=CALL_S):
        if began_s is None:
            began_s = now_s()
            continue
        size_bytes += len(piece.data)
        if size_bytes > MAX_BYTES:
            break
    return _rate(size_bytes, 0.0 if began_s is None else now_s() - began_s)


def _pieces() -> Iterator[peer_pb2.MeasuredBytes]:
    """Yield as much as goes within a second.

    The pieces grow, so that a slow network isn't held up by a large one. They are zeros: TLS makes
    them as random as anything.
    """
    sent_bytes, began_s = 0, now_s()
    while sent_bytes < MAX_BYTES and now_s() - began_s < SENDING_S:
        size_bytes = min(max(sent_bytes, LEAST_PIECE_BYTES), MAX_PIECE_BYTES)
        size_bytes = min(size_bytes, MAX_BYTES - sent_bytes)
        yield peer_pb2.MeasuredBytes(data=bytes(size_bytes))
        sent_bytes += size_bytes


def _rate(size_bytes: int, took_s: float) -> float:
    return size_bytes * 8 / took_s if took_s > 0.0 else 0.0

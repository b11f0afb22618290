"""Heartbeats on the wire: what one says, and the stream on which they go to a peer.

Owns the form of the message and one stream for each peer. Doesn't know when to beat, or what
follows from a beat (`heartbeat_loop`).

One stream carries both nodes' heartbeats: each is answered before the next is sent. So nothing
piles up behind a slow link, and only the latest state travels. What seldom changes is sent at the
beginning of a stream, and again when it has changed; so is telemetry, which changes every other
second.
"""

import asyncio
import math
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import grpc.aio
from blake3 import blake3

from jupiterd.cluster.membership.presence import Beat
from jupiterd.cluster.values.clock_offsets import ClockOffset
from jupiterd.daemon.runtime.clock import now_s, wall_s
from jupiterd.errors import TimedOutError
from jupiterd.ids import NodeId
from jupiterd.rpc import peer_pb2
from jupiterd.rpc.peer_pb2_grpc import PeerStub

BEAT_TIMEOUT_S: Final = 2.0
ROUND_TRIPS: Final = 4
"""Number of latest answers; the quickest of them gives the round trip."""
MAX_AGE_MS: Final = 2**32 - 1

_NO_ANSWER: Final = (TimeoutError, asyncio.InvalidStateError)

_Call = grpc.aio.StreamStreamCall[peer_pb2.Heartbeat, peer_pb2.Heartbeat]


@dataclass(frozen=True)
class Description:
    """What a daemon says of itself in its heartbeats, besides membership and election."""

    about: peer_pb2.About = field(default_factory=peer_pb2.About)
    telemetry: bytes = b""
    runs_gang: bool = False


@lru_cache(4096)
def mark(node: NodeId) -> int:
    """Return 64 bits that stand for a node in the ages of a heartbeat."""
    return int.from_bytes(blake3(node.encode()).digest(length=8))


def to_message(beat: Beat, cluster: str, head: str) -> peer_pb2.Heartbeat:
    """Return the message of a beat, without what the daemon says of itself."""
    return peer_pb2.Heartbeat(
        cluster=cluster,
        term=beat.term,
        leader=beat.leader or "",
        head=head,
        stability=beat.stability,
        members_alive=beat.members_alive,
        runs_gang=beat.runs_gang,
        ages_ms={mark(n): min(int(age_s * 1000), MAX_AGE_MS) for n, age_s in beat.ages_s.items()},
        sent_s=beat.sent_s,
        echo_s=beat.echo_s,
        wall_s=wall_s(),
    )


def from_message(node: NodeId, message: peer_pb2.Heartbeat, members: Iterable[NodeId]) -> Beat:
    """Return what a node said; ages of nodes that are no members here are left out."""
    ages_ms = message.ages_ms
    return Beat(
        node=node,
        term=message.term,
        leader=NodeId(message.leader) if message.leader else None,
        stability=message.stability,
        members_alive=message.members_alive,
        runs_gang=message.runs_gang,
        ages_s={
            member: ages_ms[mark(member)] / 1000 for member in members if mark(member) in ages_ms
        },
        sent_s=message.sent_s,
        echo_s=message.echo_s if message.HasField("echo_s") else None,
    )


@dataclass(frozen=True)
class SentParts:
    """What a node has said of itself on one stream: it isn't said again until it has changed."""

    about: peer_pb2.About | None = None
    telemetry: bytes = b""

    def shorten(self, beat: peer_pb2.Heartbeat, about: peer_pb2.About) -> "SentParts":
        """Put into a heartbeat only what is new; return all that the receiver knows after it.

        No telemetry means that the last one holds; every version reads it so.
        """
        sent = SentParts(about, beat.telemetry)
        if about is not self.about:
            beat.about.CopyFrom(about)
        if beat.telemetry == self.telemetry:
            beat.ClearField("telemetry")
        return sent


class BeatStream:
    """The stream to one peer over one link; opened when it is first used, and again after a break.

    `on_broken` is called when one that has carried an answer ends: the peer may be dead.
    """

    def __init__(self, stub: Callable[[], PeerStub]) -> None:
        self._stub = stub
        self._call: _Call | None = None
        self._sent = SentParts()
        self._is_busy = False
        self._round_trips_s: deque[float] = deque(maxlen=ROUND_TRIPS)
        self.sent_s = -math.inf
        """When the last heartbeat was sent."""
        self.clock = ClockOffset()
        """How far the peer's time of day is ahead of ours."""
        self.on_broken: Callable[[], None] = lambda: None

    @property
    def is_busy(self) -> bool:
        """Say whether a heartbeat waits for its answer."""
        return self._is_busy

    @property
    def rtt_s(self) -> float | None:
        """Return how long an answer took, the least of the latest: what more others took was work.

        None as long as none has come over this link.
        """
        return min(self._round_trips_s, default=None)

    def begin(self) -> bool:
        """Say whether to send a heartbeat now; the next one waits until that is answered."""
        is_free, self._is_busy = not self._is_busy, True
        return is_free

    def end(self) -> None:
        """Take note that nobody waits for an answer any more."""
        self._is_busy = False

    async def ask(self, beat: peer_pb2.Heartbeat, about: peer_pb2.About) -> peer_pb2.Heartbeat:
        """Send a heartbeat and return the peer's.

        Raises:
            AioRpcError: the peer can't be reached, or refuses.
            TimedOutError: it didn't answer in time, or has ended the stream.
        """
        self.sent_s = now_s()
        try:
            async with asyncio.timeout(BEAT_TIMEOUT_S):
                return await self._ask(beat, about)
        except BaseException as error:
            self.close()
            if isinstance(error, _NO_ANSWER):
                raise TimedOutError("a heartbeat wasn't answered") from error
            raise

    async def _ask(self, beat: peer_pb2.Heartbeat, about: peer_pb2.About) -> peer_pb2.Heartbeat:
        is_new = self._call is None
        call = self._call = self._call or self._stub().Beat()
        sent = self._sent.shorten(beat, about)
        began_s, began_wall_s = now_s(), wall_s()
        await call.write(beat)
        reply = await call.read()
        if not isinstance(reply, peer_pb2.Heartbeat):
            raise TimedOutError("the stream of heartbeats was ended")
        self._sent = sent
        if is_new:  # its answer came after a handshake
            call.add_done_callback(self._note_end)
        else:
            round_trip_s = now_s() - began_s
            self._round_trips_s.append(round_trip_s)
            self.clock.note(began_wall_s, reply.wall_s, round_trip_s)
        return reply

    def close(self) -> None:
        """End the stream; the next heartbeat opens another."""
        call, self._call, self._sent = self._call, None, SentParts()
        self._round_trips_s.clear()
        self.clock.clear()
        if call is not None:
            call.cancel()

    def _note_end(self, call: _Call) -> None:
        if call is self._call:
            self.close()
            self.on_broken()

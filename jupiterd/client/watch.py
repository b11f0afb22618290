"""The daemon's watch stream, made resilient: it detects silence and reconnects by itself.

Owns the states of the link, the back-off, and how a delta changes a document.
Doesn't know what the documents say, or who shows them.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from jupiterd.client.channel import ControlChannel, Document, WatchCall, decoded
from jupiterd.errors import DaemonUnreachableError, JupiterError, PeerUnreachableError
from jupiterd.rpc import control_pb2

STALE_AFTER_S = 3.0
"""Seconds, three heartbeats: a daemon that sends nothing for so long is stuck or gone.

After twice as long the stream is closed and opened again.
"""

FIRST_RETRY_S = 0.2
LAST_RETRY_S = 1.0
"""Seconds, the longest pause before a retry: a daemon that is back is found within two seconds."""


class Link(StrEnum):
    """The state of the connection to the daemon."""

    CONNECTING = "connecting"
    LIVE = "live"
    STALE = "stale"
    """Connected, and no message for three heartbeats."""
    LOST = "lost"
    """Not connected; another try follows."""


@dataclass(frozen=True)
class Snapshot:
    """The whole document; the first message of each connection."""

    document: Document


@dataclass(frozen=True)
class Delta:
    """The top-level keys that changed, with their new values."""

    changed: Document


@dataclass(frozen=True)
class Heartbeat:
    """The daemon is alive and nothing changed."""

    count: int


@dataclass(frozen=True)
class LinkChanged:
    """The link is in another state now."""

    link: Link
    reason: str = ""
    retry_in_s: float = 0.0
    """With LOST: how long until the next try."""
    hint: str = ""
    """With LOST: what to do about it, as far as that is known."""


WatchMessage = Snapshot | Delta | Heartbeat | LinkChanged


def folded(document: Document, message: WatchMessage) -> Document:
    """Return the document as it is after a message."""
    match message:
        case Snapshot(document=whole):
            return whole
        case Delta(changed=changed):
            return {**document, **changed}
        case Heartbeat() | LinkChanged():
            return document


async def watch(
    channel: ControlChannel, noun: str, *, stale_after_s: float = STALE_AFTER_S
) -> AsyncGenerator[WatchMessage]:
    """Yield the daemon's messages about `noun`, for ever, over as many connections as it takes.

    Lost connections are reported as LinkChanged and tried again with a growing pause; whoever
    iterates decides when to give up.

    Raises:
        JupiterError: the daemon refuses the watch itself.
    """
    pause_s = FIRST_RETRY_S
    yield LinkChanged(Link.CONNECTING)
    while True:
        try:
            async with aclosing(_connection(channel, noun, stale_after_s)) as messages:
                async for message in messages:
                    pause_s = FIRST_RETRY_S
                    yield message
            why: JupiterError = _ended(channel.state_dir)
        except (DaemonUnreachableError, PeerUnreachableError) as error:
            why = error
        yield LinkChanged(Link.LOST, why.message, pause_s, why.hint)
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, LAST_RETRY_S)


def _ended(state_dir: Path) -> JupiterError:
    """Return what is known of a daemon whose stream ended, or was given up."""
    from jupiterd.client.reachability import unreachable  # slow to import

    return unreachable(state_dir)


async def _connection(
    channel: ControlChannel, noun: str, stale_after_s: float
) -> AsyncGenerator[WatchMessage]:
    """Yield the messages of one connection, and what its silences mean; end when it is given up."""
    call = channel.open_watch(noun)
    link = Link.CONNECTING
    try:
        while True:
            read, silences = asyncio.ensure_future(_read(channel, call)), 0
            try:
                while not (await asyncio.wait({read}, timeout=stale_after_s))[0]:
                    silences += 1
                    if silences > 1:
                        return
                    if link is Link.LIVE:  # one that never said a word here is no less lost
                        link = Link.STALE
                        yield LinkChanged(Link.STALE, f"nothing heard for {stale_after_s:.0f} s")
                event = read.result()
            finally:
                read.cancel()
            if event is None:
                return
            if link is not Link.LIVE:
                link = Link.LIVE
                yield LinkChanged(Link.LIVE)
            yield _message(event)
    finally:
        call.cancel()


async def _read(channel: ControlChannel, call: WatchCall) -> control_pb2.WatchEvent | None:
    """Return the next event, or None at the end of the stream."""
    with channel.translated():
        event = await call.read()
    return event if isinstance(event, control_pb2.WatchEvent) else None


def _message(event: control_pb2.WatchEvent) -> WatchMessage:
    match event.WhichOneof("event"):
        case "snapshot":
            return Snapshot(decoded(event.snapshot))
        case "delta":
            return Delta(decoded(event.delta))
        case _:
            return Heartbeat(event.heartbeat)

"""The daemon's watch stream, which detects silence and reconnects automatically.

Owns the states of the link, the back-off, and how a delta changes a document. Doesn't know the
content of documents, or who shows them.
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
"""Seconds, three heartbeats: a daemon that sends nothing for this long is stuck or gone.
After twice this time the stream is closed and opened again.
"""

FIRST_RETRY_S = 0.2
LAST_RETRY_S = 1.0
"""Seconds, the longest pause before a retry: a restarted daemon is found within two seconds."""


class Link(StrEnum):
    """The state of the connection to the daemon."""

    CONNECTING = "connecting"
    LIVE = "live"
    STALE = "stale"
    """Connected, and no message for three heartbeats."""
    LOST = "lost"
    """Not connected; a retry follows."""


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
    """The link has changed its state."""

    link: Link
    reason: str = ""
    retry_in_s: float = 0.0
    """With LOST: seconds until the next try."""
    hint: str = ""
    """With LOST: what the user can do; may be empty."""


WatchMessage = Snapshot | Delta | Heartbeat | LinkChanged


def folded(document: Document, message: WatchMessage) -> Document:
    """Return the document with a message applied to it."""
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
    """Yield the daemon's messages about `noun`, without end, and reconnect when needed.

    A lost connection is reported as LinkChanged and retried after growing pauses; the caller
    decides when to stop.

    Raises:
        JupiterError: the daemon refuses the watch.
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
    """Return the error for a stream that ended or was closed after silence."""
    from jupiterd.client.reachability import unreachable  # slow to import

    return unreachable(state_dir)


async def _connection(
    channel: ControlChannel, noun: str, stale_after_s: float
) -> AsyncGenerator[WatchMessage]:
    """Yield the messages and link changes of one connection; end after a long silence."""
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
                    if link is Link.LIVE:  # before its first message, a connection isn't live
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
    """Return the next event; None: the stream has ended."""
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

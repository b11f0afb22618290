"""Messages about the daemon's documents, delivered until cancelled, across all errors.

Owns turning an error that ends a stream into a LinkChanged, and trying again. Doesn't know what is
shown.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import NoReturn

from jupiter_tui.model.source import Source
from jupiterd.client.channel import ControlChannel
from jupiterd.client.watch import (
    STALE_AFTER_S,
    Link,
    LinkChanged,
    Snapshot,
    WatchMessage,
    watch,
)
from jupiterd.errors import JupiterError

STATUS = Source("status")
"""The document that holds the cluster, its nodes, its health and its cycle."""

RETRY_S = 1.0
"""After an answer that is an error: a daemon of another version, or a mistake in one."""

Deliver = Callable[[WatchMessage], None]


async def feed(
    state_dir: Path,
    deliver: Deliver,
    source: Source = STATUS,
    *,
    stale_after_s: float = STALE_AFTER_S,
) -> NoReturn:
    """Deliver every message about a source, and each change of the link, until cancelled."""
    async with ControlChannel(state_dir) as channel:
        while True:
            deliver(await _follow(channel, deliver, source, stale_after_s))
            await asyncio.sleep(RETRY_S)


async def _follow(
    channel: ControlChannel, deliver: Deliver, source: Source, stale_after_s: float
) -> LinkChanged:
    """Deliver the messages of one stream; return the LinkChanged that says why it ended."""
    try:
        if source.every_s is not None:
            await _poll(channel, deliver, source.noun, source.every_s)
        async with aclosing(watch(channel, source.noun, stale_after_s=stale_after_s)) as messages:
            async for message in messages:
                deliver(message)
    except JupiterError as error:
        return LinkChanged(Link.LOST, error.message, RETRY_S, error.hint)
    except Exception as error:  # noqa: BLE001 - a window must not fall because of what it shows
        return LinkChanged(Link.LOST, f"unexpected {type(error).__name__}: {error}", RETRY_S)
    return LinkChanged(Link.LOST, "the stream ended", RETRY_S)


async def _poll(channel: ControlChannel, deliver: Deliver, noun: str, every_s: float) -> NoReturn:
    while True:
        deliver(Snapshot(await channel.status(noun)))
        await asyncio.sleep(every_s)

"""The daemon's watch stream as the dashboard takes it: it never ends, whatever happens.

Owns what becomes of errors that the stream itself doesn't outlive. Doesn't know what is shown.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

from jupiterd.client.channel import ControlChannel
from jupiterd.client.watch import STALE_AFTER_S, Link, LinkChanged, WatchMessage, watch
from jupiterd.errors import JupiterError

NOUN = "status"
"""The document that holds the cluster, its nodes, its health and its cycle."""

RETRY_S = 2.0
"""After an answer that is an error: a daemon of another version, or a mistake in one."""


async def feed(
    state_dir: Path, tell: Callable[[WatchMessage], None], *, stale_after_s: float = STALE_AFTER_S
) -> None:
    """Tell every message of the daemon and of the link to it, until cancelled."""
    async with ControlChannel(state_dir) as channel:
        while True:
            reason = await _follow(channel, tell, stale_after_s)
            tell(LinkChanged(Link.LOST, reason, RETRY_S))
            await asyncio.sleep(RETRY_S)


async def _follow(
    channel: ControlChannel, tell: Callable[[WatchMessage], None], stale_after_s: float
) -> str:
    """Tell the messages of one stream; return why it ended."""
    try:
        async with aclosing(watch(channel, NOUN, stale_after_s=stale_after_s)) as messages:
            async for message in messages:
                tell(message)
    except JupiterError as error:
        return error.message
    except Exception as error:  # noqa: BLE001 - a window must not fall because of what it shows
        return f"unexpected {type(error).__name__}: {error}"
    return "the stream ended"

"""One question or command to the daemon, for commands that need no stream.

Owns the event loop of such a call. Doesn't know what is asked.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jupiterd.client.channel import EXECUTE_TIMEOUT_S, ControlChannel, Document


def ask(state_dir: Path, noun: str) -> Document:
    """Return the daemon's document about `noun`."""

    async def call() -> Document:
        async with ControlChannel(state_dir) as channel:
            return await channel.status(noun)

    return asyncio.run(call())


def order(
    state_dir: Path,
    verb: str,
    arguments: Mapping[str, Any],
    timeout_s: float = EXECUTE_TIMEOUT_S,
) -> Document:
    """Have the daemon do `verb`; return what came of it."""

    async def call() -> Document:
        async with ControlChannel(state_dir) as channel:
            return await channel.execute(verb, arguments, timeout_s)

    return asyncio.run(call())

"""Whether the terminal is still there that the dashboard is drawn on.

Owns noticing that it is gone. Doesn't know what is drawn. Whoever closes a terminal mostly sends
SIGHUP, but not to a process of another session, as under sudo or a wrapper script: that one would
read the end of its input for ever, and take a whole core for it.
"""

import asyncio
import termios
from collections.abc import Callable
from typing import Final

LOOK_S: Final = 1.0


def is_gone(descriptor: int) -> bool:
    """Say whether the terminal behind a descriptor was closed, or is none any more."""
    try:
        termios.tcgetattr(descriptor)
    except (termios.error, OSError, ValueError):
        return True
    return False


async def watch(descriptor: int, on_gone: Callable[[], object]) -> None:
    """Call `on_gone` once, when the terminal has gone."""
    while not is_gone(descriptor):  # noqa: ASYNC110 - a terminal tells nobody
        await asyncio.sleep(LOOK_S)
    on_gone()

"""The orderly end of a daemon: from the first wish that it stops to its last word.

Owns what comes before what. Doesn't know how any of it is done, or who wishes it.
"""

import asyncio
from typing import TYPE_CHECKING

from jupiterd.errors import PeerUnreachableError

if TYPE_CHECKING:
    from jupiterd.daemon.node import Node


class Stopping:
    """Whether a daemon is to stop, and its way out."""

    def __init__(self) -> None:
        self._asked = asyncio.Event()

    @property
    def is_asked(self) -> bool:
        """Say whether it is to stop."""
        return self._asked.is_set()

    def ask(self) -> None:
        """Let it stop."""
        self._asked.set()

    async def wait(self) -> None:
        """Return once it is to stop."""
        await self._asked.wait()

    async def leave(self, node: "Node") -> None:
        """Hand over, tell everybody, and end what still runs here."""
        await node.pulse.say_goodbye()
        await node.holder.end_all(PeerUnreachableError(f"{node.settings.name} was stopped"))

"""The interface of a launch to its ranks on one machine.

Owns only the interface. Doesn't know whether this machine runs them (`places`) or another one
(`remote_site`).
"""

from collections.abc import AsyncGenerator
from typing import Protocol

from jupiterd.processes.scripts.events import ScriptEvent


class Site(Protocol):
    """The ranks on one machine."""

    @property
    def name(self) -> str:
        """The machine's name."""
        ...

    @property
    def processes(self) -> int:
        """The number of ranks on the machine."""
        ...

    def events(self) -> AsyncGenerator[ScriptEvent]:
        """Yield the events of the ranks until all have ended; raise JupiterError."""
        ...

    async def signal(self, number: int) -> None:
        """Send a signal to all ranks."""
        ...

    async def resize(self, rows: int, columns: int) -> None:
        """Set the size of the ranks' terminals, in rows and columns."""
        ...

    def give_up(self) -> None:
        """Stop waiting for the ranks if their machine can't be reached."""
        ...

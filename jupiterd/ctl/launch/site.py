"""The ranks of a launch on one machine, as the launch sees them.

Owns the interface alone. Doesn't know whether this machine runs them (`places`) or another one
does (`remote_site`).
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
        """Yield what they print and how they end, until all have ended; raises JupiterError."""
        ...

    async def signal(self, number: int) -> None:
        """Send a signal to all ranks."""
        ...

    async def resize(self, rows: int, columns: int) -> None:
        """Set the size of the ranks' terminals, in rows and columns."""
        ...

    def give_up(self) -> None:
        """Wait for them no more where they can't be reached."""
        ...

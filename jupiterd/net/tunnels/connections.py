"""The connections that a listener has accepted, each with the task that serves it.

Owns that none outlives the listener. Doesn't know what is said on them. asyncio would begin such a
task by itself: one that is cancelled before it has run leaves its socket open, and is logged as an
error if it has.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

log = logging.getLogger(__name__)

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


class Connections:
    """Every connection of one listener that is open."""

    def __init__(self, serve: Serve) -> None:
        """Take what serves a connection; the connection is closed where that ends."""
        self._serve = serve
        self._open: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._is_over = False

    def __len__(self) -> int:
        return len(self._open)

    def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one more connection; what `asyncio.start_server` calls."""
        if self._is_over:
            writer.transport.abort()
            return
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._open[task] = writer
        task.add_done_callback(self._end)

    def hang_up(self) -> None:
        """Hang up on everybody, soon, and on who is accepted from now on."""
        self._is_over = True
        for task in self._open:
            task.cancel()

    async def end(self) -> None:
        """Hang up on everybody, and on who is accepted from now on; idempotent."""
        self.hang_up()
        await asyncio.gather(*self._open, return_exceptions=True)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._open.pop(task).transport.abort()
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("connection_failed", exc_info=error)

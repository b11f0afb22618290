"""The connections that a listener accepted, each with the task that serves it.

Owns closing them all with the listener. Doesn't know what they carry. It starts the tasks itself: a
task of asyncio's own leaves the socket open if it is cancelled before it runs, and logs an error if
it is cancelled later.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

log = logging.getLogger(__name__)

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


class Connections:
    """The open connections of one listener."""

    def __init__(self, serve: Serve) -> None:
        """`serve` handles one connection; the connection closes when `serve` returns."""
        self._serve = serve
        self._open: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._is_over = False

    def __len__(self) -> int:
        return len(self._open)

    def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one more connection; pass this method to `asyncio.start_server`."""
        if self._is_over:
            writer.transport.abort()
            return
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._open[task] = writer
        task.add_done_callback(self._end)

    def hang_up(self) -> None:
        """Cancel all tasks, which closes their connections soon, and refuse new connections."""
        self._is_over = True
        for task in self._open:
            task.cancel()

    async def end(self) -> None:
        """Close all connections, wait until they are closed, and refuse new ones; idempotent."""
        self.hang_up()
        await asyncio.gather(*self._open, return_exceptions=True)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._open.pop(task).transport.abort()
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("connection_failed", exc_info=error)

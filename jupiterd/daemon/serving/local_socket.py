"""This machine's own socket for models, which costs next to nothing until somebody comes.

Owns the socket from the daemon's start to its end, and starting the server behind it at the first
connection: the system keeps that waiting meanwhile. Doesn't know HTTP.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Final

from jupiterd.daemon.runtime.owner_socket import owner_socket, remove_socket
from jupiterd.daemon.serving.endpoints import Endpoints

log = logging.getLogger(__name__)

BACKLOG: Final = 1024
PAUSE_S: Final = 1.0
"""After a try that failed."""
SERVER: Final = "jupiterd.daemon.serving.local_endpoint"


@asynccontextmanager
async def serving_socket(
    path: Path, endpoints: Endpoints, group: asyncio.TaskGroup
) -> AsyncGenerator[None]:
    """Answer for models on a unix socket as long as the context is open."""
    bound = owner_socket(path)
    bound.listen(BACKLOG)
    bound.settimeout(0)
    task = group.create_task(_serve(bound, endpoints), name="models on this machine")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        bound.close()
        remove_socket(path)


async def _serve(bound: socket.socket, endpoints: Endpoints) -> None:
    """Serve from the first caller on; where that can't be, say so in the log and hang up."""
    while True:
        await _somebody_comes(bound)
        try:
            await asyncio.to_thread(import_module, SERVER)  # takes half a second
            from jupiterd.daemon.serving.local_endpoint import serve_locally

            await serve_locally(bound, endpoints)
        except (ImportError, OSError) as error:  # aiohttp isn't installed, or too much is open
            log.warning("models_not_served", extra={"reason": str(error)})
            _hang_up(bound)
            await asyncio.sleep(PAUSE_S)


def _hang_up(bound: socket.socket) -> None:
    """Close the connection that waits, so that its caller waits no more."""
    with contextlib.suppress(OSError):
        bound.accept()[0].close()


async def _somebody_comes(bound: socket.socket) -> None:
    """Return once a connection waits to be taken; it is left waiting."""
    loop, has_come = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(bound.fileno(), has_come.set)
    try:
        await has_come.wait()
    finally:
        loop.remove_reader(bound.fileno())

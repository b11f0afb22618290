"""The sockets on which the front ends of this machine are answered.

Owns the three sockets from the daemon's start to its end. Doesn't know the requests on them.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from jupiterd.daemon.api.control_service import serve_control
from jupiterd.daemon.api.question_socket import question_socket
from jupiterd.daemon.app.servers import control_service_of
from jupiterd.daemon.serving.local_socket import serving_socket

if TYPE_CHECKING:
    from jupiterd.daemon.app.wiring import Parts

STOP_GRACE_S = 0.2


@asynccontextmanager
async def answering_front_ends(node: "Parts", group: asyncio.TaskGroup) -> AsyncGenerator[None]:
    """Listen for questions, models and commands as long as the context is open."""
    node.state_dir.enter()
    answer = node.observers.documents.of
    async with (
        question_socket(node.state_dir.question_socket, answer, group),
        serving_socket(node.state_dir.serve_socket, node.endpoints, group),
    ):
        control = await serve_control(control_service_of(node), node.state_dir.control_socket)
        try:
            yield
        finally:
            await control.stop(STOP_GRACE_S)

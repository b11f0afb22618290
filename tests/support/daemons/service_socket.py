"""The end of a notify socket that systemd usually has: what a daemon tells it, in order."""

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncGenerator, Callable
from pathlib import Path


class Heard:
    """What was told so far: (when, name, value)."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self.said: list[tuple[float, str, str]] = []

    def all(self, name: str) -> list[tuple[float, str]]:
        """Return when something was said, and what."""
        return [(at_s, value) for at_s, said, value in self.said if said == name]

    async def until(self, is_heard: Callable[["Heard"], bool], within_s: float) -> None:
        """Listen until that is so."""
        async with asyncio.timeout(within_s):
            while not is_heard(self):
                await self._next()

    async def for_a_while(self, seconds: float) -> None:
        """Listen for so long."""
        with contextlib.suppress(TimeoutError):
            await self.until(lambda _: False, seconds)

    async def _next(self) -> None:
        told = await asyncio.get_running_loop().sock_recv(self._listener, 4096)
        for line in told.decode().splitlines():
            name, _, value = line.partition("=")
            self.said.append((time.monotonic(), name, value))


@contextlib.asynccontextmanager
async def listening(address: Path | str) -> AsyncGenerator[Heard]:
    """Listen on a path, or an abstract address that begins with @."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        text = str(address)
        listener.bind(f"\0{text[1:]}" if text.startswith("@") else text)
        listener.setblocking(False)
        yield Heard(listener)

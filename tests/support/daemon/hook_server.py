"""A small HTTP server that takes alerts, refuses them, or hangs.

Owns the socket and what came in. What it answers is the test's.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

HANG = 0
"""Instead of a status: no answer at all."""


@dataclass
class Hook:
    """The server, and what was posted there."""

    port: int = 0
    heads: list[str] = field(default_factory=list[str])
    bodies: list[bytes] = field(default_factory=list[bytes])

    @property
    def url(self) -> str:
        """An address there, with a secret in it."""
        return f"http://127.0.0.1:{self.port}/secret-topic?key=s3cret"


@asynccontextmanager
async def hook(answer: Callable[[int], int]) -> AsyncGenerator[Hook]:
    """Serve on loopback; `answer` is given how many came before, and returns a status."""
    told, tasks = Hook(), set[asyncio.Task[None]]()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())
        try:
            await answered(reader, writer)
        finally:
            writer.close()

    async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        lines = (line.lower().partition(":") for line in head.splitlines())
        length = next(int(value) for name, _, value in lines if name == "content-length")
        status = answer(len(told.bodies))
        told.heads.append(head)
        told.bodies.append(await reader.readexactly(length))
        if status == HANG:
            await asyncio.Event().wait()
        location = "Location: http://127.0.0.1:1/elsewhere\r\n" if status == 302 else ""
        writer.write(f"HTTP/1.1 {status} x\r\n{location}Content-Length: 0\r\n\r\n".encode())
        await writer.drain()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    told.port = server.sockets[0].getsockname()[1]
    try:
        yield told
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

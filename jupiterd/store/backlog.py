"""The chunks that one lane has fetched and not written yet.

Owns when they are written, and the wait where too many are unwritten. Doesn't know where they go.

A call into a thread and back costs as much as hashing a chunk. Chunks that arrive during a write
are therefore written together; and one lane writes at a time, since two that write one file would
only wait for each other in the kernel.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

from jupiterd.errors import JupiterError
from jupiterd.store.assembly import Whole

MAX_WAITING_BYTES: Final = 4 << 20

Write = Callable[[list[Whole]], Awaitable[None]]


class Backlog:
    """Fetched chunks in the order of arrival; a context that ends once they are written.

    Where it ends with an error, the chunks before it are still written; a cancelled one writes
    nothing more.
    """

    def __init__(self, write: Write, turn: asyncio.Lock) -> None:
        """`write`: stores chunks; `turn`: the lock that is taken meanwhile."""
        self._write = write
        self._turn = turn
        self._waiting: list[Whole] = []
        self._writing: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Raise the error of a write, unless the context ends with one already."""
        try:
            if error is None:
                await self.flush()
            elif isinstance(error, JupiterError):
                with suppress(JupiterError):
                    await self.flush()
        finally:
            if self._writing is not None:
                self._writing.cancel()

    async def add(self, chunks: list[Whole]) -> None:
        """Add a chunk; raises the error of an earlier write."""
        self._waiting += chunks
        if self._writing is None or self._writing.done():
            await self.flush()
            self._writing = asyncio.ensure_future(self._write_all())
        if sum(len(data) for _, data in self._waiting) >= MAX_WAITING_BYTES:
            await self.flush()

    async def flush(self) -> None:
        """Wait until all chunks are written; raises the error of a write."""
        if self._writing is not None:
            await self._writing

    async def _write_all(self) -> None:
        while self._waiting:
            async with self._turn:
                chunks, self._waiting = self._waiting, []
                await self._write(chunks)

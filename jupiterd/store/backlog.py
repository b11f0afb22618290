"""What one lane has brought and isn't written yet: more may come meanwhile.

Owns when that is written, and waiting where too much of it waits. Doesn't know where it goes.

Each way into a thread and back costs as much as hashing a chunk. So whatever comes while some is
being written goes there together; and of all lanes one writes at a time, for two that write one
file would only wait for each other in the system.
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
    """Chunks in the order in which they came; a context that ends once they are written.

    Where it ends with an error, what came before that is written all the same; not so where it is
    cancelled.
    """

    def __init__(self, write: Write, turn: asyncio.Lock) -> None:
        """`write` puts chunks where they belong; `turn` is held meanwhile."""
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
        """Raise whatever writing raised, unless the context ends with an error already."""
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
        """Take what came; raises whatever writing something before it raised."""
        self._waiting += chunks
        if self._writing is None or self._writing.done():
            await self.flush()
            self._writing = asyncio.ensure_future(self._write_all())
        if sum(len(data) for _, data in self._waiting) >= MAX_WAITING_BYTES:
            await self.flush()

    async def flush(self) -> None:
        """Wait until all is written; raises whatever that raised."""
        if self._writing is not None:
            await self._writing

    async def _write_all(self) -> None:
        while self._waiting:
            async with self._turn:
                chunks, self._waiting = self._waiting, []
                await self._write(chunks)

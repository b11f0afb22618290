"""The pool of engines, made when the first model is asked for.

Owns that a daemon which answers nothing loads none of the pool's parts. Doesn't know these.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Final, Protocol

from jupiterd.cluster.serving.answer_request import AnswerRequest
from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.daemon.serving.answering import Answer
from jupiterd.daemon.serving.local_engines import HoldsEngines

POOL: Final = "jupiterd.daemon.serving.engine_pool"


class EndsEngines(HoldsEngines, Protocol):
    """A pool whose engines end with it."""

    async def close(self) -> None:
        """End all engines."""
        ...


class EnginesOnDemand:
    """A node's engines; none before somebody asks."""

    def __init__(self, make: Callable[[], EndsEngines]) -> None:
        """`make` returns the pool; what it imports takes some tenths of a second."""
        self._make = make
        self._pool: EndsEngines | None = None

    @asynccontextmanager
    async def answering(self, model: ServedModel, request: AnswerRequest) -> AsyncGenerator[Answer]:
        """Begin an answer; see `AnswersRequests`."""
        pool = await self._made()
        async with pool.answering(model, request) as answer:
            yield answer

    async def load(self, model: ServedModel) -> None:
        """Load a model and keep it."""
        await (await self._made()).load(model)

    async def unload(self, model: ServedModel) -> None:
        """Give a model up."""
        if self._pool is not None:
            await self._pool.unload(model)

    def ready(self) -> Sequence[ServedModel]:
        """Return the models that can answer at once."""
        return () if self._pool is None else self._pool.ready()

    def loading(self) -> Sequence[ServedModel]:
        """Return the models that are being loaded."""
        return () if self._pool is None else self._pool.loading()

    async def close(self) -> None:
        """End all engines."""
        if self._pool is not None:
            await self._pool.close()

    async def _made(self) -> EndsEngines:
        if self._pool is None:
            await asyncio.to_thread(import_module, POOL)
        self._pool = self._pool or self._make()
        return self._pool

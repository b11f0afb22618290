"""Requests that wait for their turn.

Owns waiting, and how long answers take on average. Who is next is `cluster.serving.fair_queue`'s.
Doesn't know HTTP or engines.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final

from jupiterd.cluster.serving.fair_queue import FairQueue, QueueFullError, retry_after_s
from jupiterd.cluster.serving.request_error import TOO_MANY, ErrorAnswer, RequestError

MOST_RUNNING: Final = 64
"""Of one model, at once: engines batch what they get."""
MOST_WAITING: Final = 512
"""Of one model."""
_NEWEST_SHARE: Final = 0.2
"""Of the newest answer in the average."""

_Ticket = asyncio.Future[None]


class WaitingLine:
    """The requests to all models, each model's by themselves."""

    def __init__(self, most_running: int = MOST_RUNNING, most_waiting: int = MOST_WAITING) -> None:
        """Take how many requests to a model are answered at once, and how many more wait."""
        self._most_running, self._most_waiting = most_running, most_waiting
        self._queues: dict[str, FairQueue[_Ticket]] = {}
        self._mean_s = 0.0

    def waiting(self, model: str) -> int:
        """Return how many requests to a model wait for their turn."""
        queue = self._queues.get(model)
        return 0 if queue is None else queue.waiting

    @asynccontextmanager
    async def turn(self, model: str, client: str) -> AsyncGenerator[None]:
        """Wait for a request's turn, which lasts as long as the context.

        Raises:
            RequestError: too many wait already.
        """
        clock = asyncio.get_running_loop().time
        queue = self._queues.setdefault(
            model, FairQueue[_Ticket](self._most_running, self._most_waiting)
        )
        ticket: _Ticket = asyncio.get_running_loop().create_future()
        if self._entered(queue, client, ticket):
            ticket.set_result(None)
        try:
            await ticket
            began_s = clock()
            yield
            self._note(clock() - began_s)
        finally:
            self._leave(model, client, ticket)

    def _entered(self, queue: FairQueue[_Ticket], client: str, ticket: _Ticket) -> bool:
        try:
            return queue.enter(client, ticket)
        except QueueFullError as error:
            again_s = retry_after_s(queue.waiting, self._most_running, self._mean_s)
            raise RequestError(_too_many(queue.waiting, again_s)) from error

    def _leave(self, model: str, client: str, ticket: _Ticket) -> None:
        queue = self._queues[model]
        following = queue.leave(client, ticket)
        while following is not None and following.done():  # it was cancelled and hasn't left yet
            following = queue.leave("", following)
        if following is not None:
            following.set_result(None)
        if queue.is_empty:
            del self._queues[model]

    def _note(self, took_s: float) -> None:
        share = _NEWEST_SHARE if self._mean_s else 1.0
        self._mean_s += share * (took_s - self._mean_s)


def _too_many(waiting: int, again_s: int) -> ErrorAnswer:
    return ErrorAnswer(
        HTTPStatus.TOO_MANY_REQUESTS,
        f"{waiting} requests to this model wait already; try again in {again_s} s",
        kind=TOO_MANY,
        code="rate_limit_exceeded",
        retry_after_s=again_s,
    )

"""Prompts of one request that are refused for now, asked again after others of it were taken.

Owns how long a request waits for them: its finished answers would be lost with a refusal. A request
of which nothing was taken is refused at once, so that its client may look elsewhere. Doesn't know
who answers, nor HTTP.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from http import HTTPStatus
from typing import Final

from jupiterd.cluster.serving.request_error import RequestError
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.serving.answering import Answer
from jupiterd.errors import BusyError

MOST_WAIT_S: Final = 60.0
"""Of one request, from its first refusal on: a client waits longer for a long answer."""

USUAL_WAIT_S: Final = 1.0
"""Where an engine that is full doesn't say when to ask again."""

_FOR_NOW: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})

OpensAnswer = Callable[[], AbstractAsyncContextManager[Answer]]


class AskingAgain:
    """The patience of one request with those who refuse some of its prompts for now."""

    def __init__(self) -> None:
        self._has_answer = False
        self._until_s: float | None = None

    @asynccontextmanager
    async def answering(self, opens: OpensAnswer) -> AsyncGenerator[Answer]:
        """Give an answer once it is taken; what `opens` raises after that isn't asked again.

        Raises:
            BusyError, RequestError: it is refused for good, before any other was taken, or still
                after a minute.
        """
        async with AsyncExitStack() as stack:
            answer = await self._taken(stack, opens)
            self._has_answer = True
            yield answer

    async def _taken(self, stack: AsyncExitStack, opens: OpensAnswer) -> Answer:
        while True:
            try:
                return await stack.enter_async_context(opens())
            except (BusyError, RequestError) as error:
                if not self._has_answer or (wait_s := _wait_s(error)) is None:
                    raise
                left_s = self._left_s()
                if left_s <= 0.0:
                    raise
            await asyncio.sleep(min(wait_s, left_s))

    def _left_s(self) -> float:
        if self._until_s is None:
            self._until_s = now_s() + MOST_WAIT_S
        return self._until_s - now_s()


def _wait_s(error: BusyError | RequestError) -> float | None:
    """Return after how long to ask again; None where that changes nothing."""
    if isinstance(error, BusyError):
        return error.retry_after_s or USUAL_WAIT_S
    if error.answer.status not in _FOR_NOW:
        return None
    return error.answer.retry_after_s or USUAL_WAIT_S

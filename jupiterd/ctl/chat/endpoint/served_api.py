"""HTTP to the local daemon's endpoint, over its unix socket.

Owns the connection, and what its failures mean. Doesn't know conversations, or what is shown.
"""

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx

from jupiterd.client.reachability import check_listens, unreachable
from jupiterd.client.socket_path import SocketPath
from jupiterd.ctl.chat.endpoint.answer_chunks import (
    END,
    Chunk,
    ModelFacts,
    chunk_of,
    facts_of,
    names_in,
)
from jupiterd.ctl.chat.endpoint.event_stream import Event, EventStream
from jupiterd.ctl.chat.endpoint.served_errors import error_of, refusal_of
from jupiterd.errors import DaemonUnreachableError, EngineLostError, JupiterError
from jupiterd.locations import SERVE_SOCKET

CONNECT_S = 5.0
ASKED_S = 30.0
"""Seconds to wait for what is known of a model."""


class ServedApi:
    """The endpoint of one state folder's daemon; a context for `async with`."""

    def __init__(self, state_dir: Path) -> None:
        self._state_dir = state_dir
        self._path = SocketPath(state_dir, SERVE_SOCKET)

    async def __aenter__(self) -> Self:
        """Prepare the connection; it is made with the first request."""
        self._path.__enter__()
        # The first token of an answer may wait for a model of many gigabytes: Ctrl-C ends that.
        self._client = httpx.AsyncClient(
            transport=httpx.AsyncHTTPTransport(uds=str(self._path.short)),
            base_url="http://jupiterd",
            timeout=httpx.Timeout(None, connect=CONNECT_S),
            trust_env=False,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connection; an answer that is being written on it is cancelled."""
        await self._client.aclose()
        self._path.__exit__(kind, error, trace)

    async def facts(self, model: str) -> ModelFacts:
        """Return what the daemon knows of a model.

        Raises:
            JupiterError: there is none of that name, no daemon answers, ...
        """
        return facts_of(model, await self._told(f"/v1/models/{quote(model, safe='')}"))

    async def names(self) -> list[str]:
        """Return the models that have a name now; raises JupiterError as `facts` does."""
        return names_in(await self._told("/v1/models"))

    async def _told(self, place: str) -> bytes:
        with self._translated():
            answer = await self._client.get(place, timeout=ASKED_S)
        if not answer.is_success:
            raise error_of(answer.status_code, answer.content)
        return answer.content

    async def answer(self, place: str, body: Mapping[str, Any]) -> AsyncGenerator[Chunk | Event]:
        """Yield an answer as it is written; a comment of the stream says what it waits for.

        Whoever closes the iterator, or is cancelled, cancels the answer at the daemon. Where that
        has ended, the error says so.

        Args:
            place: the path, such as `/v1/chat/completions`.
            body: the request, without `stream`.

        Raises:
            JupiterError: it is refused, or ends before its end.
        """
        try:
            async with contextlib.aclosing(self._answer(place, body)) as answer:
                async for told in answer:
                    yield told
        except EngineLostError:
            await self._check_is_there()
            raise

    async def _answer(self, place: str, body: Mapping[str, Any]) -> AsyncGenerator[Chunk | Event]:
        is_over = False
        asked = {**body, "stream": True, "stream_options": {"include_usage": True}}
        with self._translated():
            async with self._client.stream("POST", place, json=asked) as answer:
                if not answer.is_success:
                    after = answer.headers.get("Retry-After", "")
                    raise refusal_of(answer.status_code, await answer.aread(), after)
                async for event in _events(answer):
                    if event.data == END:
                        return
                    told = chunk_of(event.data) if event.data else event
                    is_over = is_over or (isinstance(told, Chunk) and bool(told.finish))
                    yield told
        if not is_over:  # some engines end without a mark, after they said why
            raise EngineLostError("the answer broke off")

    async def _check_is_there(self) -> None:
        """Raise DaemonUnreachableError where the daemon itself ended in the midst of an answer.

        It is asked: its socket takes connections for a moment after it was killed.
        """
        try:
            await self._client.get("/health", timeout=ASKED_S)
        except httpx.HTTPError as error:
            gone = unreachable(self._state_dir)
            told = f"the answer broke off, and {gone.message}"
            raise DaemonUnreachableError(told, gone.hint) from error

    @contextlib.contextmanager
    def _translated(self) -> Generator[None]:
        try:
            yield
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            check_listens(self._state_dir)
            raise _not_serving() from error
        except httpx.HTTPError as error:
            raise EngineLostError(f"the daemon broke off: {error}") from error


async def _events(answer: httpx.Response) -> AsyncIterator[Event]:
    stream = EventStream()
    async for data in answer.aiter_bytes():
        for event in stream.feed(data):
            yield event
    for event in stream.end():
        yield event


def _not_serving() -> JupiterError:
    return DaemonUnreachableError(
        "this jupiterd answers, but not for models: it is starting, or older than jupiterctl",
        "wait a moment, or restart jupiterd",
    )

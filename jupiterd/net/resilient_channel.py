"""A channel whose calls end only in the two ways that callers handle: a reply or an AioRpcError.

Owns the handling of replies that can't be parsed and of calls whose channel this node closes.
Doesn't know the methods, or why a channel is closed.

For a reply that can't be parsed, gRPC for Python logs a traceback and returns None. Here the caller
gets an empty message instead, which every caller treats as no answer; likewise for a reply with a
number out of bounds. gRPC raises another kind of error for a call on a closed channel, and
CancelledError if the channel is closed during the call, although nobody cancelled the caller. Both
would end tasks that must run for ever; here both become an AioRpcError.
"""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any, cast

import grpc
import grpc.aio
from google.protobuf.message import DecodeError, Message

from jupiterd.net.batched_requests import Call, Requests, once_invited
from jupiterd.net.message_bounds import out_of_bounds

CLOSED = "the link was closed"

Serializer = Callable[[Any], bytes]
Parser = Callable[[bytes], Any]


class ResilientChannel:
    """Wraps a gRPC channel with the methods that generated stubs use."""

    def __init__(self, channel: grpc.aio.Channel, is_closed: Callable[[], bool]) -> None:
        """`is_closed` tells that no call may start any more, as the channel is about to close."""
        self._channel = channel
        self._is_closed = is_closed

    def unary_unary(
        self,
        method: str,
        request_serializer: Serializer,
        response_deserializer: Parser,
        **more: Any,
    ) -> object:
        """Return a callable: one request, one reply."""
        read = _reader(response_deserializer)
        return self._asking(self._channel.unary_unary(method, request_serializer, read, **more))

    def stream_unary(
        self,
        method: str,
        request_serializer: Serializer,
        response_deserializer: Parser,
        **more: Any,
    ) -> object:
        """Return a callable: many requests, one reply.

        It reads the iterator of requests only once the server asks for them.
        """
        read = _reader(response_deserializer)
        call = self._channel.stream_unary(method, request_serializer, read, **more)

        def bring(requests: Requests, **options: Any) -> Awaitable[Any]:
            opened: asyncio.Future[Call] = asyncio.get_running_loop().create_future()
            opened.set_result(cast("Any", call)(once_invited(requests, opened), **options))
            return opened.result()

        return self._asking(bring)

    def unary_stream(
        self,
        method: str,
        request_serializer: Serializer,
        response_deserializer: Parser,
        **more: Any,
    ) -> object:
        """Return a callable: one request, many replies."""
        read = _reader(response_deserializer)
        call = self._channel.unary_stream(method, request_serializer, read, **more)

        def ask(request: object, **options: Any) -> _Replies:
            return _Replies(None if self._is_closed() else cast("Any", call)(request, **options))

        return ask

    def stream_stream(
        self,
        method: str,
        request_serializer: Serializer,
        response_deserializer: Parser,
        **more: Any,
    ) -> object:
        """Return a callable: many requests, many replies.

        Called without an iterator of requests it returns gRPC's own call object; `heartbeats`
        handles its errors.
        """
        read = _reader(response_deserializer)
        call = self._channel.stream_stream(method, request_serializer, read, **more)

        def talk(*requests: AsyncIterable[object], **options: Any) -> object:
            self._check_open()
            opened = cast("Any", call)(*requests, **options)
            return _Replies(opened) if requests else opened

        return talk

    def _asking(self, call: Callable[..., Awaitable[Any]]) -> object:
        async def ask(request: object, **options: Any) -> object:
            self._check_open()
            with _closed_by_us():
                return await call(request, **options)

        return ask

    def _check_open(self) -> None:
        if self._is_closed():
            raise _closed()


class _Replies:
    """The replies of one call; `cancel` ends the call."""

    def __init__(self, call: "grpc.aio.UnaryStreamCall[Any, Any] | None") -> None:
        """Without a call, the first request for a reply raises an AioRpcError."""
        self._call = call
        self._replies = None if call is None else aiter(call)

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> object:
        if self._replies is None:
            raise _closed()
        with _closed_by_us():
            return await anext(self._replies)

    def cancel(self) -> None:
        """End the call; a task that waits for a reply gets an AioRpcError."""
        if self._call is not None:
            self._call.cancel()


@contextmanager
def _closed_by_us() -> Generator[None]:
    """Turn CancelledError into AioRpcError, unless somebody cancelled the current task itself."""
    try:
        yield
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise _closed() from error


def _closed() -> grpc.aio.AioRpcError:
    nothing = grpc.aio.Metadata()
    return grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, nothing, nothing, CLOSED)


def _reader(parse: Parser) -> Parser:
    def read(raw: bytes) -> object:
        try:
            reply = parse(raw)
        except DecodeError:
            return parse(b"")
        is_sound = not isinstance(reply, Message) or not out_of_bounds(reply)
        return reply if is_sound else parse(b"")

    return read

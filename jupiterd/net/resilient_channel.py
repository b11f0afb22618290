"""A channel whose calls end as their callers expect: with a reply, or with an AioRpcError.

Owns what becomes of a reply that can't be read, and of a call whose connection we close ourselves.
Doesn't know what is called, or why a connection is closed.

gRPC for Python would log a traceback for each reply that can't be read, and hand None to a caller
who expects one: here it is an empty reply, which means nothing anywhere, and so is one with a
number out of bounds. A call on a closed channel
would end with another kind of error, and one whose channel is closed under it with CancelledError,
though nobody has cancelled the caller: both would end tasks that are to go on for ever.
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
    """What the stubs ask for, around a channel of gRPC."""

    def __init__(self, channel: grpc.aio.Channel, is_closed: Callable[[], bool]) -> None:
        """`is_closed` says that no more calls are to be made, for the channel will be closed."""
        self._channel = channel
        self._is_closed = is_closed

    def unary_unary(
        self,
        method: str,
        request_serializer: Serializer,
        response_deserializer: Parser,
        **more: Any,
    ) -> object:
        """Return a call of one reply."""
        read = _reader(response_deserializer)
        return self._asking(self._channel.unary_unary(method, request_serializer, read, **more))

    def stream_unary(
        self,
        method: str,
        request_serializer: Serializer,
        response_deserializer: Parser,
        **more: Any,
    ) -> object:
        """Return a call of many requests and one reply; they are sent once they are wanted."""
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
        """Return a call of many replies."""
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
        """Return a call of many requests and replies.

        Without an iterator of requests it is gRPC's own: `heartbeats` looks after it.
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
    """Many replies to one request; `cancel` ends them."""

    def __init__(self, call: "grpc.aio.UnaryStreamCall[Any, Any] | None") -> None:
        """Without a call it ends at the first wish for a reply, as all that goes wrong does."""
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
        """End the call; whoever waits for a reply is told that the link was closed."""
        if self._call is not None:
            self._call.cancel()


@contextmanager
def _closed_by_us() -> Generator[None]:
    """Tell whoever waits for a call whose channel is closed; who was cancelled stays cancelled."""
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

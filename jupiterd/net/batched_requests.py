"""A stream of requests that the client sends only after the server has accepted the call.

Owns the metadata by which the server accepts, and both ends' part in it. Doesn't know the requests.

A client that sends at once may be sending when the server refuses the call. gRPC's Python API then
fails to send and reports an internal error instead of the server's reason. The needless requests
would also delay other calls.
"""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import Any, Final

import grpc.aio

_SIGN: Final = "wanted"

Requests = AsyncIterable[object] | Iterable[object]
Call = grpc.aio.StreamUnaryCall[Any, Any]


async def inviting(
    requests: AsyncIterator[bytes], context: grpc.aio.ServicerContext[Any, Any]
) -> AsyncIterator[bytes]:
    """Yield the requests of a call; tell the client to send when the first one is read."""
    await context.send_initial_metadata(((_SIGN, "1"),))
    async for request in requests:
        yield request


async def once_invited(requests: Requests, call: "asyncio.Future[Call]") -> AsyncIterator[object]:
    """Yield the requests once the server accepts the call; yield nothing if it refuses."""
    response = await call
    if not any(key == _SIGN for key, _ in await response.initial_metadata() or ()):
        await response.code()  # sending on an ended call would hide its status
    elif isinstance(requests, AsyncIterable):
        async for request in requests:
            yield request
    else:
        for request in requests:
            yield request

"""Many requests that are sent once they are wanted.

Owns the sign by which a server says so, and both ends' part in it. Doesn't know what is sent.

Who begins at once may be in the middle of it when it is refused: then gRPC's Python API finds first
that it can't send on, and calls that an internal error before it has seen why. And whatever was
sent for nothing was in the way of other things.
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
    """Yield the requests of a call; the first wish for one lets the caller begin."""
    await context.send_initial_metadata(((_SIGN, "1"),))
    async for request in requests:
        yield request


async def once_invited(requests: Requests, call: "asyncio.Future[Call]") -> AsyncIterator[object]:
    """Yield the requests when the server wants them; nothing where it has refused the call."""
    response = await call
    if not any(key == _SIGN for key, _ in await response.initial_metadata() or ()):
        await response.code()  # what is sent to a call that has ended would hide how
    elif isinstance(requests, AsyncIterable):
        async for request in requests:
            yield request
    else:
        for request in requests:
            yield request

"""Checks every call of another node before it believes a byte of its request.

Owns the order of the checks: the caller's identity, its right to call this method, its call rate,
its concurrent calls, the time until its request arrives, the request's size, its encoding, and the
bounds of its numbers. Also owns how a call ends whose method raised an error. Doesn't know any
service; callers pass the test of membership.

gRPC would read and parse a request before this code sees the caller. So the guard serves each
method as one with a stream of requests, which is the same on the wire, and reads the one request
itself.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator
from contextlib import aclosing, asynccontextmanager, contextmanager
from typing import Any, TypeAlias, cast

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from jupiterd.cluster.values.rate_limit import Rate, RateLimit
from jupiterd.errors import (
    CorruptLedgerError,
    JupiterError,
    MalformedError,
    NotAMemberError,
    RefusedError,
    TooLargeError,
    TooOftenError,
)
from jupiterd.ids import NodeId, short
from jupiterd.net.batched_requests import inviting
from jupiterd.net.credentials import caller
from jupiterd.net.message_bounds import out_of_bounds
from jupiterd.net.open_port.callers import Callers
from jupiterd.net.refusals import Refusals
from jupiterd.protocol.call_errors import abort

EACH_STRANGER = Rate(per_s=5.0, burst=50.0)
ALL_STRANGERS = Rate(per_s=50.0, burst=200.0)
"""Calls per second of nodes that aren't members: a daemon that looks for others calls twice."""

EACH_MEMBER = Rate(per_s=200.0, burst=600.0)
ALL_MEMBERS = Rate(per_s=64 * 200.0, burst=64 * 600.0)
"""Calls per second of members; messages of a stream count: the largest ledger takes 512."""

MAX_CALLS_OF_A_STRANGER = 4
MAX_CALLS_OF_STRANGERS = 16
"""Concurrent calls; each may hold a message of the largest size in memory, see `server`."""

MAX_STRANGERS_REQUEST_BYTES = 16 << 10
"""A hello or a request to join, with its certificate, has about one KiB."""

REQUEST_TIMEOUT_S = 5.0

UNKNOWN = "unknown"

_log = logging.getLogger(__name__)

Context = grpc.aio.ServicerContext[Any, Any]
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"


class CallGuard(grpc.aio.ServerInterceptor):
    """A gRPC interceptor that admits calls to a server's methods or ends them."""

    def __init__(
        self,
        is_member: Callable[[NodeId], bool],
        open_methods: frozenset[str],
        refusals: Refusals,
        callers: Callers | None = None,
    ) -> None:
        """`open_methods`: the methods that strangers may call; `refusals`: counts what it refuses.

        `callers` tells the origin of calls that arrive through this node's own proxy (`open_port`).
        """
        self._callers = callers or Callers()
        self._is_member = is_member
        self._open_methods = open_methods
        self._refusals = refusals
        self._strangers: Counter[NodeId] = Counter()
        self._rates: tuple[RateLimit[NodeId], RateLimit[NodeId]] | None = None

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable["Handler | None"]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> "Handler | None":
        """Return the method's handler behind the checks; None if there is no such method."""
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        name = str(handler_call_details.method).rpartition("/")[2]
        if handler.request_streaming:
            kind = self._many if handler.response_streaming else self._many_to_one
            return kind(name, handler)
        return (
            self._stream(name, handler) if handler.response_streaming else self._one(name, handler)
        )

    def _one(self, name: str, handler: Handler) -> Handler:
        method = cast("Any", handler).unary_unary

        async def answer(requests: AsyncIterator[bytes], context: Context) -> object:
            async with self._let_in(name, context) as who:
                request = _parsed(handler, await self._read(requests, who))
                return await method(request, context)

        return grpc.stream_unary_rpc_method_handler(
            cast("Any", answer), None, handler.response_serializer
        )

    def _stream(self, name: str, handler: Handler) -> Handler:
        method = cast("Any", handler).unary_stream

        async def answers(requests: AsyncIterator[bytes], context: Context) -> AsyncIterator[Any]:
            async with (
                self._let_in(name, context) as who,
                aclosing(
                    method(_parsed(handler, await self._read(requests, who)), context)
                ) as replies,
            ):
                async for reply in replies:
                    yield reply

        return grpc.stream_stream_rpc_method_handler(
            cast("Any", answers), None, handler.response_serializer
        )

    def _many_to_one(self, name: str, handler: Handler) -> Handler:
        method = cast("Any", handler).stream_unary

        async def answer(requests: AsyncIterator[bytes], context: Context) -> object:
            async with self._let_in(name, context) as who:
                wanted = inviting(requests, context)
                return await method(self._each(handler, wanted, who), context)

        return grpc.stream_unary_rpc_method_handler(
            cast("Any", answer), None, handler.response_serializer
        )

    def _many(self, name: str, handler: Handler) -> Handler:
        method = cast("Any", handler).stream_stream

        async def answers(requests: AsyncIterator[bytes], context: Context) -> AsyncIterator[Any]:
            async with (
                self._let_in(name, context) as who,
                aclosing(method(self._each(handler, requests, who), context)) as replies,
            ):
                async for reply in replies:
                    yield reply

        return grpc.stream_stream_rpc_method_handler(
            cast("Any", answers), None, handler.response_serializer
        )

    async def _each(
        self, handler: Handler, requests: AsyncIterator[bytes], who: NodeId
    ) -> AsyncIterator[object]:
        """Yield each request of a stream; count it, and end the call of a slow stranger.

        Raises:
            MalformedError: a stranger's request didn't arrive in time, or can't be read.
            TooOftenError: the caller sent too many requests.
        """
        while True:
            timeout_s = None if self._is_member(who) else REQUEST_TIMEOUT_S
            try:
                async with asyncio.timeout(timeout_s):
                    raw = await anext(requests)
            except StopAsyncIteration:
                return
            except TimeoutError as error:
                raise MalformedError("the next request didn't come in time") from error
            if not self._limits()[0].allows(asyncio.get_running_loop().time(), who):
                raise TooOftenError("too many calls")
            yield _parsed(handler, raw)

    @asynccontextmanager
    async def _let_in(self, name: str, context: Context) -> AsyncGenerator[NodeId]:
        """Yield the caller's id; end the call on any error, and count a refusal."""
        who = UNKNOWN
        try:
            self._callers.note_call(context.peer())
            who = caller(context)
            if self._is_member(who):
                self._callers.note_member(context.peer(), who)
            with self._place_for(who, name):
                yield who
        except JupiterError as error:
            if isinstance(error, RefusedError | CorruptLedgerError):
                self._refusals.count(error.code, self._called(who, context), error.message)
            await abort(context, error)
            raise
        except grpc.aio.BaseError:
            raise  # the call has ended
        except Exception:
            # A fault in Jupiter: log it at a limited rate, so that a caller can't fill the log.
            if self._refusals.count("unexpected", name, "a fault in Jupiter"):
                _log.exception("call_failed", extra={"method": name})
            await context.abort(grpc.StatusCode.INTERNAL, "a fault in Jupiter")
            raise

    @contextmanager
    def _place_for(self, who: NodeId, name: str) -> Generator[None]:
        """Hold one of the places for concurrent calls.

        Raises:
            TooOftenError: the caller's rate or its number of calls is too high.
            NotAMemberError: a stranger calls a method that only members may call.
        """
        of_members, of_strangers = self._limits()
        now_s = asyncio.get_running_loop().time()
        if self._is_member(who):
            if not of_members.allows(now_s, who):
                raise TooOftenError("too many calls")
            yield
            return
        if name not in self._open_methods:
            raise NotAMemberError(f"node {short(who)} is not a member of this cluster")
        at_once = self._strangers
        if (
            not of_strangers.allows(now_s, who)
            or at_once[who] >= MAX_CALLS_OF_A_STRANGER
            or at_once.total() >= MAX_CALLS_OF_STRANGERS
        ):
            raise TooOftenError("too many calls")
        at_once[who] += 1
        try:
            yield
        finally:
            at_once[who] -= 1
            if not at_once[who]:
                del at_once[who]

    def _called(self, who: str, context: Context) -> str:
        """Return the caller's name for logs: its short id, or its address if the id is unknown."""
        return self._callers.host_of(context.peer()) if who == UNKNOWN else short(NodeId(who))

    def _limits(self) -> tuple[RateLimit[NodeId], RateLimit[NodeId]]:
        if self._rates is None:
            now_s = asyncio.get_running_loop().time()
            members = RateLimit[NodeId](EACH_MEMBER, ALL_MEMBERS, now_s)
            self._rates = members, RateLimit[NodeId](EACH_STRANGER, ALL_STRANGERS, now_s)
        return self._rates

    async def _read(self, requests: AsyncIterator[bytes], who: NodeId) -> bytes:
        """Return the bytes of a call's one request.

        Raises:
            MalformedError: the request didn't arrive, or not in time.
            TooLargeError: a stranger's request exceeds MAX_STRANGERS_REQUEST_BYTES.
        """
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                raw = await anext(requests)
        except StopAsyncIteration as error:
            raise MalformedError("the call ended before its request came") from error
        except TimeoutError as error:
            raise MalformedError("the request didn't come in time") from error
        if len(raw) > MAX_STRANGERS_REQUEST_BYTES and not self._is_member(who):
            raise TooLargeError(f"a request of {len(raw)} bytes is too large")
        return raw


def _parsed(handler: Handler, raw: bytes) -> object:
    try:
        request = cast("Any", handler.request_deserializer)(raw)
    except DecodeError as error:
        raise MalformedError("the request can't be read") from error
    if field := out_of_bounds(request):
        raise MalformedError(f"{field} of the request is out of bounds")
    return request

"""What a caller is told when an answer can't be given.

Owns the way from an error to the end of a call. Doesn't know any service.
"""

from collections.abc import Awaitable, Callable
from typing import Any, cast

import grpc
import grpc.aio

from jupiterd.errors import JupiterError
from jupiterd.failures import abort


class ErrorsToldToCallers(grpc.aio.ServerInterceptor):
    """Ends a call whose method raised a JupiterError with that error; one of one reply, that is."""

    async def intercept_service(
        self,
        continuation: Callable[
            [grpc.HandlerCallDetails], Awaitable["grpc.RpcMethodHandler[Any, Any] | None"]
        ],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> "grpc.RpcMethodHandler[Any, Any] | None":
        """Return the method's handler, wrapped."""
        handler = await continuation(handler_call_details)
        method = cast("Any", getattr(handler, "unary_unary", None))
        if (
            handler is None or method is None
        ):  # no such method, or a stream, which tells its errors itself
            return handler

        async def answer(request: object, context: "grpc.aio.ServicerContext[Any, Any]") -> object:
            try:
                return await method(request, context)
            except JupiterError as error:
                await abort(context, error)
                raise

        return grpc.unary_unary_rpc_method_handler(
            cast("Any", answer), handler.request_deserializer, handler.response_serializer
        )

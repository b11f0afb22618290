"""A servicer that says who called, for tests of the connection itself."""

from collections.abc import AsyncIterator
from typing import Any

import grpc.aio

from jupiterd.net.credentials import caller
from jupiterd.rpc import peer_pb2
from jupiterd.rpc.peer_pb2_grpc import PeerServicer, add_PeerServicer_to_server


class WhoCalls(PeerServicer):
    async def Hello(  # noqa: N802 - named by the protocol
        self, request: peer_pb2.HelloRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> peer_pb2.HelloReply:
        return peer_pb2.HelloReply(name=caller(context), run_nonce=context.peer())

    async def Beat(  # noqa: N802 - named by the protocol
        self,
        request_iterator: AsyncIterator[peer_pb2.Heartbeat],
        context: grpc.aio.ServicerContext[Any, Any],
    ) -> AsyncIterator[peer_pb2.Heartbeat]:
        async for beat in request_iterator:
            yield beat


def register(server: grpc.aio.Server) -> None:
    add_PeerServicer_to_server(WhoCalls(), server)

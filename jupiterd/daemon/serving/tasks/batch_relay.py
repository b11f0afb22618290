"""Has the models of other members answer what tasks ask that were started on this machine.

Owns one call between jupiterctl and a member: batches there, answers back. It ends with either.
Doesn't know which member is asked: that is jupiterctl's.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

import grpc.aio

from jupiterd.daemon.links.peers import Peers
from jupiterd.daemon.serving.answer_wire import error_of, over_piece
from jupiterd.errors import JupiterError, MalformedError, PeerUnreachableError
from jupiterd.ids import NodeId
from jupiterd.protocol.call_errors import from_rpc
from jupiterd.rpc.serving_pb2 import BatchAsked, BatchPiece


class BatchRelay:
    """Passes on what jupiterctl on this machine asks of others."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers

    async def passed_on(self, asked: AsyncIterator[BatchAsked]) -> AsyncGenerator[BatchPiece]:
        """Yield what the member says that the first message names, and last why it is over.

        That is a piece like any other: an error that ends the call is lost where the caller is just
        writing, for gRPC tells it of its own failure to write then.
        """
        try:
            async with aclosing(self._said(asked)) as pieces:
                async for piece in pieces:
                    yield piece
        except JupiterError as error:
            yield BatchPiece(over=over_piece(error).over)

    async def _said(self, asked: AsyncIterator[BatchAsked]) -> AsyncGenerator[BatchPiece]:
        """Yield what the member says.

        Raises:
            JupiterError: it can't be reached, or what it ends with.
        """
        try:
            first = await anext(asked)
        except StopAsyncIteration as error:
            raise MalformedError("batches came without their order") from error
        peer = self._peers.require(NodeId(first.node))
        first.node = ""
        heard = asyncio.Event()
        with peer.channels.in_use() as channels:
            call = channels.serving.AnswerBatches(_once_heard(heard, first, asked))
            try:
                async for piece in call:
                    heard.set()
                    if piece.HasField("over") and (error := error_of(piece.over)):
                        raise error
                    yield piece
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                    raise PeerUnreachableError(f"{peer.name} runs an older Jupiter") from error
                raise from_rpc(error, peer.name) from error
            finally:
                call.cancel()


async def _once_heard(
    heard: asyncio.Event, first: BatchAsked, more: AsyncIterator[BatchAsked]
) -> AsyncGenerator[BatchAsked]:
    """Yield what is asked, but nothing to a member that hasn't said yet that it answers."""
    await heard.wait()
    yield first
    async for asked in more:
        yield asked

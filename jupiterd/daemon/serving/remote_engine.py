"""Answers from another node: its engines, asked over the link to it.

Owns one call: the request there, the answer back, and that a peer which dies, is cut off or merely
hangs ends an answer within two seconds. Doesn't know which node to ask (`router`), or what answers
there (`serving_service`).
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import grpc.aio

from jupiterd.cluster.serving.answer_request import AnswerRequest
from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.daemon.links.peers import Peers
from jupiterd.daemon.runtime.untrusted_input import sanitized_text
from jupiterd.daemon.serving.answer_wire import MAX_TYPE_CHARACTERS, error_of, order_to_proto
from jupiterd.daemon.serving.answering import Answer
from jupiterd.errors import EngineLostError, JupiterError, PeerUnreachableError
from jupiterd.ids import NodeId
from jupiterd.protocol.call_errors import from_rpc
from jupiterd.rpc import serving_pb2

SILENT_S: Final = 1.6
"""A peer says every 0.4 s that it is there; whom it says that to is told within two seconds."""

ASK_S: Final = 2.0
"""How often the peer is told that somebody waits."""

MAX_AT_ONCE: Final = 64
"""Answers of one peer; further requests wait here. gRPC lets 100 calls onto a connection, and
makes the others wait as if the peer were silent."""

Piece = serving_pb2.AnswerPiece


class RemoteEngine:
    """The engines of one other node."""

    def __init__(self, peers: Peers, node: NodeId) -> None:
        self._peers, self._node = peers, node
        self._places = asyncio.Semaphore(MAX_AT_ONCE)

    @asynccontextmanager
    async def answering(self, model: ServedModel, request: AnswerRequest) -> AsyncGenerator[Answer]:
        """Begin an answer there; leaving the context ends the generation.

        Raises:
            EngineLostError: the peer died, or is heard no more.
            PeerUnreachableError: there is no link to it, or it is too old to answer.
            JupiterError: what the peer refuses it with, BusyError among them.
        """
        order = order_to_proto(model, request)
        async with self._places:
            peer = self._peers.require(self._node)
            with peer.channels.in_use() as channels:
                serves = asyncio.Event()
                call = channels.serving.Answer(_asked(order, serves))
                pieces = _Pieces(aiter(call), peer.name)
                try:
                    await pieces.first()
                    serves.set()
                    head = await pieces.head()
                    left_out = sanitized_text(head.left_out, MAX_TYPE_CHARACTERS)
                    yield Answer(head.status, _content_type(head), pieces.data(), left_out)
                finally:
                    call.cancel()


class _Pieces:
    """What comes back over one call."""

    def __init__(self, pieces: AsyncIterator[Piece], name: str) -> None:
        self._pieces, self._name = pieces, name

    async def first(self) -> None:
        """Return once the peer says that it is there: it has the service, and reads the request."""
        if (await self._said()).WhichOneof("piece"):
            raise self._lost("answered before it was asked")

    async def head(self) -> serving_pb2.AnswerHead:
        piece = await self._next()
        if piece.WhichOneof("piece") != "head":
            raise self._lost("answered with something else")
        return piece.head

    async def data(self) -> AsyncGenerator[bytes]:
        while True:
            piece = await self._next()
            match piece.WhichOneof("piece"):
                case "data":
                    yield piece.data
                case "over":
                    return
                case _:
                    raise self._lost("answered with something else")

    async def _next(self) -> Piece:
        """Return the next piece that says something; raises what ended the answer."""
        while True:
            piece = await self._said()
            if piece.WhichOneof("piece"):
                return piece

    async def _said(self) -> Piece:
        piece = await self._heard()
        if piece.WhichOneof("piece") == "over" and (error := error_of(piece.over)):
            raise error
        return piece

    async def _heard(self) -> Piece:
        try:
            async with asyncio.timeout(SILENT_S):
                return await anext(self._pieces)
        except TimeoutError as error:
            raise self._lost("is heard no more") from error
        except StopAsyncIteration as error:
            raise self._lost("ended it") from error
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                raise PeerUnreachableError(
                    f"{self._name} runs an older Jupiter, whose models answer nobody",
                    "update it, or ask a machine that is up to date",
                ) from error
            raise self._rebuilt(from_rpc(error, self._name)) from error

    def _rebuilt(self, error: JupiterError) -> JupiterError:
        """Return what a peer refuses with; if it can't be reached, its engine is lost."""
        return self._lost(error.message) if type(error) is PeerUnreachableError else error

    def _lost(self, what: str) -> EngineLostError:
        said = what if what.startswith(self._name) else f"{self._name} {what}"
        return EngineLostError(f"an answer was lost: {said}")


def _content_type(head: serving_pb2.AnswerHead) -> str:
    return sanitized_text(head.content_type, MAX_TYPE_CHARACTERS)


async def _asked(
    order: serving_pb2.AnswerOrder, serves: asyncio.Event
) -> AsyncGenerator[serving_pb2.AnswerAsked]:
    """Yield the request, and then again and again that somebody waits.

    Not before the peer has said something: writing to a call that an older peer has just refused
    fails in gRPC's core, which hides why it was refused.
    """
    await serves.wait()
    yield serving_pb2.AnswerAsked(order=order)
    while True:
        await asyncio.sleep(ASK_S)
        yield serving_pb2.AnswerAsked()

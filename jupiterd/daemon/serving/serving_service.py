"""The Serving service: answers that other nodes ask of the engines here.

Owns one call: who may make it, how many at once, the sign of life while nothing is written, and
that the answer ends with the call, or when the caller is heard no more. Doesn't know how an answer
comes about (`answering`), or which node is asked (`router`).
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any, Final, Protocol

import grpc.aio

from jupiterd.cluster.serving.answer_request import AnswerRequest
from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.daemon.serving.answer_wire import (
    MAX_PIECE_BYTES,
    head_piece,
    order_from_proto,
    over_piece,
)
from jupiterd.daemon.serving.answering import AnswersRequests
from jupiterd.errors import BusyError, EngineLostError, JupiterError, MalformedError
from jupiterd.ids import NodeId
from jupiterd.rpc import serving_pb2, serving_pb2_grpc

log = logging.getLogger(__name__)

MAX_CALLS: Final = 256
"""Answers for other nodes at once, those that wait among them."""

BEAT_S: Final = 0.4
"""So long after the last piece the caller hears that this node is still there."""

CALLER_SILENT_S: Final = 6.0
"""Whoever waits says so every two seconds; an answer ends for whom nobody waits any more."""

MAX_PIECES: Final = 16
"""Written and not sent yet: an engine isn't read faster than its answer travels."""

Context = grpc.aio.ServicerContext[Any, Any]
Piece = serving_pb2.AnswerPiece


class ChecksMembers(Protocol):
    """Says who calls, and refuses strangers; the border of the node is it."""

    def member(self, context: Context) -> NodeId:
        """Return the caller; raises NotAMemberError or ConflictError."""
        ...


class AnswersBatches(Protocol):
    """Answers what tasks ask; `BatchService` is it."""

    def pieces(
        self, asked: AsyncIterator[serving_pb2.BatchAsked]
    ) -> AsyncGenerator[serving_pb2.BatchPiece]:
        """Yield the answers of one call."""
        ...


class ServingService(serving_pb2_grpc.ServingServicer):
    """Answers members from the engines of this node."""

    def __init__(
        self, engines: AnswersRequests, batches: AnswersBatches, members: ChecksMembers
    ) -> None:
        """Take what answers here, and the border."""
        self._engines, self._batches, self._members = engines, batches, members
        self._calls = 0

    async def Answer(
        self, request_iterator: AsyncIterator[serving_pb2.AnswerAsked], context: Context
    ) -> AsyncIterator[Piece]:
        """Write one answer; it ends with the call."""
        self._members.member(context)
        if self._calls >= MAX_CALLS:
            yield over_piece(BusyError("this machine answers as many as it can", retry_after_s=1.0))
            return
        self._calls += 1
        try:
            async with aclosing(self._pieces(request_iterator)) as pieces:
                async for piece in pieces:
                    yield piece
        finally:
            self._calls -= 1

    async def AnswerBatches(
        self, request_iterator: AsyncIterator[serving_pb2.BatchAsked], context: Context
    ) -> AsyncIterator[serving_pb2.BatchPiece]:
        """Answer what tasks ask, for as long as the call is open."""
        self._members.member(context)
        async with aclosing(self._batches.pieces(request_iterator)) as pieces:
            async for piece in pieces:
                yield piece

    async def _pieces(self, asked: AsyncIterator[serving_pb2.AnswerAsked]) -> AsyncGenerator[Piece]:
        yield Piece()  # the caller sends its request to whom it has heard
        try:
            async with asyncio.timeout(CALLER_SILENT_S):
                first = await anext(asked)
        except (StopAsyncIteration, TimeoutError) as error:
            raise MalformedError("an answer was asked for without a request") from error
        model, request = order_from_proto(first.order)
        written = asyncio.Queue[Piece](MAX_PIECES)
        loop = asyncio.get_running_loop()
        writing = loop.create_task(self._write(model, request, written), name="answer")
        waiting = loop.create_task(_wait_for_silence(asked, writing), name="answer's caller")
        try:
            async with aclosing(_with_beats(written, writing)) as pieces:
                async for piece in pieces:
                    yield piece
        finally:
            waiting.cancel()
            writing.cancel()
            await asyncio.gather(waiting, writing, return_exceptions=True)  # the generation, too

    async def _write(
        self, model: ServedModel, request: AnswerRequest, written: asyncio.Queue[Piece]
    ) -> None:
        """Have an engine answer; its pieces go into the queue, and what became of it comes last."""
        error: JupiterError | None = None
        try:
            async with self._engines.answering(model, request) as answer:
                await written.put(head_piece(answer.status, answer.content_type, answer.left_out))
                async for chunk in answer.chunks:
                    for start in range(0, len(chunk), MAX_PIECE_BYTES):
                        await written.put(Piece(data=chunk[start : start + MAX_PIECE_BYTES]))
        except JupiterError as failure:
            error = failure
        except Exception:
            log.exception("answer_failed", extra={"model": model.name})
            error = EngineLostError("a fault in Jupiter ended the answer")
        await written.put(over_piece(error))


def add_serving(service: ServingService, server: grpc.aio.Server) -> None:
    """Register the service on a server."""
    serving_pb2_grpc.add_ServingServicer_to_server(service, server)


async def _with_beats(
    written: asyncio.Queue[Piece], writing: "asyncio.Task[None]"
) -> AsyncGenerator[Piece]:
    """Yield what is written, what came at once in one piece, and a sign of life meanwhile."""
    while True:
        try:
            async with asyncio.timeout(BEAT_S):
                piece = await written.get()
        except TimeoutError:
            if writing.done() and written.empty():
                return  # it was given up
            yield Piece()
            continue
        for whole in _joined(piece, written):
            yield whole
            if whole.WhichOneof("piece") == "over":
                return


def _joined(first: Piece, written: asyncio.Queue[Piece]) -> list[Piece]:
    """Return the pieces that are there already, neighbouring data as one."""
    pieces = [first]
    with contextlib.suppress(asyncio.QueueEmpty):
        while True:
            piece = written.get_nowait()
            last = pieces[-1]
            is_data = piece.WhichOneof("piece") == last.WhichOneof("piece") == "data"
            if is_data and len(last.data) + len(piece.data) <= MAX_PIECE_BYTES:
                last.data += piece.data
            else:
                pieces.append(piece)
    return pieces


async def _wait_for_silence(
    asked: AsyncIterator[serving_pb2.AnswerAsked], writing: "asyncio.Task[None]"
) -> None:
    """End an answer once its caller is heard no more; the call itself ends on its own."""
    with contextlib.suppress(StopAsyncIteration, TimeoutError, JupiterError, grpc.aio.BaseError):
        while True:
            async with asyncio.timeout(CALLER_SILENT_S):
                await anext(asked)
    log.info("answer_given_up", extra={"reason": "its caller is heard no more"})
    writing.cancel()

"""The model of another machine, asked through the daemon of this one.

Owns one call: batches there, answers back, and that a machine which is heard no more is given up.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from jupiterd.client.channel import ControlChannel
from jupiterd.errors import JupiterError, MalformedError, PeerUnreachableError, from_wire
from jupiterd.rpc.serving_pb2 import Batch, BatchAsked, BatchOrder, BatchPiece

SILENT_S: Final = 8.0
"""A machine says every second that it is there; a link may lose some of that."""

ASK_S: Final = 2.0
"""How often it is told that somebody waits."""


class RemoteAnswers:
    """The answers of one other machine."""

    def __init__(self, asked: asyncio.Queue[BatchAsked]) -> None:
        self._asked = asked
        self._heard = asyncio.Queue[Batch | JupiterError]()
        self._number = 0

    async def answers(self, lines: str) -> str:
        """Return the lines that answer those of a batch.

        Raises:
            JupiterError: what that machine refuses with, or it is heard no more.
        """
        self._number += 1
        await self._asked.put(BatchAsked(batch=Batch(number=self._number, lines=lines.encode())))
        found = await self._heard.get()
        if isinstance(found, JupiterError):
            raise found
        if found.number != self._number:
            raise MalformedError("another batch was answered than was asked")
        return found.lines.decode("utf-8", "replace")

    async def hear(self, channel: ControlChannel, pieces: AsyncIterator[BatchPiece]) -> None:
        """Take in what that machine says, until it is over."""
        try:
            with channel.translated():
                await self._take_in(pieces)
        except JupiterError as error:
            await self._heard.put(error)
        except TimeoutError:
            await self._heard.put(PeerUnreachableError("it is heard no more"))

    async def _take_in(self, pieces: AsyncIterator[BatchPiece]) -> None:
        while True:
            async with asyncio.timeout(SILENT_S):
                piece = await anext(pieces, None)
            if piece is None or (piece.HasField("over") and not piece.over.code):
                raise PeerUnreachableError("it ended the call")
            if piece.HasField("over"):
                raise from_wire(piece.over.code, piece.over.reason, piece.over.hint)
            if piece.HasField("answers"):
                await self._heard.put(piece.answers)


@asynccontextmanager
async def remote_answers(
    channel: ControlChannel, node: str, artifact: str, device: str
) -> AsyncGenerator[RemoteAnswers]:
    """Have a machine load a model; it is let go with the context."""
    asked = asyncio.Queue[BatchAsked]()
    order = BatchAsked(node=node, order=BatchOrder(artifact=artifact, device=device))
    call = channel.open_batches(_said(order, asked))
    found = RemoteAnswers(asked)
    hearing = asyncio.get_running_loop().create_task(
        found.hear(channel, aiter(call)), name=f"hearing {node}"
    )
    try:
        yield found
    finally:
        call.cancel()
        hearing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await hearing


async def _said(order: BatchAsked, asked: asyncio.Queue[BatchAsked]) -> AsyncGenerator[BatchAsked]:
    """Yield the order, batches as they come, and that somebody waits."""
    yield order
    while True:
        try:
            async with asyncio.timeout(ASK_S):
                said = await asked.get()
        except TimeoutError:
            said = BatchAsked()
        yield said

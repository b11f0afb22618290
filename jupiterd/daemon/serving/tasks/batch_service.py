"""What another member's tasks ask a model of this machine: one call of Serving.AnswerBatches.

Owns when a call is taken, how it ends, and the sign of life meanwhile. Training comes first, and so
do people who drain this machine: no call begins or goes on then. Doesn't know who may call
(`serving_service`), or how a model answers (`processes.tasks.batch_answers`).
"""

import asyncio
import contextlib
import logging
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing
from pathlib import Path
from typing import Final, Protocol

from jupiterd.cluster.serving.engine_memory import has_room
from jupiterd.cycle.questions.task_requests import (
    MAX_ANSWERS_BYTES,
    MAX_TRAVELLING_BYTES,
    travelling_requests,
)
from jupiterd.daemon.serving.answer_wire import over_piece
from jupiterd.errors import (
    BusyError,
    EngineLostError,
    JupiterError,
    MalformedError,
    MissingExtraError,
    TooLargeError,
)
from jupiterd.ids import ArtifactId
from jupiterd.rpc.serving_pb2 import Batch, BatchAsked, BatchOrder, BatchPiece
from jupiterd.store.artifacts import ArtifactStore

log = logging.getLogger(__name__)

BEAT_S: Final = 1.0
"""So long after the last piece the caller hears that this node is still there."""

CALLER_SILENT_S: Final = 8.0
"""Whoever waits says so every two seconds."""

DEVICES: Final = frozenset({"auto", "cpu", "cuda"})

NEEDED: Final = ("torch", "transformers", "lm_eval")
"""Packages without which no call is taken."""

WIDENED: Final = 2
"""The weights are loaded as 32-bit floats, and lie on the disk with 16 bits mostly."""

MOST_WAITING: Final = 2
"""Batches that wait to be answered, or answers to be read: a member's haste fills no memory."""


class AnswersLines(Protocol):
    """A model that is being asked."""

    async def answers(self, lines: str) -> str:
        """Return the answers to a batch; raises JupiterError."""
        ...


OpensModel = Callable[[Path, str, Path], AbstractAsyncContextManager[AnswersLines]]
"""(folder of a model, device, an empty folder) -> the model, as long as the context is open."""


class BatchService:
    """Answers one member at a time: a model for it fills the memory that others would need."""

    def __init__(
        self,
        store: ArtifactStore,
        opened: OpensModel,
        hindrance: Callable[[], str],
        free_bytes: Callable[[], int],
        *,
        can_evaluate: bool,
    ) -> None:
        """Take the models that are here, what asks one, and what else this node is to do.

        Args:
            store: the models.
            opened: opens one of them.
            hindrance: returns why no tasks are answered, such as "it trains"; empty: they are.
            free_bytes: returns how much memory is free.
            can_evaluate: the packages are there that answering takes.
        """
        self._store, self._opened, self._hindrance = store, opened, hindrance
        self._free_bytes, self._can_evaluate = free_bytes, can_evaluate
        self._is_taken = False

    async def pieces(self, asked: AsyncIterator[BatchAsked]) -> AsyncGenerator[BatchPiece]:
        """Yield the answers of one call; it ends with its caller, or for what comes before it."""
        if refusal := self._refusal():
            yield _over(refusal)
            return
        self._is_taken = True
        try:
            yield BatchPiece()  # the caller sends its order to whom it has heard
            async with aclosing(self._answered(asked)) as pieces:
                async for piece in pieces:
                    yield piece
        finally:
            self._is_taken = False

    def _refusal(self) -> JupiterError | None:
        if not self._can_evaluate:
            needed = " and ".join(NEEDED)
            return MissingExtraError(f"it needs {needed}", "pip install 'jupiterd[evaluation]'")
        if why := self._hindrance():
            return BusyError(why)
        return BusyError("it is asked by somebody else") if self._is_taken else None

    async def _answered(self, asked: AsyncIterator[BatchAsked]) -> AsyncGenerator[BatchPiece]:
        heard = asyncio.Queue[BatchAsked](MOST_WAITING)
        written = asyncio.Queue[BatchPiece](MOST_WAITING)
        loop = asyncio.get_running_loop()
        hearing = loop.create_task(_hear(asked, heard), name="batches asked")
        working = loop.create_task(self._work(heard, written), name="batches answered")
        try:
            while not hearing.done():
                piece = await _within(BEAT_S, written) or BatchPiece()
                yield piece
                if piece.HasField("over"):
                    return
                if why := self._hindrance():
                    yield _over(BusyError(f"{why} now"))
                    return
        finally:
            hearing.cancel()
            working.cancel()
            await asyncio.gather(hearing, working, return_exceptions=True)  # the worker, too

    async def _work(
        self, heard: asyncio.Queue[BatchAsked], written: asyncio.Queue[BatchPiece]
    ) -> None:
        """Answer batches until this is cancelled; what goes wrong comes last."""
        try:
            order = (await heard.get()).order
            folder = await asyncio.to_thread(self._folder, order)
            with tempfile.TemporaryDirectory(
                prefix="jupiter-batches-", ignore_cleanup_errors=True
            ) as scratch:
                async with self._opened(folder, order.device, Path(scratch)) as model:
                    while True:
                        batch = (await heard.get()).batch
                        await written.put(BatchPiece(answers=await _answer(model, batch)))
        except JupiterError as error:
            await written.put(_over(error))
        except Exception:
            log.exception("batches_failed")
            await written.put(_over(EngineLostError("a fault in Jupiter ended it")))

    def _folder(self, order: BatchOrder) -> Path:
        """Return where the model's files lie; raises NotFoundError, BusyError, MalformedError."""
        if order.device not in DEVICES:
            raise MalformedError("tasks name no device to compute on")
        artifact = ArtifactId(order.artifact)
        folder = self._store.model_path(artifact)
        weights = self._store.base_of(artifact) or artifact
        needed = WIDENED * self._store.manifest(weights).size_bytes
        if not has_room(needed, self._free_bytes()):
            raise BusyError(f"it has too little memory free for {needed >> 20} MiB of weights")
        return folder


async def _answer(model: AnswersLines, batch: Batch) -> Batch:
    if len(batch.lines) > MAX_TRAVELLING_BYTES:
        raise TooLargeError(f"a batch of {len(batch.lines)} bytes is too large")
    try:
        lines = batch.lines.decode()
    except UnicodeDecodeError as error:
        raise MalformedError("a batch of a task's requests is no text") from error
    travelling_requests(lines)
    answers = (await model.answers(lines)).encode()
    if len(answers) > MAX_ANSWERS_BYTES:
        raise TooLargeError(f"answers of {len(answers)} bytes don't travel")
    return Batch(number=batch.number, lines=answers)


async def _hear(asked: AsyncIterator[BatchAsked], heard: asyncio.Queue[BatchAsked]) -> None:
    """Pass on what the caller says, until it is heard no more."""
    with contextlib.suppress(StopAsyncIteration, TimeoutError):
        while True:
            async with asyncio.timeout(CALLER_SILENT_S):
                said = await anext(asked)
            if said.WhichOneof("asked"):
                await heard.put(said)


async def _within(wait_s: float, written: asyncio.Queue[BatchPiece]) -> BatchPiece | None:
    try:
        async with asyncio.timeout(wait_s):
            return await written.get()
    except TimeoutError:
        return None


def _over(error: JupiterError) -> BatchPiece:
    return BatchPiece(over=over_piece(error).over)

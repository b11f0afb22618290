"""The question socket: whoever may open it asks for one document and gets it, each as a line.

Owns the socket, and the bounds of what a caller may do: one question, of a bounded
length, within a bounded time. Doesn't know the documents.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from jupiterd.daemon.runtime.owner_socket import owner_socket, remove_socket
from jupiterd.errors import JupiterError, MalformedError
from jupiterd.protocol.local_query import (
    ANSWER_TIMEOUT_S,
    MAX_QUESTION_BYTES,
    Document,
    answer_line,
    bug_line,
    noun_of,
    refusal_line,
    too_long,
)

log = logging.getLogger(__name__)

QuestionHandler = Callable[[str], Awaitable[Document]]

CALL_TIMEOUT_S = ANSWER_TIMEOUT_S + 2.0
"""Of a whole call; a little longer than callers wait, who say then what was the matter."""


@asynccontextmanager
async def question_socket(
    path: Path, answer: QuestionHandler, group: asyncio.TaskGroup, timeout_s: float = CALL_TIMEOUT_S
) -> AsyncGenerator[None]:
    """Answer questions as long as the context is open; calls that go on then end with `group`."""

    def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        group.create_task(_call(reader, writer, answer, timeout_s), name="question")

    bound = owner_socket(path)
    server = await asyncio.start_unix_server(take, sock=bound, limit=MAX_QUESTION_BYTES)
    try:
        yield
    finally:
        server.close()
        remove_socket(path)


async def _call(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    answer: QuestionHandler,
    timeout_s: float,
) -> None:
    """Answer one question; who doesn't ask, or doesn't listen, is dropped."""
    writer.transport.set_write_buffer_limits(0)  # drained means sent
    try:
        async with asyncio.timeout(timeout_s):
            writer.write(await _answered(reader, answer))
            await writer.drain()
    except (TimeoutError, OSError) as error:
        log.debug("question_dropped", extra={"reason": str(error) or type(error).__name__})
    finally:
        writer.transport.abort()


async def _answered(reader: asyncio.StreamReader, answer: QuestionHandler) -> bytes:
    try:
        noun = noun_of(await _line(reader))
    except JupiterError as error:
        return refusal_line(error)
    return await _about(noun, answer)


async def _about(noun: str, answer: QuestionHandler) -> bytes:
    """Return the line that answers; every error reaches the caller with its hint."""
    try:
        return answer_line(await answer(noun))
    except JupiterError as error:
        return refusal_line(error)
    except Exception as error:
        log.exception("question_failed", extra={"noun": noun})
        return bug_line(error)  # the daemon goes on


async def _line(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil()
    except asyncio.LimitOverrunError as error:
        raise too_long() from error
    except asyncio.IncompleteReadError as error:
        raise MalformedError("a question ends with a line's end") from error

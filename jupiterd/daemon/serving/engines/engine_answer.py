"""One answer of a running engine, in the form that the endpoint relies on.

Owns what happens between a checked request and the engine: the length of its prompt, the form of
its answer, and the words for an engine that died in the midst of it. Doesn't know which engines
there are.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from jupiterd.cluster.serving.answer_request import AnswerRequest
from jupiterd.cluster.serving.engine_choice import MLX, TRANSFORMERS
from jupiterd.cluster.serving.engine_errors import error_of, told_error
from jupiterd.cluster.serving.engine_request import (
    body_for,
    check_length,
    could_be_too_long,
    is_gathered,
    path_of,
)
from jupiterd.cluster.serving.gathered_answer import GatheredAnswer
from jupiterd.daemon.serving.answering import Answer
from jupiterd.daemon.serving.engines.engine_loading import RunningEngine
from jupiterd.daemon.serving.engines.model_files import ModelFiles
from jupiterd.daemon.serving.engines.prompt_counter import PromptCounter
from jupiterd.errors import EngineLostError, UnsupportedFieldError, UsageError

if TYPE_CHECKING:
    from jupiterd.daemon.serving.engines.engine_client import EngineReply

END_TOLD_S: Final = 1.0
"""How long to wait for how a process ended, whose connection broke."""

_OF_TOOLS: Final = frozenset({"tools", "tool_choice", "parallel_tool_calls"})
_CHOSEN_BY_MODEL: Final = (None, "auto", "none")
"""Values of `tool_choice` that an answer without a tool keeps to."""

COUNTED_BY_US: Final = frozenset({MLX, TRANSFORMERS})
"""Engines that read prompts of any length, and then write nonsense; others refuse them."""


def fitted_to_template(model: ModelFiles, request: AnswerRequest) -> AnswerRequest:
    """Return a request without tools that the model's chat template has no place for.

    A client such as Open WebUI offers tools with everything it asks. Who leaves the choice to the
    model gets an answer that uses none.

    Raises:
        UsageError: the model has no template, and is asked to chat.
        UnsupportedFieldError: a tool must be used.
    """
    if request.is_chat and not model.has_template:
        raise UsageError(
            f"{model.name} has no chat template: it completes text, and doesn't chat",
            "ask /v1/completions instead; jupiterctl model chat completes with it, too",
        )
    if not request.body.get("tools") or model.knows_tools:
        return request
    if request.body.get("tool_choice") not in _CHOSEN_BY_MODEL:
        raise UnsupportedFieldError(
            f"tool_choice: the chat template of {model.name} has no place for tools",
            "leave tool_choice out, or ask a model that was trained to use tools",
        )
    kept = {name: value for name, value in request.body.items() if name not in _OF_TOOLS}
    return replace(request, body=kept)


@asynccontextmanager
async def answered(
    running: RunningEngine, counter: PromptCounter, request: AnswerRequest
) -> AsyncGenerator[Answer]:
    """Begin an answer; leaving the context ends its generation.

    Raises:
        PromptTooLongError: the prompt leaves no room in the context.
        UsageError: the engine can't do what is asked for.
        EngineLostError: the engine died; also by the answer's chunks.
    """
    limit = running.context_tokens
    body = body_for(running.engine, running.model_field, request, limit)
    if running.engine in COUNTED_BY_US and could_be_too_long(request, limit):
        check_length(await counter.tokens(request.body), limit)
    async with AsyncExitStack() as stack:
        reply = await _asked(running, stack, path_of(request), body)
        chunks = _passed(reply.chunks, running)
        if reply.status != HTTPStatus.OK:
            raise told_error(running.engine, reply.status, await _whole(chunks))
        if is_gathered(running.engine, request):
            whole = await _gathered(running, chunks, is_chat=request.is_chat)
            yield Answer(reply.status, "application/json", _alone(whole))
        else:
            yield Answer(reply.status, reply.content_type, chunks)


async def _asked(
    running: RunningEngine, stack: AsyncExitStack, path: str, body: Mapping[str, Any]
) -> "EngineReply":
    try:
        return await stack.enter_async_context(running.client.asked(path, body))
    except EngineLostError as error:
        raise await _lost(running, error) from error


async def _passed(chunks: AsyncIterator[bytes], running: RunningEngine) -> AsyncGenerator[bytes]:
    try:
        async for chunk in chunks:
            yield chunk
    except EngineLostError as error:
        raise await _lost(running, error) from error


async def _lost(running: RunningEngine, error: EngineLostError) -> EngineLostError:
    """Return the error with how the engine's process ended, if it did."""
    ended = running.process.ended
    await asyncio.wait({ended}, timeout=END_TOLD_S)
    why = ended.result() if ended.done() else error.message
    return EngineLostError(f"the engine that wrote the answer ({running.engine}) is lost: {why}")


async def _gathered(
    running: RunningEngine, chunks: AsyncIterator[bytes], *, is_chat: bool
) -> bytes:
    answer = GatheredAnswer(is_chat=is_chat)
    async for chunk in chunks:
        answer.add(chunk)
    if answer.error is not None:
        raise error_of(running.engine, HTTPStatus.INTERNAL_SERVER_ERROR, str(answer.error))
    return json.dumps(answer.whole()).encode()


async def _whole(chunks: AsyncIterator[bytes]) -> bytes:
    return b"".join([chunk async for chunk in chunks])


async def _alone(whole: bytes) -> AsyncGenerator[bytes]:
    yield whole

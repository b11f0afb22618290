"""Answers to requests for text, whole or as a stream of events.

Owns the way of one request: checked, queued, answered by an engine, told to whoever follows. A
client that goes away ends its generation: its handler is cancelled, and leaves the engine's
context. Doesn't know where engines run, nor who may ask.
"""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

from aiohttp import web

from jupiterd.cluster.serving.answer_events import whole_answer
from jupiterd.cluster.serving.answer_request import AnswerRequest
from jupiterd.cluster.serving.joined_answers import joined_answer, summed_usage
from jupiterd.cluster.serving.request_checks import CheckedRequest, checked_request
from jupiterd.cluster.serving.request_error import (
    RequestError,
    answer_of,
    of_engine,
)
from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.daemon.runtime.clock import wall_s
from jupiterd.daemon.serving.answering import Answer, AnswersRequests
from jupiterd.daemon.serving.answers.answer_stream import CLIENT_GONE, AnswerStream, Progress, now_s
from jupiterd.daemon.serving.answers.asking_again import AskingAgain
from jupiterd.daemon.serving.request_records import RequestRecord, RequestRecords, tokens_in
from jupiterd.daemon.serving.served_names import NamesModels
from jupiterd.daemon.serving.waiting_line import WaitingLine
from jupiterd.errors import EngineLostError, JupiterError

log = logging.getLogger(__name__)

MOST_ANSWER_BYTES: Final = 256 << 20
LARGE_BODY_BYTES: Final = 64 << 10
"""A body of so many bytes is read in half a millisecond; the largest takes a tenth of a second."""

MOST_PROMPTS_AT_ONCE: Final = 8
"""Of one request, beside those of other clients."""


class AnswerHandlers:
    """Handles /v1/completions and /v1/chat/completions of one endpoint."""

    def __init__(
        self,
        names: NamesModels,
        answers: AnswersRequests,
        line: WaitingLine,
        records: RequestRecords,
    ) -> None:
        self._names, self._answers = names, answers
        self._line, self._records = line, records

    async def chat(self, request: web.Request) -> web.StreamResponse:
        """Answer a conversation."""
        return await self._told(request, is_chat=True)

    async def completion(self, request: web.Request) -> web.StreamResponse:
        """Go on with a text."""
        return await self._told(request, is_chat=False)

    async def _told(self, request: web.Request, *, is_chat: bool) -> web.StreamResponse:
        """Answer, and tell whoever follows how it went."""
        progress = Progress(now_s())
        try:
            return await self._answered(request, progress, is_chat=is_chat)
        except RequestError as error:
            progress.model = progress.model or error.model
            progress.status, progress.reason = error.answer.status, error.answer.reason
            raise
        except JupiterError as error:
            progress.status, progress.reason = answer_of(error).status, error.message
            raise
        except web.HTTPException as error:
            progress.status, progress.reason = error.status, error.reason
            raise
        except (ConnectionError, asyncio.CancelledError):
            progress.status = CLIENT_GONE
            raise
        finally:
            self._records.note(_record(progress, is_chat=is_chat))

    async def _answered(
        self, request: web.Request, progress: Progress, *, is_chat: bool
    ) -> web.StreamResponse:
        body = await request.read()
        checked = await _checked(body, is_chat=is_chat)
        progress.model = checked.model
        model = self._names.model(checked.model)
        progress.model = model.name
        asked = _Asked(model, f"{request.remote} {checked.user}", checked, progress)
        if checked.request.is_streamed:
            return await self._streamed(asked, AnswerStream(request, progress))
        found = await self._wholes(asked)
        whole = found[0][0] if len(found) == 1 else joined(found)
        progress.first_s = now_s()
        progress.usage.update(summed_usage(usage for _, usage in found))
        progress.status = HTTPStatus.OK
        return web.Response(body=whole, content_type="application/json")

    async def _streamed(self, asked: "_Asked", stream: AnswerStream) -> web.StreamResponse:
        """Write the answers to all prompts into one stream, one after the other."""
        requests = asked.checked.requests
        for place, each in enumerate(requests):
            try:
                async with self._answer(asked, each) as answer:
                    is_last = place == len(requests) - 1
                    await stream.write(answer, asked.checked, place, is_last=is_last)
            except (JupiterError, RequestError) as error:
                if not stream.has_begun:
                    raise
                await stream.fail(
                    error.answer if isinstance(error, RequestError) else answer_of(error)
                )
                break
            except ConnectionError:
                raise
            except Exception:  # the response has begun: another one would stand in its midst
                if not stream.has_begun:
                    raise
                log.exception("answer_failed", extra={"model": asked.model.name})
                fault = EngineLostError("a fault in Jupiter ended the answer")
                await stream.fail(answer_of(fault))
                break
        return await stream.end()

    async def _wholes(self, asked: "_Asked") -> list[tuple[bytes, Mapping[str, Any]]]:
        """Return the answers to all prompts, in their order, with what each cost."""
        places = asyncio.Semaphore(MOST_PROMPTS_AT_ONCE)

        async def answered(each: AnswerRequest) -> tuple[bytes, Mapping[str, Any]]:
            async with places, self._answer(asked, each) as answer:
                body = await _whole(answer)
                return whole_answer(body, asked.model.name, is_chat=each.is_chat)

        if len(asked.checked.requests) == 1:
            return [await answered(asked.checked.request)]
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(answered(each)) for each in asked.checked.requests]
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None  # the others were cancelled for its sake
        return [task.result() for task in tasks]

    @asynccontextmanager
    async def _answer(self, asked: "_Asked", request: AnswerRequest) -> AsyncGenerator[Answer]:
        """Give the answer to one prompt, once it is taken."""
        async with asked.again.answering(lambda: self._in_turn(asked, request)) as answer:
            asked.progress.left_out = answer.left_out
            yield answer

    @asynccontextmanager
    async def _in_turn(self, asked: "_Asked", request: AnswerRequest) -> AsyncGenerator[Answer]:
        """Give an answer once it is its turn, which ends with it, or with its refusal."""
        async with (
            self._line.turn(asked.model.name, asked.client),
            self._answering(asked.model, request) as answer,
        ):
            yield answer

    @asynccontextmanager
    async def _answering(
        self, model: ServedModel, request: AnswerRequest
    ) -> AsyncGenerator[Answer]:
        """Give an answer that has begun; one that the engine refuses is an error."""
        async with self._answers.answering(model, request) as answer:
            if answer.status != HTTPStatus.OK:
                raise RequestError(of_engine(answer.status, await _whole(answer)))
            yield answer


@dataclass(frozen=True)
class _Asked:
    """One client's request to one model."""

    model: ServedModel
    client: str
    checked: CheckedRequest
    progress: Progress
    again: AskingAgain = field(default_factory=AskingAgain)


async def _checked(body: bytes, *, is_chat: bool) -> CheckedRequest:
    """Return what a body asks for; a large one takes longer than others are to wait."""
    if len(body) < LARGE_BODY_BYTES:
        return checked_request(body, is_chat=is_chat)
    return await asyncio.to_thread(checked_request, body, is_chat=is_chat)


def joined(found: Sequence[tuple[bytes, Mapping[str, Any]]]) -> bytes:
    """Return several answers as one."""
    return json.dumps(joined_answer([json.loads(body) for body, _ in found])).encode()


async def _whole(answer: Answer) -> bytes:
    found = bytearray()
    async for piece in answer.chunks:
        found += piece
        if len(found) > MOST_ANSWER_BYTES:
            raise EngineLostError("the engine's answer is longer than any that means something")
    return bytes(found)


def _record(progress: Progress, *, is_chat: bool) -> RequestRecord:
    first_s = progress.first_s
    return RequestRecord(
        model=progress.model,
        is_chat=is_chat,
        status=int(progress.status),
        ended_at_s=wall_s(),
        duration_s=now_s() - progress.began_s,
        first_s=None if first_s is None else first_s - progress.began_s,
        prompt_tokens=tokens_in(progress.usage, "prompt_tokens"),
        completion_tokens=tokens_in(progress.usage, "completion_tokens"),
        reason=progress.reason,
        left_out=progress.left_out,
    )

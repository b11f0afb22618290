"""Answers to requests for text, whole or as a stream of events.

Owns the way of one request: checked, queued, answered by an engine, told to whoever follows. A
client that goes away ends its generation: its handler is cancelled, and leaves the engine's
context. Doesn't know where engines run, nor who may ask.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

from aiohttp import web

from jupiterd.cluster.serving.answer_events import EventStream, whole_answer
from jupiterd.cluster.serving.answer_request import AnswerRequest
from jupiterd.cluster.serving.request_checks import CheckedRequest, checked_request
from jupiterd.cluster.serving.request_error import (
    RequestError,
    answer_of,
    of_engine,
)
from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.daemon.runtime.clock import wall_s
from jupiterd.daemon.serving.answering import Answer, AnswersRequests
from jupiterd.daemon.serving.endpoint_access import HEADERS
from jupiterd.daemon.serving.request_records import RequestRecord, RequestRecords, tokens_in
from jupiterd.daemon.serving.served_names import NamesModels
from jupiterd.daemon.serving.waiting_line import WaitingLine
from jupiterd.errors import EngineLostError, JupiterError

log = logging.getLogger(__name__)

CLIENT_GONE: Final = 499
"""What nginx calls it; only told to whoever follows."""

EVENT_STREAM: Final = "text/event-stream"
_STREAM_HEADERS: Final = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
MOST_ANSWER_BYTES: Final = 256 << 20


@dataclass
class _Progress:
    """How far one request has come."""

    began_s: float
    model: str = ""
    status: int = CLIENT_GONE
    first_s: float | None = None
    usage: dict[str, object] = field(default_factory=dict[str, object])


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
        progress = _Progress(_now_s())
        try:
            return await self._answered(request, progress, is_chat=is_chat)
        except RequestError as error:
            progress.status = error.answer.status
            raise
        except JupiterError as error:
            progress.status = answer_of(error).status
            raise
        except web.HTTPException as error:
            progress.status = error.status
            raise
        except (ConnectionError, asyncio.CancelledError):
            progress.status = CLIENT_GONE
            raise
        finally:
            self._records.note(_record(progress, is_chat=is_chat))

    async def _answered(
        self, request: web.Request, progress: _Progress, *, is_chat: bool
    ) -> web.StreamResponse:
        checked = checked_request(await request.read(), is_chat=is_chat)
        progress.model = checked.model
        model = self._names.model(checked.model)
        progress.model = model.name
        client = f"{request.remote} {checked.user}"
        async with (
            self._line.turn(model.name, client),
            self._answering(model, checked.request) as answer,
        ):
            if answer.content_type == EVENT_STREAM:
                return await _streamed(request, answer, checked, progress)
            progress.first_s = _now_s()
            body, usage = whole_answer(await _whole(answer), model.name)
            progress.usage.update(usage)
            progress.status = answer.status
            return web.Response(body=body, content_type="application/json")

    @asynccontextmanager
    async def _answering(
        self, model: ServedModel, request: AnswerRequest
    ) -> AsyncGenerator[Answer]:
        """Give an answer that has begun; one that the engine refuses is an error."""
        async with self._answers.answering(model, request) as answer:
            if answer.status != HTTPStatus.OK:
                raise RequestError(of_engine(answer.status, await _whole(answer)))
            yield answer


async def _streamed(
    request: web.Request, answer: Answer, checked: CheckedRequest, progress: _Progress
) -> web.StreamResponse:
    """Pass an answer on as it comes; an error that it meets is its last event."""
    headers = {**_STREAM_HEADERS, **request[HEADERS]}
    response = web.StreamResponse(headers=headers)
    response.content_type, response.charset = EVENT_STREAM, "utf-8"
    await response.prepare(request)
    events = EventStream(progress.model, checked.wants_usage)
    progress.status = HTTPStatus.OK
    try:
        async for piece in answer.chunks:
            progress.first_s = progress.first_s or _now_s()
            if told := b"".join(events.feed(piece)):
                await response.write(told)
        await response.write(b"".join(events.end()))
    except JupiterError as error:
        progress.status = answer_of(error).status
        await response.write(answer_of(error).last_events())
    except ConnectionError:
        raise
    except Exception:  # the response has begun: another one would stand in its midst
        log.exception("answer_failed", extra={"model": progress.model})
        failure = answer_of(EngineLostError("a fault in Jupiter ended the answer"))
        progress.status = failure.status
        await response.write(failure.last_events())
    progress.usage.update(events.usage)
    await response.write_eof()
    return response


async def _whole(answer: Answer) -> bytes:
    found = bytearray()
    async for piece in answer.chunks:
        found += piece
        if len(found) > MOST_ANSWER_BYTES:
            raise EngineLostError("the engine's answer is longer than any that means something")
    return bytes(found)


def _record(progress: _Progress, *, is_chat: bool) -> RequestRecord:
    first_s = progress.first_s
    return RequestRecord(
        model=progress.model,
        is_chat=is_chat,
        status=int(progress.status),
        ended_at_s=wall_s(),
        duration_s=_now_s() - progress.began_s,
        first_s=None if first_s is None else first_s - progress.began_s,
        prompt_tokens=tokens_in(progress.usage, "prompt_tokens"),
        completion_tokens=tokens_in(progress.usage, "completion_tokens"),
    )


def _now_s() -> float:
    return asyncio.get_running_loop().time()

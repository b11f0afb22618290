"""An answer as a stream of events, and how far a request has come.

Owns the response that is written while an engine writes: it begins with the first piece, and an
error that it meets is its last event. Doesn't know who answers.
"""

import asyncio
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

from aiohttp import web

from jupiterd.cluster.serving.answer_events import EventStream
from jupiterd.cluster.serving.joined_answers import summed_usage
from jupiterd.cluster.serving.request_checks import CheckedRequest
from jupiterd.cluster.serving.request_error import ErrorAnswer
from jupiterd.daemon.serving.answering import Answer
from jupiterd.daemon.serving.endpoint_access import HEADERS

CLIENT_GONE: Final = 499
"""What nginx calls it; only told to whoever follows."""

EVENT_STREAM: Final = "text/event-stream"
_STREAM_HEADERS: Final = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


@dataclass
class Progress:
    """How far one request has come."""

    began_s: float
    model: str = ""
    status: int = CLIENT_GONE
    first_s: float | None = None
    usage: dict[str, object] = field(default_factory=dict[str, object])
    reason: str = ""
    """Why it was refused, or broke off; empty where it wasn't."""
    left_out: str = ""
    """A field that the model has no place for, and that was left out."""


class AnswerStream:
    """The response to one request for a stream."""

    def __init__(self, request: web.Request, progress: Progress) -> None:
        """Begin nothing yet: what is refused at once has another response."""
        self._request, self._progress = request, progress
        self._id = ""
        self._response = web.StreamResponse(headers={**_STREAM_HEADERS, **request[HEADERS]})

    @property
    def has_begun(self) -> bool:
        """Say whether the client has heard anything."""
        return self._response.prepared

    async def write(
        self, answer: Answer, checked: CheckedRequest, place: int, *, is_last: bool
    ) -> None:
        """Pass one answer on as it comes; place: of its prompt among all of the request."""
        await self._begin()
        usage = self._progress.usage
        events = EventStream(
            self._progress.model,
            checked.wants_usage,
            is_chat=checked.request.is_chat,
            place=place,
            is_last=is_last,
            before=dict(usage),
            answer_id=self._id,
        )
        try:
            async for piece in answer.chunks:
                self._progress.first_s = self._progress.first_s or now_s()
                if told := b"".join(events.feed(piece)):
                    await self._response.write(told)
            await self._response.write(b"".join(events.end()))
        finally:
            self._id = events.answer_id
            usage.update(summed_usage((events.before, events.usage)))

    async def fail(self, error: ErrorAnswer) -> None:
        """End it with an error."""
        self._progress.status, self._progress.reason = error.status, error.reason
        await self._response.write(error.last_events())

    async def end(self) -> web.StreamResponse:
        """Return it, whole."""
        await self._response.write_eof()
        return self._response

    async def _begin(self) -> None:
        if not self.has_begun:
            self._response.content_type, self._response.charset = EVENT_STREAM, "utf-8"
            await self._response.prepare(self._request)
            self._progress.status = HTTPStatus.OK


def now_s() -> float:
    """Return the event loop's time, in s."""
    return asyncio.get_running_loop().time()

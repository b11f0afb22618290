"""What answers a request for text, wherever it runs.

Owns the promise that the endpoint relies on, and that the router, the pool of engines and other
nodes keep. Doesn't know any of them.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from jupiterd.cluster.serving.answer_request import AnswerRequest
from jupiterd.cluster.serving.served_model import ServedModel


@dataclass(frozen=True)
class Answer:
    """An answer that has begun."""

    status: int
    """HTTP's: 200, or that of an error which the engine told in OpenAI's form."""

    content_type: str
    """application/json, or text/event-stream."""

    chunks: AsyncIterator[bytes]
    """The body as it comes; an engine that dies ends it with EngineLostError."""

    left_out: str = ""
    """A field of the request that the model has no place for, and that may go unheeded: `tools`."""


class AnswersRequests(Protocol):
    """An engine, a pool of them, or a router."""

    def answering(
        self, model: ServedModel, request: AnswerRequest
    ) -> AbstractAsyncContextManager[Answer]:
        """Begin an answer; who leaves the context before its end cancels the generation at once.

        Raises BusyError where nobody can take a request now, ModelNotServedError where nobody has
        the model, PromptTooLongError where the context is too small, and EngineLostError where the
        engine died.
        """
        ...

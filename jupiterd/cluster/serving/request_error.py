"""What is wrong with a request for text, and errors in the form of OpenAI's API.

Owns that form, and which status of HTTP tells which error. Doesn't know requests, nor sockets.
"""

import json
from dataclasses import dataclass
from http import HTTPStatus
from math import ceil
from typing import Any, Final

from jupiterd.errors import BusyError, JupiterError
from jupiterd.exit_codes import ExitCode

INVALID_REQUEST: Final = "invalid_request_error"
NOT_ALLOWED: Final = "authentication_error"
TOO_MANY: Final = "rate_limit_error"
OF_SERVER: Final = "server_error"

_STATUS: Final = {
    "busy": HTTPStatus.SERVICE_UNAVAILABLE,
    "model-not-served": HTTPStatus.NOT_FOUND,
    "prompt-too-long": HTTPStatus.BAD_REQUEST,
    "engine-lost": HTTPStatus.BAD_GATEWAY,
    "too-large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
}
_STATUS_BY_EXIT: Final = {
    ExitCode.USAGE: HTTPStatus.BAD_REQUEST,
    ExitCode.NOT_FOUND: HTTPStatus.NOT_FOUND,
    ExitCode.REFUSED: HTTPStatus.FORBIDDEN,
    ExitCode.UNREACHABLE: HTTPStatus.SERVICE_UNAVAILABLE,
    ExitCode.TIMED_OUT: HTTPStatus.GATEWAY_TIMEOUT,
}
_OPENAI_CODE: Final = {
    "model-not-served": "model_not_found",
    "prompt-too-long": "context_length_exceeded",
}


_OF_TEXT: Final = ("messages", "prompt", "tools")
"""Fields whose values are nobody's business but the client's."""


@dataclass(frozen=True)
class ErrorAnswer:
    """An error as it is told over HTTP."""

    status: int
    message: str
    kind: str = INVALID_REQUEST
    """OpenAI's `type`."""
    param: str | None = None
    """The field that is wrong."""
    code: str | None = None
    retry_after_s: int | None = None
    hint: str = ""
    """What to do, for clients of our own; others find it behind the message."""

    def to_plain(self) -> dict[str, Any]:
        """Return OpenAI's error object."""
        inner = {
            "message": self.message,
            "type": self.kind,
            "param": self.param,
            "code": self.code,
        }
        if self.hint:
            inner["hint"] = self.hint
        return {"error": inner}

    @property
    def reason(self) -> str:
        """Return why, for whoever follows requests: nothing that the client wrote of its own."""
        is_of_text = (self.param or "").startswith(_OF_TEXT)
        return self.message.partition(", not ")[0] if is_of_text else self.message

    def body(self) -> bytes:
        """Return the body of a response."""
        return json.dumps(self.to_plain()).encode()

    def last_events(self) -> bytes:
        """Return what ends a stream that has begun."""
        return b"data: " + self.body() + b"\n\ndata: [DONE]\n\n"


class RequestError(Exception):
    """A request that is refused before any engine has seen it."""

    def __init__(self, answer: ErrorAnswer) -> None:
        super().__init__(answer.message)
        self.answer = answer
        self.model = ""
        """That the request is for, as far as that was read."""


def refused(message: str, param: str | None = None, code: str | None = None) -> RequestError:
    """Return the error of a request that is wrong."""
    return RequestError(ErrorAnswer(HTTPStatus.BAD_REQUEST, message, param=param, code=code))


def answer_of(error: JupiterError) -> ErrorAnswer:
    """Return how an error of ours is told: its line and its hint in one message."""
    status = _STATUS.get(error.code) or _STATUS_BY_EXIT.get(
        error.exit_code, HTTPStatus.INTERNAL_SERVER_ERROR
    )
    is_callers = status < HTTPStatus.INTERNAL_SERVER_ERROR
    return ErrorAnswer(
        status=status,
        message=f"{error.message}; {error.hint}" if error.hint else error.message,
        kind=INVALID_REQUEST if is_callers else OF_SERVER,
        param=_param_of(error),
        code=_OPENAI_CODE.get(error.code, error.code.replace("-", "_")),
        retry_after_s=_retry_after_s(error),
        hint=error.hint,
    )


def _param_of(error: JupiterError) -> str | None:
    if error.code == "unsupported-field":
        return error.message.partition(":")[0]
    return "model" if error.code == "model-not-served" else None


def of_engine(status: int, body: bytes) -> ErrorAnswer:
    """Return what an engine refused, whichever form it has for that."""
    try:
        said: object = json.loads(body)
    except (ValueError, RecursionError):
        said = body.decode("utf-8", "replace").strip()
    match said:
        case {"error": {"message": str(message)} as inner}:
            param, code = inner.get("param"), inner.get("code")
        case {"error": str(message)} | {"detail": str(message)} | {"message": str(message)}:
            param, code = None, None
        case str(message) if message:
            param, code = None, None
        case _:
            message, param, code = "the engine refused the request", None, None
    return ErrorAnswer(
        status=status,
        message=message[:MAX_ENGINE_MESSAGE],
        kind=INVALID_REQUEST if status < HTTPStatus.INTERNAL_SERVER_ERROR else OF_SERVER,
        param=param if isinstance(param, str) else None,
        code=code if isinstance(code, str) else None,
    )


MAX_ENGINE_MESSAGE: Final = 2000
"""Characters of what an engine says of an error."""


def _retry_after_s(error: JupiterError) -> int | None:
    return max(1, ceil(error.retry_after_s)) if isinstance(error, BusyError) else None

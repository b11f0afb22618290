"""What the endpoint says is wrong, as one of our errors.

Pure. Owns reading OpenAI's form of an error, `{"error": {"message", "code", ...}}`, with the `hint`
that a daemon adds. Doesn't know what was asked.
"""

import json
from collections.abc import Mapping
from typing import Any, cast

from jupiterd.errors import (
    BY_CODE,
    BusyError,
    JupiterError,
    ModelNotServedError,
    NotFoundError,
    PromptTooLongError,
    RefusedError,
    UsageError,
)
from jupiterd.formats import printable

MOST_CHARACTERS = 600
"""Of a message: it is one line."""

_OF_OPENAI: Mapping[str, type[JupiterError]] = {
    "context_length_exceeded": PromptTooLongError,
    "model_not_found": ModelNotServedError,
}
"""OpenAI's codes -> the errors of ours."""

_OF_STATUS: Mapping[int, type[JupiterError]] = {
    400: UsageError, 401: RefusedError, 403: RefusedError, 404: NotFoundError, 413: UsageError,
    422: UsageError, 429: BusyError, 503: BusyError,
}  # fmt: skip


def refusal_of(status: int, content: bytes, retry_after: str) -> JupiterError:
    """Return the error of a refused request; retry_after: its Retry-After, empty without one.

    A BusyError says after how many seconds to ask again, 0 where nobody said so.
    """
    error = error_of(status, content)
    if isinstance(error, BusyError):
        error.retry_after_s = float(retry_after) if retry_after.isdecimal() else 0.0
    return error


def error_of(status: int, content: bytes) -> JupiterError:
    """Return the error of an answer with this HTTP status, whatever its content is."""
    try:
        told: object = json.loads(content)
    except ValueError:
        told = None
    error = cast("Mapping[str, object]", told).get("error") if isinstance(told, dict) else None
    if error is None:
        text = content.decode("utf-8", "replace")
        kind = _OF_STATUS.get(status, JupiterError)
        return kind(_line(text) or f"the daemon answered with HTTP status {status}")
    return told_error(error, status)


def told_error(error: object, status: int = 0) -> JupiterError:
    """Return the error that an `error` of OpenAI's form tells; 0: it came within a stream."""
    fields: Mapping[str, Any] = {"message": error}
    if isinstance(error, dict):
        fields = cast("Mapping[str, Any]", error)
    named = _named(str(fields.get("code") or ""))
    kind = named or _OF_STATUS.get(status, JupiterError)
    message = _line(str(fields.get("message") or "")) or "it doesn't say what is wrong"
    hint = _line(str(fields.get("hint") or ""))
    if named is not None or hint:
        message, hint = _parted(message, hint, kind.default_hint)
    return kind(message, hint)


def _parted(message: str, hint: str, usual_hint: str) -> tuple[str, str]:
    """Return an error of ours and its hint; other clients get both in the message."""
    for known in filter(None, (hint, usual_hint)):
        if message.endswith(f"; {known}"):
            return message.removesuffix(f"; {known}"), known
    if hint:
        return message, hint
    said, _, rest = message.partition("; ")
    return said, rest


def lacks_template(error: JupiterError) -> bool:
    """Say whether a model can't chat because its tokenizer has no chat template."""
    return "template" in error.message.lower()


def _named(code: str) -> type[JupiterError] | None:
    return BY_CODE.get(code.replace("_", "-")) or _OF_OPENAI.get(code)


def _line(text: str) -> str:
    return printable(" ".join(text.split()))[:MOST_CHARACTERS]

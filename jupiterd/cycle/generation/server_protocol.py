"""The form in which a server is asked for text, and what its replies mean: OpenAI's chat form.

Owns the request, and reading a whole reply: an answer, a reason to ask again, or a refusal. Doesn't
know connections, when it is asked, or how often. Nothing in a reply is trusted to be what it should
be; answers that come piece by piece are `answer_stream`'s.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, Final

from jupiterd.cycle.templates.prompt import WrittenAnswer

PATH: Final = "/chat/completions"
"""Behind a server's address."""

MAX_ERROR_CHARS: Final = 200
CHARS_PER_TOKEN: Final = 4

OK: Final = 200
BUSY: Final = frozenset({429, 503, 529})
"""It has more to do than it takes just now; it is there."""

_MAY_MEND: Final = frozenset({408, 409, 425, 500, 502, 504}) | BUSY
_UNAUTHORISED: Final = frozenset({401, 402, 403})
_FINAL: Final = frozenset({404, 405}) | _UNAUTHORISED
_SPARED: Final = ("seed", "top_p", "temperature", "stream_options", "stream")
"""Parameters that some servers don't know, or not for each model; answers come without them."""


@dataclass(frozen=True)
class Again:
    """There is no answer, and there may be one later."""

    reason: str
    pause_s: float | None = None
    """For how long the server wants to be left alone; None: it doesn't say."""
    is_busy: bool = False
    """It has too many requests, and says so."""
    status: int = 0
    """Of HTTP; 0: it wasn't that."""


@dataclass(frozen=True)
class Rejected:
    """There is no answer, and asking the same again can't help."""

    reason: str
    is_final: bool = False
    """Nor can asking anything else."""
    changes: Mapping[str, str | None] = field(default_factory=dict[str, str | None])
    """Parameters that it wants to have otherwise: their other names, or None to leave them out."""
    wants_key: bool = False
    """It wants another key, or any."""


Reply = WrittenAnswer | Again | Rejected

Body = Mapping[str, Any]


def request_body(model: str, message: str, max_tokens: int, **options: object) -> dict[str, Any]:
    """Return what a server is sent for one prompt; options are further parameters of the form."""
    said = [{"role": "user", "content": message}]
    return {"model": model, "messages": said, "max_tokens": max_tokens, **options}


def read_reply(status: int, headers: Mapping[str, str], content: bytes, body: Body) -> Reply:
    """Return what a whole reply means.

    Args:
        status: of HTTP.
        headers: their names in lower case.
        content: all of it.
        body: what the server was sent.
    """
    if status == OK:
        return _written(content)
    reason = _error_text(content, status)
    if status in _MAY_MEND:
        return Again(reason, _pause_s(headers), is_busy=status in BUSY, status=status)
    if status in _FINAL:
        return Rejected(reason, is_final=True, wants_key=status in _UNAUTHORISED)
    if 300 <= status < 400:
        return Rejected(f"it sends us elsewhere (HTTP {status})", is_final=True)
    return Rejected(reason, changes=_wanted_changes(reason, body))


def changed_request(body: Body, changes: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the request with parameters named as the server wants them, or left out."""
    named = {name: changes.get(name, name) for name in body}
    return {named[name] or "": value for name, value in body.items() if named[name] is not None}


def error_words(said: object) -> str:
    """Return what a document says of an error, in one short line; empty: it tells of none."""
    error: Any = said.get("error", said) if isinstance(said, dict) else None
    text: Any = error
    if isinstance(error, dict):  # `detail` is what FastAPI says by itself, as of an unknown path
        text = error.get("message") or error.get("detail")
    words = " ".join(str(text or "").split())
    return "".join(filter(str.isprintable, words))[:MAX_ERROR_CHARS]


def tokens_of(usage: object, text: str) -> int:
    """Return the tokens of an answer, as the server tells them or as they are estimated."""
    count: Any = usage.get("completion_tokens") if isinstance(usage, dict) else None
    is_number = isinstance(count, int) and 0 <= count < 1 << 31
    return count if is_number else len(text) // CHARS_PER_TOKEN


def _written(content: bytes) -> Reply:
    try:
        said: Any = json.loads(content)
        choice = said["choices"][0]
        text = choice["message"]["content"]
        is_whole = choice.get("finish_reason") != "length"
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        return Again("what it answers is no chat completion")
    if text is not None and not isinstance(text, str):
        return Again("what it answers is no chat completion")
    return WrittenAnswer(text or "", tokens_of(said.get("usage"), text or ""), is_whole=is_whole)


def _error_text(content: bytes, status: int) -> str:
    """Return what the server says of an error, in one short line."""
    try:
        said: Any = json.loads(content)
    except (ValueError, RecursionError):
        said = None
    message = error_words(said)
    return f"HTTP {status}" + (f", {message}" if message else "")


def _pause_s(headers: Mapping[str, str]) -> float | None:
    """Return what Retry-After says, in seconds; None where it says nothing."""
    text = headers.get("retry-after", "").strip()
    if text.replace(".", "", 1).isdigit() and len(text) < 10:
        return float(text)
    try:
        by_its_clock = parsedate_to_datetime(headers.get("date", ""))
        return max(0.0, (parsedate_to_datetime(text) - by_its_clock).total_seconds())
    except (ValueError, TypeError):
        return None


def _wanted_changes(message: str, body: Body) -> dict[str, str | None]:
    if "max_completion_tokens" in message and "max_tokens" in body:
        return {"max_tokens": "max_completion_tokens"}
    found: dict[str, str | None] = {
        name: None for name in _SPARED if name in message and name in body
    }
    if "stream" in found and "stream_options" in body:  # it goes with the other alone
        found["stream_options"] = None
    return found

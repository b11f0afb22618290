"""What a server's reply means: an answer, a reason to ask again, or a refusal.

Owns reading it. Doesn't know when it is asked, or how often. Nothing in a reply is trusted to be
what it should be, nor to be of a reasonable size.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, Final

import httpx

from jupiterd.cycle.generator import Generator
from jupiterd.cycle.templates.prompt import Written

MAX_REPLY_BYTES: Final = 4 << 20
MAX_TOLD_CHARS: Final = 200
CHARS_PER_TOKEN: Final = 4

_OK: Final = 200
_MAY_MEND: Final = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_FINAL: Final = frozenset({401, 402, 403, 404, 405})
_SPARED: Final = ("seed", "top_p", "temperature")
"""Parameters that some servers don't know, or not for each model; answers come without them."""


@dataclass(frozen=True)
class Again:
    """There is no answer, and there may be one later."""

    reason: str
    pause_s: float | None = None
    """For how long the server wants to be left alone; None: it doesn't say."""


@dataclass(frozen=True)
class Rejected:
    """There is no answer, and asking the same again can't help."""

    reason: str
    is_final: bool = False
    """Nor can asking anything else."""
    changes: Mapping[str, str | None] = field(default_factory=dict[str, str | None])
    """Parameters that it wants to have otherwise: their other names, or None to leave them out."""


Reply = Written | Again | Rejected


def read_reply(client: httpx.Client, server: Generator, body: Mapping[str, Any]) -> Reply:
    """Send one request and say what came of it; raises httpx.HTTPError where nothing came."""
    with client.stream("POST", f"{server.url}/chat/completions", json=body) as response:
        content = bytearray()
        for piece in response.iter_bytes():
            content += piece
            if len(content) > MAX_REPLY_BYTES:
                return Again(f"its answer is larger than {MAX_REPLY_BYTES >> 20} MiB")
    if response.status_code == _OK:
        return _written(bytes(content))
    told = _told(bytes(content), response.status_code)
    if response.status_code in _MAY_MEND:
        return Again(told, _pause_s(response.headers))
    if response.status_code in _FINAL:
        return Rejected(told, is_final=True)
    if response.is_redirect:
        return Rejected(f"it sends us elsewhere (HTTP {response.status_code})", is_final=True)
    return Rejected(told, changes=_wanted_changes(told, body))


def changed_request(body: Mapping[str, Any], changes: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the request with parameters named as the server wants them, or left out."""
    named = {name: changes.get(name, name) for name in body}
    return {named[name] or "": value for name, value in body.items() if named[name] is not None}


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
    return Written(text or "", _tokens(said, text or ""), is_whole=is_whole)


def _tokens(said: Mapping[str, Any], text: str) -> int:
    usage: Any = said.get("usage")
    told: Any = usage.get("completion_tokens") if isinstance(usage, dict) else None
    is_number = isinstance(told, int) and 0 <= told < 1 << 31
    return told if is_number else len(text) // CHARS_PER_TOKEN


def _told(content: bytes, status: int) -> str:
    """Return what the server says of an error, in one short line."""
    try:
        said: Any = json.loads(content)
    except (ValueError, RecursionError):
        said = None
    error: Any = said.get("error", said) if isinstance(said, dict) else None
    text: Any = error.get("message", "") if isinstance(error, dict) else error
    words = " ".join(str(text or "").split())
    printable = "".join(filter(str.isprintable, words))[:MAX_TOLD_CHARS]
    return f"HTTP {status}" + (f", {printable}" if printable else "")


def _pause_s(headers: httpx.Headers) -> float | None:
    """Return what Retry-After says, in seconds; None where it says nothing."""
    text = headers.get("retry-after", "").strip()
    if text.replace(".", "", 1).isdigit() and len(text) < 10:
        return float(text)
    try:
        by_its_clock = parsedate_to_datetime(headers.get("date", ""))
        return max(0.0, (parsedate_to_datetime(text) - by_its_clock).total_seconds())
    except (ValueError, TypeError):
        return None


def _wanted_changes(told: str, body: Mapping[str, Any]) -> dict[str, str | None]:
    if "max_completion_tokens" in told and "max_tokens" in body:
        return {"max_tokens": "max_completion_tokens"}
    return {name: None for name in _SPARED if name in told and name in body}

"""An endpoint, and requests to it, as lines for people.

Owns the words. Pure. Doesn't know where any of it comes from.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any, Final

from jupiterd.formats import counted, duration, printable

_API_END: Final = "/v1"
_STATUSES: Final = {
    200: "",
    400: "refused",
    401: "refused",
    403: "refused",
    404: "refused",
    413: "refused",
    429: "refused: too many wait",
    499: "the client went away",
    502: "the engine died",
    503: "refused: busy",
}
_MOST_REASON: Final = 200
"""Characters of a reason: it is one line."""


def opened_lines(endpoint: Mapping[str, Any], *, is_dry_run: bool) -> list[str]:
    """Return what is said of an endpoint once it is open, or could be."""
    url, missing = str(endpoint["url"]), endpoint.get("missing") or {}
    models = ", ".join(map(str, endpoint["models"]))
    lines = [f"{name}: {why}" for name, why in missing.items()]
    if is_dry_run:
        return [*lines, f"{models} would answer at {url}"]
    page = url.removesuffix(_API_END) + "/"
    token = "; clients send the token" if endpoint.get("has_token") else ""
    return [
        *lines,
        f"{models} at {url}{token}",
        f"a page to chat on: {page}",
        "Ctrl-C closes it",
    ]


def request_line(request: Mapping[str, Any], zone: tzinfo | None = None) -> str:
    """Return the line of a request that is over; zone: this machine's by default."""
    ended = datetime.fromtimestamp(float(request["ended_at_s"]), UTC).astimezone(zone)
    model = printable(str(request["model"]))
    outcome = _outcome(int(request["status"]), printable(str(request.get("reason") or "")))
    parts = [outcome, *_figures(request)] if outcome else _figures(request)
    told = (f"{ended:%H:%M:%S}", model, _kind(request), ", ".join(filter(None, parts)))
    return "  ".join(filter(None, told))


def _kind(request: Mapping[str, Any]) -> str:
    """Return what was asked for; empty where nobody has looked."""
    is_chat = request["is_chat"]
    return "" if is_chat is None else "chat" if is_chat else "completion"


def _outcome(status: int, reason: str) -> str:
    """Return how a request ended; empty: with a whole answer."""
    known = _STATUSES.get(status, f"HTTP status {status}")
    if not reason or not known or status == CLIENT_GONE:
        return known
    short = reason if len(reason) <= _MOST_REASON else f"{reason[:_MOST_REASON]}..."
    return f"{known.partition(':')[0]}: {short}"


def _figures(request: Mapping[str, Any]) -> list[str]:
    prompt, written = request.get("prompt_tokens"), request.get("completion_tokens")
    first_s, whole_s = request.get("first_s"), float(request["duration_s"])
    found = [f"{prompt} + {counted(written, 'token')}"] if prompt and written else []
    if request["is_chat"] is None:
        return []  # it was refused before anything was read
    if left_out := request.get("left_out"):
        found.append(f"without its {printable(str(left_out))}: the model has no place for them")
    found.append(duration(whole_s))
    if first_s is not None:
        found.append(f"the first after {duration(float(first_s))}")
    writing_s = whole_s - float(first_s or 0.0)
    if written and writing_s > LEAST_WRITING_S:
        found.append(f"{written / writing_s:.0f} tokens/s")
    return found


CLIENT_GONE: Final = 499

LEAST_WRITING_S: Final = 0.2
"""A shorter answer, or one that came in one piece, has no speed."""

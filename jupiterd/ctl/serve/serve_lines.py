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
    400: "refused: it can't be answered",
    404: "refused: no such model",
    429: "refused: too many wait",
    499: "the client went away",
    502: "the engine died",
    503: "refused: busy",
}


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
    what = "chat" if request["is_chat"] else "completion"
    model = printable(str(request["model"])) or "(no model)"
    status = int(request["status"])
    outcome = _STATUSES.get(status, f"HTTP status {status}")
    parts = [outcome, *_figures(request)] if outcome else _figures(request)
    return f"{ended:%H:%M:%S}  {model}  {what}  {', '.join(parts)}"


def _figures(request: Mapping[str, Any]) -> list[str]:
    prompt, written = request.get("prompt_tokens"), request.get("completion_tokens")
    first_s, whole_s = request.get("first_s"), float(request["duration_s"])
    found = [f"{prompt} + {counted(written, 'token')}"] if prompt and written else []
    found.append(duration(whole_s))
    if first_s is not None:
        found.append(f"the first after {duration(float(first_s))}")
    writing_s = whole_s - float(first_s or 0.0)
    if written and writing_s > LEAST_WRITING_S:
        found.append(f"{written / writing_s:.0f} tokens/s")
    return found


LEAST_WRITING_S: Final = 0.2
"""A shorter answer, or one that came in one piece, has no speed."""

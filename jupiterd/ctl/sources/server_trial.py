"""The check that a server answers one short prompt, sent from here before anything starts.

Owns the requests; `cycle.generation.server_protocol` reads the replies. A daemon tries again from
the machine that will generate, which has its own network path to the server. A server that requires
a key is tried only there.
"""

import time
from threading import Event
from typing import TYPE_CHECKING, Any, Final

from jupiterd.cycle.generation.server_protocol import (
    PATH,
    Again,
    Rejected,
    Reply,
    changed_request,
    read_reply,
    request_body,
)
from jupiterd.cycle.templates.prompt import WrittenAnswer
from jupiterd.errors import (
    GeneratorRefusedError,
    GeneratorUnreachableError,
    NotFoundError,
)

if TYPE_CHECKING:
    import httpx

CONNECT_TIMEOUT_S: Final = 10.0
ANSWER_TIMEOUT_S: Final = 60.0
"""Seconds. The server may have to finish other requests first, or to load its model."""

PAUSE_S: Final = 2.0
"""Seconds before the next request to a busy server that doesn't say how long to wait."""

LATER: Final = "it is busy, or loads its model; the cycle begins, and asks again when it generates"

MAX_TOKENS: Final = 16
MAX_CHANGES: Final = 3
MAX_NAMED: Final = 5
"""The highest number of a server's models that an error names."""

NO_LIST_HINT: Final = (
    "it lists none: write its address up to /v1, and behind the # the name that it was given"
)
LATE_HINT: Final = "it may be loading its model: ask it once yourself, and start again"


def check_answers(url: str, model: str, listed: list[str]) -> str:
    """Have the server answer one short prompt; return a notice if it is busy, else an empty text.

    Retries a busy server for up to ANSWER_TIMEOUT_S. Then accepts it without an answer if it took
    the prompt, answered HTTP 429, or named the time to wait.

    Args:
        url: the server's address.
        model: the model that is to answer, also if the server doesn't list it.
        listed: the models that the server lists, for the error's hint.

    Raises:
        GeneratorRefusedError: it requires a key, or rejects the prompt for another reason.
        GeneratorUnreachableError: it doesn't answer, or answers only with errors.
        NotFoundError: it has no such model.
    """
    match _reply(url, model):
        case None:
            waited = f"took one short prompt, and hasn't answered it within {ANSWER_TIMEOUT_S:g} s"
            return f"{url} {waited}: {LATER}"
        case WrittenAnswer():
            return ""
        case Again(status=429, reason=reason):
            return f"{url} has too much to do ({reason}): {LATER}"
        case Again(is_busy=True, pause_s=pause_s, reason=reason) if pause_s is not None:
            return f"{url} has no time before {pause_s:g} s from now ({reason}): {LATER}"
        case Again(reason=reason, is_busy=is_busy):
            hint = LATE_HINT if is_busy else _failing_hint(model, listed)
            raise GeneratorUnreachableError(f"{url} doesn't answer: {reason}", hint)
        case Rejected(reason=reason, wants_key=True):
            raise GeneratorRefusedError(f"{url} asks for a key: {reason}")
        case Rejected(reason=reason, is_final=True):
            known = _listing_hint(listed) or NO_LIST_HINT
            raise NotFoundError(f"{url} has no model {model}: {reason}", known)
        case Rejected(reason=reason):
            raise GeneratorRefusedError(f"{url} doesn't answer a short prompt: {reason}")


def _listing_hint(listed: list[str]) -> str:
    return f"it lists {', '.join(listed[:MAX_NAMED])}" if listed else ""


def _failing_hint(model: str, listed: list[str]) -> str:
    """Return a hint for a server that fails: some do so for a model that they don't have."""
    looked = f"look at what it logs: it may not have {model}, or not be able to load it"
    return "; ".join(filter(None, [looked, _listing_hint(listed)]))


def _reply(url: str, model: str) -> Reply | None:
    """Return the last reply, after changed requests and waits; None: no answer in time."""
    import httpx

    until_s = time.monotonic() + ANSWER_TIMEOUT_S

    timeout = httpx.Timeout(ANSWER_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
    body = request_body(model, "Say hello.", MAX_TOKENS, temperature=0.0)
    with httpx.Client(timeout=timeout) as client:
        found = _post(client, url, body)
        for _ in range(MAX_CHANGES):
            if not (isinstance(found, Rejected) and found.changes):
                break
            body = changed_request(body, found.changes)
            found = _post(client, url, body)
        while isinstance(found, Again) and found.is_busy:
            pause_s = PAUSE_S if found.pause_s is None else found.pause_s
            if time.monotonic() + pause_s >= until_s:
                break
            Event().wait(pause_s)  # as long as the server asked for
            found = _post(client, url, body)
    return found


def _post(client: "httpx.Client", url: str, body: dict[str, Any]) -> Reply | None:
    import httpx

    try:
        reply = client.post(f"{url}{PATH}", json=body)
    except httpx.ReadTimeout:
        return None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        return Again(f"it can't be reached: {reason}")
    return read_reply(reply.status_code, reply.headers, reply.content, body)

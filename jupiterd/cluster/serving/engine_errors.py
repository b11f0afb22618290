"""What engines say of requests that they don't answer, in the words that clients know.

Owns the forms in which four programs tell an error. Doesn't know HTTP beyond its statuses.
"""

import json
from collections.abc import Mapping
from typing import Any, cast

from jupiterd.cluster.serving.engine_request import check_length
from jupiterd.errors import BusyError, JupiterError, UsageError, WorkFailedError
from jupiterd.formats import printable

_MOST_CHARACTERS = 400
_BUSY = frozenset({429, 503})
_LEAST_OF_SERVER = 500


def told_error(engine: str, status: int, body: bytes) -> JupiterError:
    """Return the error for an answer whose status isn't 200.

    PromptTooLongError with both numbers where llama.cpp tells them, BusyError where an engine can't
    take a request now, UsageError where the request is at fault, else WorkFailedError.
    """
    fields = _fields(body)
    prompt, context = fields.get("n_prompt_tokens"), fields.get("n_ctx")
    if isinstance(prompt, int) and isinstance(context, int):
        try:
            check_length(prompt, context)
        except JupiterError as error:
            return error
    text = printable(str(fields.get("message") or "it gives no reason"))[:_MOST_CHARACTERS]
    return error_of(engine, status, text)


def error_of(engine: str, status: int, text: str) -> JupiterError:
    """Return the error of an engine's status and words."""
    if status in _BUSY:
        return BusyError(f"{engine} can't take a request now: {text}")
    if status < _LEAST_OF_SERVER:
        return UsageError(f"{engine} refuses the request: {text}", "check the request's fields")
    return WorkFailedError(f"{engine} failed: {text}", "logs/ of the state folder has its output")


def _fields(body: bytes) -> Mapping[str, Any]:
    """Return the error's fields: an object, a text, or FastAPI's `detail`."""
    try:
        document: object = json.loads(body)
    except ValueError:
        return {"message": body.decode("utf-8", "replace").strip()}
    if not isinstance(document, dict):
        return {}
    said = cast("Mapping[str, Any]", document)
    error: object = said.get("error", said.get("detail", said.get("message")))
    if isinstance(error, dict):
        return cast("Mapping[str, Any]", error)
    return {"message": error if isinstance(error, str) else json.dumps(error)}

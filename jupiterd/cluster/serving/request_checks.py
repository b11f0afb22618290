"""From the bytes of a request for text to one that engines can rely on.

Owns that whatever was sent gives either a checked request or an error in OpenAI's form. Unknown
fields are left out, as clients send many of their own, but for those that would change the answer
(`unsupported_fields`), or are misspelt ones that would (`misspelt_fields`); a field that is null
counts as not sent. Doesn't know HTTP, nor which models there are.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, cast

from jupiterd.cluster.serving.answer_request import AnswerRequest
from jupiterd.cluster.serving.field_checks import (
    OF_CHAT,
    OF_COMPLETIONS,
    flag,
    is_object,
    shown,
)
from jupiterd.cluster.serving.misspelt_fields import check_misspelt_fields
from jupiterd.cluster.serving.prompt_checks import messages_of, prompts_of
from jupiterd.cluster.serving.request_error import RequestError, refused
from jupiterd.cluster.serving.unsupported_fields import check_unsupported_fields

MAX_MODEL_CHARACTERS = 4096
"""A name, or the path of a folder."""


@dataclass(frozen=True)
class CheckedRequest:
    """What a client asks for, of which model."""

    model: str
    """As the client wrote it; empty where it named none."""
    requests: tuple[AnswerRequest, ...]
    """One for each prompt: a conversation is one."""
    wants_usage: bool
    """A stream's last event is to tell how many tokens there were."""
    user: str
    """Whom the client says it asks for; empty where it doesn't say."""

    @property
    def request(self) -> AnswerRequest:
        """Return the first; what isn't of the prompt is the same in all."""
        return self.requests[0]


def checked_request(body: bytes, *, is_chat: bool) -> CheckedRequest:
    """Return what the body of a request asks for.

    Raises:
        RequestError: it can't be read, or a field of it is wrong.
    """
    said = _decoded(body)
    model = _model(said.pop("model", ""))
    try:
        return _checked(model, said, is_chat=is_chat)
    except RequestError as error:
        error.model = model
        raise


def _checked(model: str, said: Mapping[str, Any], *, is_chat: bool) -> CheckedRequest:
    check_misspelt_fields(said, is_chat=is_chat)
    wants_usage = _wants_usage(said.get("stream_options"), said.get("stream"))
    check_unsupported_fields(said, is_chat=is_chat)
    prompts = _prompts(said, is_chat=is_chat)
    fields = {**_fields(said, is_chat=is_chat), **prompts[0]}
    _check_together(fields, is_chat=is_chat)
    user, is_streamed = str(fields.pop("user", "")), bool(fields.pop("stream", False))
    fields["stream"] = is_streamed
    if wants_usage:
        fields["stream_options"] = {"include_usage": True}
    requests = (AnswerRequest(is_chat, fields | prompt, is_streamed) for prompt in prompts)
    return CheckedRequest(model, tuple(requests), wants_usage, user)


def _decoded(body: bytes) -> dict[str, Any]:
    try:
        found: object = json.loads(body, parse_constant=_no_number)
        json.dumps(found, ensure_ascii=False).encode()  # half of a surrogate pair is no text
    except RequestError:
        raise
    except (ValueError, RecursionError) as error:
        raise refused(f"the body of the request is no JSON: {_reason(error)}") from error
    if not isinstance(found, dict):
        raise refused(f"the body of the request must be an object, not {shown(found)}")
    said = cast("dict[str, Any]", found)
    return {name: value for name, value in said.items() if value is not None}


def _no_number(text: str) -> NoReturn:
    raise refused(f"the body of the request is no JSON: {text} is no number there")


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, UnicodeEncodeError):
        return "it has half of a surrogate pair"
    return str(error)


def _model(value: object) -> str:
    if not isinstance(value, str) or len(value) > MAX_MODEL_CHARACTERS:
        raise refused(f"model must be a model's name, not {shown(value)}", "model")
    return value


def _wants_usage(options: object, stream: object) -> bool:
    if options is None:
        return False
    found = is_object("stream_options", options).get("include_usage") or False
    if stream is not True:
        raise refused("stream_options goes with stream: true", "stream_options")
    return flag("stream_options.include_usage", found)


def _fields(said: Mapping[str, Any], *, is_chat: bool) -> dict[str, Any]:
    """Return the checked fields; those without a meaning for engines are only checked."""
    table = OF_CHAT if is_chat else OF_COMPLETIONS
    found = {name: check(name, said[name]) for name, check in table.items() if name in said}
    if (most := found.pop("max_completion_tokens", None)) is not None:
        found["max_tokens"] = most
    return {name: value for name, value in found.items() if value is not None}


def _prompts(said: Mapping[str, Any], *, is_chat: bool) -> list[dict[str, Any]]:
    """Return what differs between the requests that are made of one."""
    name = "messages" if is_chat else "prompt"
    if name not in said:
        raise refused(f"the request has no {name}", name)
    found = [messages_of(said[name])] if is_chat else prompts_of(said[name])
    return [{name: each} for each in found]


def _check_together(fields: Mapping[str, Any], *, is_chat: bool) -> None:
    if fields.get("max_tokens") == 0 and not fields.get("echo"):
        raise refused("max_tokens must be 1 or more, not 0", "max_tokens")
    if is_chat and "top_logprobs" in fields and not fields.get("logprobs"):
        raise refused("top_logprobs goes with logprobs: true", "top_logprobs")

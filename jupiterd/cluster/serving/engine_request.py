"""What an engine is sent for a request, and whether its prompt could be too long.

Owns both, with what engines do otherwise than OpenAI. Doesn't know HTTP, or tokenizers: a token
has at least one byte, so that only long prompts need be counted.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from jupiterd.cluster.serving.answer_request import AnswerRequest
from jupiterd.cluster.serving.engine_choice import MLX, TRANSFORMERS
from jupiterd.cluster.serving.engine_fields import heeded_fields, wants_logprobs
from jupiterd.errors import PromptTooLongError

COMPLETION_TOKENS: Final = 16
"""Of a completion whose request names no number, as OpenAI has it."""

TEMPLATE_BYTES: Final = 512
"""That a chat template may add to a conversation, such as a system message of its own."""
_TURN_BYTES = 64


def path_of(request: AnswerRequest) -> str:
    """Return where an engine takes the request."""
    return "/v1/chat/completions" if request.is_chat else "/v1/completions"


def is_gathered(engine: str, request: AnswerRequest) -> bool:
    """Say whether an answer that isn't streamed is asked for as a stream nevertheless.

    mlx-lm's and transformers' servers notice that a client has gone only while they stream to it.
    What they tell in no stream, such as logprobs, can't be asked for so.
    """
    is_whole_alone = wants_logprobs(request.body) or _number(request, "n", "best_of") > 1
    return engine in {MLX, TRANSFORMERS} and not request.is_streamed and not is_whole_alone


def body_for(
    engine: str, model_field: str, request: AnswerRequest, context_tokens: int
) -> dict[str, Any]:
    """Return the body that an engine is sent.

    Raises:
        UnsupportedFieldError: the engine can't do what is asked for, and would say nothing of it.
    """
    body = {**heeded_fields(engine, request), "model": model_field}
    body["max_tokens"] = min(_most_tokens(request, context_tokens), context_tokens)
    body.pop("max_completion_tokens", None)
    body["stream"] = request.is_streamed or is_gathered(engine, request)
    if body["stream"]:
        body["stream_options"] = {"include_usage": True}
    return body


def could_be_too_long(request: AnswerRequest, context_tokens: int) -> bool:
    """Say whether a prompt may have more tokens than the context, and must be counted."""
    return sum(map(_size, _texts(request))) >= context_tokens


def check_length(prompt_tokens: int, context_tokens: int) -> None:
    """Raise PromptTooLongError where a prompt leaves no room for an answer."""
    if prompt_tokens >= context_tokens:
        raise PromptTooLongError(
            f"the prompt has {prompt_tokens:,} tokens, and the model's context {context_tokens:,}",
            "shorten the prompt; the answer needs room in the context, too",
        )


def _most_tokens(request: AnswerRequest, context_tokens: int) -> int:
    asked = request.body.get("max_completion_tokens") or request.body.get("max_tokens")
    if isinstance(asked, int):
        return asked
    return context_tokens if request.is_chat else COMPLETION_TOKENS


def _texts(request: AnswerRequest) -> Iterator[object]:
    """Yield what becomes part of the prompt."""
    if not request.is_chat:
        yield request.body.get("prompt")
        return
    yield "x" * TEMPLATE_BYTES
    for message in request.body.get("messages", ()):
        yield "x" * _TURN_BYTES
        yield message
    yield request.body.get("tools")


def _size(value: object) -> int:
    """Return the most tokens that a part of a prompt can have: a number is a token itself."""
    if isinstance(value, str):
        return len(value.encode("utf-8", "replace"))
    if isinstance(value, Mapping):
        return sum(map(_size, value)) + sum(map(_size, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(_size, value))
    return 0 if value is None else 8


def _number(request: AnswerRequest, *names: str) -> int:
    """Return the largest of these numbers in a request; 0 where it has none."""
    return max(
        (int(n) for name in names if isinstance(n := request.body.get(name), int)), default=0
    )

"""Which fields of a request an engine can't heed, and would say nothing of.

Owns what was found in the sources of four programs: a field that changes what an answer means is
refused by its name, unless its value is the usual one; then it is left out, as some refuse fields
that they don't know. Doesn't know HTTP.
"""

from collections.abc import Mapping
from typing import Any, Final

from jupiterd.cluster.serving.answer_request import AnswerRequest
from jupiterd.cluster.serving.engine_choice import LLAMA, MLX, TRANSFORMERS, VLLM
from jupiterd.errors import UnsupportedFieldError

MLX_TOP_LOGPROBS: Final = 10
_LEAVE_OUT: Final = "leave it out, or name another engine: jupiterctl model serve --engine"

_USUAL: Final[Mapping[str, tuple[object, ...]]] = {
    "echo": (False,),
    "logit_bias": ({},),
    "logprobs": (False,),
    "min_p": (0,),
    "presence_penalty": (0,),
    "repetition_penalty": (1,),
    "tool_choice": ("auto",),
    "top_k": (0,),
    "top_logprobs": (0,),
}
"""Field -> the values that change nothing."""

_LACKING: Final[Mapping[str, frozenset[str]]] = {
    LLAMA: frozenset({"echo"}),
    MLX: frozenset({"echo", "tool_choice"}),
    TRANSFORMERS: frozenset(_USUAL),
    VLLM: frozenset(),
}
_OF_TEXT_ALONE: Final = frozenset({MLX, TRANSFORMERS})


def heeded_fields(engine: str, request: AnswerRequest) -> dict[str, Any]:
    """Return the fields of a request as an engine gets them.

    Raises:
        UnsupportedFieldError: the engine can't do what one of them asks for.
    """
    fields = _without_needless_tools(request.body)
    for name in sorted(_lacking(engine, request) & set(fields)):
        if not _is_usual(name, fields[name]):
            raise UnsupportedFieldError(f"{name}: {engine} doesn't have it", _LEAVE_OUT)
        del fields[name]
    if engine in _OF_TEXT_ALONE and isinstance(fields.get("prompt"), list):
        raise UnsupportedFieldError(
            f"prompt: {engine} reads text, and no ids of tokens", "send the prompt as text"
        )
    if engine == MLX:
        _check_mlx(fields, request)
    if engine == TRANSFORMERS:
        _fit_transformers(fields)
    if engine == LLAMA and "repetition_penalty" in fields:
        fields["repeat_penalty"] = fields.pop("repetition_penalty")
    return _with_logprobs(engine, fields, is_chat=request.is_chat)


def wants_logprobs(fields: Mapping[str, Any]) -> bool:
    """Say whether a request wants to know how likely tokens were; 0 asks for the written ones."""
    asked = fields.get("logprobs")
    return asked is not None and asked is not False


def _lacking(engine: str, request: AnswerRequest) -> frozenset[str]:
    is_biased = engine == TRANSFORMERS and request.is_chat  # it heeds a bias there alone
    return _LACKING[engine] - ({"logit_bias"} if is_biased else set[str]())


def _is_usual(name: str, value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if name == "logprobs" and is_number:
        return False
    return any(value == usual for usual in _USUAL[name])


def _without_needless_tools(body: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out tools that aren't to be used, and a choice among none."""
    fields = dict(body)
    if not fields.get("tools") or fields.get("tool_choice") == "none":
        fields.pop("tools", None)
        fields.pop("tool_choice", None)
    return fields


def _check_mlx(fields: Mapping[str, Any], request: AnswerRequest) -> None:
    if not wants_logprobs(fields):
        return
    if request.is_streamed:
        raise UnsupportedFieldError(
            f"logprobs: {MLX} tells them in no stream", "leave stream out, or logprobs"
        )
    name = "top_logprobs" if request.is_chat else "logprobs"
    if int(fields.get(name) or 0) > MLX_TOP_LOGPROBS:
        raise UnsupportedFieldError(
            f"{name}: {MLX} tells of at most {MLX_TOP_LOGPROBS} tokens", "ask for fewer"
        )


def _fit_transformers(fields: dict[str, Any]) -> None:
    """Say biases as transformers takes them: as fractions, and none where there are none."""
    if bias := fields.pop("logit_bias", None):
        fields["logit_bias"] = {token: float(value) for token, value in bias.items()}
    if fields.get("frequency_penalty", 0) <= -1:
        raise UnsupportedFieldError(
            f"frequency_penalty: {TRANSFORMERS} takes more than -1", "ask for a larger one"
        )


def _with_logprobs(engine: str, fields: dict[str, Any], *, is_chat: bool) -> dict[str, Any]:
    """Ask for the likelihood of tokens in an engine's own words."""
    if not wants_logprobs(fields):
        return fields
    if engine == LLAMA:  # it takes 0 for none at all, and tells of 20 where nobody says
        name = "top_logprobs" if is_chat else "logprobs"
        return {**fields, name: max(1, int(fields.get(name) or 0))}
    if engine == MLX and not is_chat:
        return {**fields, "logprobs": True, "top_logprobs": int(fields["logprobs"])}
    return fields

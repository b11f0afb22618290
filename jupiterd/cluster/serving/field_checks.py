"""Which fields a request for text may have, and which values each of them.

Owns one check for each field of OpenAI's API that engines know, and for the samplers that most of
them have beside it. Doesn't know how fields depend on each other (`request_checks`).
"""

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, Final, cast

from jupiterd.cluster.serving.request_error import refused

FieldCheck = Callable[[str, object], Any]
"""Takes a field's name and value; returns the value that an engine gets, or raises."""

MAX_TOKENS: Final = 1 << 20
"""More than any model that is trained here has as its context."""
MAX_STOPS: Final = 16
MAX_STOP_CHARACTERS: Final = 1000
MAX_LOGIT_BIAS: Final = 1024
MAX_TOP_LOGPROBS: Final = 20
LARGEST_SEED: Final = 2**63 - 1


def number(low: float, high: float) -> FieldCheck:
    """Return the check of a number; both bounds are allowed."""

    def check(name: str, value: object) -> float:
        is_odd = isinstance(value, float) and not isfinite(value)
        if isinstance(value, bool) or not isinstance(value, int | float) or is_odd:
            raise refused(f"{name} must be a number, not {shown(value)}", name)
        if not low <= value <= high:
            raise refused(f"{name} must be from {low:g} to {high:g}, not {shown(value)}", name)
        return value

    return check


def whole(low: int, high: int) -> FieldCheck:
    """Return the check of a whole number; both bounds are allowed."""

    def check(name: str, value: object) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise refused(f"{name} must be a whole number, not {shown(value)}", name)
        if not low <= value <= high:
            raise refused(f"{name} must be from {low} to {high}, not {shown(value)}", name)
        return value

    return check


def flag(name: str, value: object) -> bool:
    """Check a field that is true or false."""
    if not isinstance(value, bool):
        raise refused(f"{name} must be true or false, not {shown(value)}", name)
    return value


def text(name: str, value: object) -> str:
    """Check a field that is text."""
    if not isinstance(value, str):
        raise refused(f"{name} must be text, not {shown(value)}", name)
    return value


def whom(name: str, value: object) -> str:
    """Check whom a request is for: a text, or as Open WebUI sends it an object with an id."""
    found = cast("dict[str, object]", value).get("id") if isinstance(value, dict) else value
    return text(name, found)


def is_object(name: str, value: object) -> Mapping[str, Any]:
    """Check a field that is an object."""
    if not isinstance(value, dict):
        raise refused(f"{name} must be an object, not {shown(value)}", name)
    return cast("dict[str, Any]", value)


def stops(name: str, value: object) -> list[str]:
    """Check what ends an answer: a text, or several."""
    found = cast("list[object]", value if isinstance(value, list) else [value])
    if len(found) > MAX_STOPS:
        raise refused(f"{name} may have at most {MAX_STOPS} texts, not {len(found)}", name)
    for each in found:
        if not isinstance(each, str) or not 0 < len(each) <= MAX_STOP_CHARACTERS:
            limit = f"of 1 to {MAX_STOP_CHARACTERS} characters"
            raise refused(
                f"{name} must be text {limit}, or a list of such, not {shown(each)}", name
            )
    return cast("list[str]", found)


def logit_bias(name: str, value: object) -> Mapping[str, float]:
    """Check what is added to the logits of some tokens."""
    found = is_object(name, value)
    if len(found) > MAX_LOGIT_BIAS:
        raise refused(f"{name} may name at most {MAX_LOGIT_BIAS} tokens", name)
    for token in found:
        if not (token.isascii() and token.isdecimal() and len(token) < 10):
            raise refused(f"{name} must have ids of tokens as its keys, not {shown(token)}", name)
    return {token: number(-100, 100)(name, bias) for token, bias in found.items()}


def only(*allowed: object, why: str) -> FieldCheck:
    """Return the check of a field that no engine here does otherwise."""

    def check(name: str, value: object) -> None:
        if value not in allowed or isinstance(value, bool) != isinstance(allowed[0], bool):
            raise refused(f"{name}: {why}, not {shown(value)}", name)

    return check


def plain_text(name: str, value: object) -> None:
    """Check that the form of an answer is text: no engine here is held to a schema."""
    if is_object(name, value).get("type") != "text":
        raise refused(f"{name}: only {{'type': 'text'}} can be had", name)


def listed_objects(name: str, value: object) -> list[Mapping[str, Any]]:
    """Check a field that is a list of objects."""
    if not isinstance(value, list):
        raise refused(f"{name} must be a list, not {shown(value)}", name)
    return [is_object(name, each) for each in cast("list[object]", value)]


def anything(_name: str, value: object) -> object:
    """Leave a field to the engine."""
    return value


_ONE_ANSWER: Final = only(1, why="each request has one answer; send several requests instead")

OF_BOTH: Final[Mapping[str, FieldCheck]] = {
    "max_tokens": whole(0, MAX_TOKENS),
    "temperature": number(0, 2),
    "top_p": number(0, 1),
    "top_k": whole(0, 1_000_000),
    "min_p": number(0, 1),
    "repetition_penalty": number(0, 10),
    "presence_penalty": number(-2, 2),
    "frequency_penalty": number(-2, 2),
    "seed": whole(-LARGEST_SEED - 1, LARGEST_SEED),
    "stop": stops,
    "stream": flag,
    "logit_bias": logit_bias,
    "n": _ONE_ANSWER,
    "user": whom,
}

OF_COMPLETIONS: Final[Mapping[str, FieldCheck]] = {
    **OF_BOTH,
    "logprobs": whole(0, MAX_TOP_LOGPROBS),
    "echo": flag,
    "best_of": _ONE_ANSWER,
    "suffix": only("", why="no engine here writes what stands between two texts"),
}

OF_CHAT: Final[Mapping[str, FieldCheck]] = {
    **OF_BOTH,
    "max_completion_tokens": whole(1, MAX_TOKENS),
    "logprobs": flag,
    "top_logprobs": whole(0, MAX_TOP_LOGPROBS),
    "response_format": plain_text,
    "tools": listed_objects,
    "tool_choice": anything,
    "chat_template_kwargs": is_object,
}


def shown(value: object) -> str:
    """Return a value as a message has it: short, on one line."""
    found = repr(value)
    return found if len(found) <= MAX_SHOWN else f"{found[:MAX_SHOWN]}..."


MAX_SHOWN: Final = 60

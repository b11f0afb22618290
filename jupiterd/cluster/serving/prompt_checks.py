"""What may stand in a prompt, and in the messages of a conversation.

Owns their forms, and the one that engines get: text alone, in roles that templates know. Doesn't
know tokens, nor how long a model's context is.
"""

from collections.abc import Mapping
from typing import Any, Final, cast

from jupiterd.cluster.serving.field_checks import is_object, shown, text
from jupiterd.cluster.serving.request_error import refused

ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool"})
MAX_MESSAGES: Final = 10_000
MAX_PROMPTS: Final = 64
"""Of one request for completions."""
LARGEST_TOKEN: Final = 2**31 - 1


def prompts_of(value: object) -> list[str] | list[list[int]] | list[str | list[int]]:
    """Return a completion's prompts, each its text or the ids of its tokens.

    A list of numbers is one prompt; any other list has a prompt in each place.
    """
    prompts = cast("list[object]", value) if isinstance(value, list) else [value]
    if all(map(_is_token, prompts)):
        return [_prompt_of(value)]  # also where there is none
    if len(prompts) > MAX_PROMPTS:
        raise refused(f"prompt may have at most {MAX_PROMPTS} texts, not {len(prompts)}", "prompt")
    return [_prompt_of(each) for each in prompts]


def _prompt_of(value: object) -> str | list[int]:
    if isinstance(value, str):
        return value
    if value == []:
        raise refused("prompt is an empty list: it needs a text, or ids of tokens", "prompt")
    tokens = cast("list[object]", value) if isinstance(value, list) else []
    if not tokens or not all(map(_is_token, tokens)):
        raise refused("prompt must be text, or a list of ids of tokens, or of such", "prompt")
    return cast("list[int]", tokens)


def messages_of(value: object) -> list[dict[str, Any]]:
    """Return a conversation's messages, each with its content as one text."""
    if not isinstance(value, list) or not value:
        raise refused("messages must be a list of one message or more", "messages")
    found = cast("list[object]", value)
    if len(found) > MAX_MESSAGES:
        raise refused(f"messages may have at most {MAX_MESSAGES} entries", "messages")
    return [_message(f"messages[{place}]", each) for place, each in enumerate(found)]


def _message(name: str, value: object) -> dict[str, Any]:
    said = is_object(name, value)
    role = said.get("role")
    if not isinstance(role, str) or role not in ROLES:
        known = ", ".join(sorted(ROLES))
        raise refused(f"{name}.role must be one of {known}, not {shown(role)}", f"{name}.role")
    content = _content(f"{name}.content", said)
    rest = {key: said[key] for key in ("name", "tool_calls", "tool_call_id") if said.get(key)}
    return {"role": "system" if role == "developer" else role, "content": content, **rest}


def _content(name: str, said: Mapping[str, Any]) -> str:
    content = said.get("content")
    if isinstance(content, str):
        return content
    if content is None and said.get("tool_calls"):
        return ""
    if isinstance(content, list) and content:
        parts = cast("list[object]", content)
        return "".join(_part(f"{name}[{place}]", each) for place, each in enumerate(parts))
    raise refused(f"{name} must be text, or a list of texts, not {shown(content)}", name)


def _part(name: str, value: object) -> str:
    part = is_object(name, value)
    if part.get("type") != "text":
        raise refused(f"{name}: only parts of type text can be read", name)
    return text(f"{name}.text", part.get("text"))


def _is_token(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_TOKEN

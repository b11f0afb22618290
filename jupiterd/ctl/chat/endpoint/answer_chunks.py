"""What the endpoint tells: about a model, and with each event of an answer that it streams.

Pure. Owns reading OpenAI's forms of both, of chats and of completions. Doesn't know HTTP. A field
that isn't there, or isn't of its type, counts as not told.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from jupiterd.ctl.chat.endpoint.served_errors import told_error
from jupiterd.errors import JupiterError
from jupiterd.formats import printable

Value = TypeVar("Value")

END = "[DONE]"
"""The data of a stream's last event."""


@dataclass(frozen=True)
class ModelFacts:
    """What is known of a model before it answers; None, or empty: nobody said."""

    name: str
    is_chat: bool | None = None
    """It has a chat template; else it completes text."""
    context_tokens: int | None = None
    node: str = ""
    """The machine that answers."""
    engine: str = ""
    is_loaded: bool | None = None
    called: str = ""
    """What else it is called: `promoted` is the model of some round."""

    @property
    def title(self) -> str:
        """Return its name on one line; of a folder, or of the base of another, the last part."""
        is_last = self.is_folder or self.name.endswith("/base")
        return printable(self.name.rstrip("/").rpartition("/")[2] if is_last else self.name)

    @property
    def is_folder(self) -> bool:
        """Say whether it is a folder of this machine."""
        return self.name.startswith("/")

    @property
    def place(self) -> str:
        """Return where it answers, and with what."""
        return f"{self.node} ({self.engine})" if self.node and self.engine else self.node


def facts_of(name: str, content: bytes) -> ModelFacts:
    """Return what `/v1/models/{id}` tells of the model that people call `name`."""
    told = _mapping(_mapping(_decoded(content)).get("jupiter"))
    return ModelFacts(
        name,
        _of_type(told.get("chat"), bool),
        _of_type(told.get("context_tokens"), int) or None,
        printable(_of_type(told.get("node"), str) or ""),
        printable(_of_type(told.get("engine"), str) or ""),
        _of_type(told.get("loaded"), bool),
        printable(_of_type(told.get("name"), str) or ""),
    )


def names_in(content: bytes) -> list[str]:
    """Return the names of the models that `/v1/models` tells of."""
    rows = _mapping(_decoded(content)).get("data")
    found = [_mapping(row).get("id") for row in rows] if isinstance(rows, list) else []
    return [printable(name) for name in found if isinstance(name, str)]


@dataclass(frozen=True)
class Chunk:
    """One event of an answer."""

    text: str = ""
    thought: str = ""
    """What a model that reasons writes for itself, before it answers."""
    finish: str = ""
    """Why the answer ended: `stop`, `length`, ...; empty: it goes on."""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


def chunk_of(data: str) -> Chunk:
    """Return what an event brings.

    Raises:
        JupiterError: it tells an error, or isn't what such events are.
    """
    told = _decoded(data)
    if not isinstance(told, dict):
        raise JupiterError("the daemon sent an answer that can't be read")
    fields = _mapping(told)
    if fields.get("error"):
        raise told_error(fields["error"])
    choices = fields.get("choices")
    first = _mapping(choices[0]) if isinstance(choices, Sequence) and choices else {}
    usage = _mapping(fields.get("usage"))
    delta = _mapping(first.get("delta"))
    text = first.get("text") or delta.get("content")
    thought = delta.get("reasoning_content") or delta.get("reasoning")  # llama.cpp and mlx-lm
    return Chunk(
        _of_type(text, str) or "",
        _of_type(thought, str) or "",
        _of_type(first.get("finish_reason"), str) or "",
        _of_type(usage.get("prompt_tokens"), int),
        _of_type(usage.get("completion_tokens"), int),
    )


def _decoded(content: bytes | str) -> object:
    try:
        return json.loads(content)
    except ValueError:
        return None


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _of_type(value: object, kind: type[Value]) -> Value | None:
    return value if type(value) is kind else None

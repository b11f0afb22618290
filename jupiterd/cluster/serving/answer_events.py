"""The answers of engines as clients see them, whichever engine it was.

Owns what is changed: `model` is the name that was asked for, and how many tokens there were comes
in an event of its own, if that was asked for; how likely tokens were has the form of completions
there, and so have the kind of an answer and its id. What the engine wrote stays as it is. Where an
engine counts no tokens that event says null: nothing is made up. Doesn't know sockets, nor engines
by their names.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from jupiterd.cluster.serving.joined_answers import placed, summed_usage
from jupiterd.cluster.serving.token_logprobs import of_completion

DONE: Final = b"data: [DONE]\n\n"
_EVENT_END: Final = b"\n\n"
_DATA: Final = b"data:"
_DONE_DATA: Final = b"[DONE]"
_ID_OF_CHAT: Final = "chatcmpl-"
_ID_OF_COMPLETION: Final = "cmpl-"


def whole_answer(
    body: bytes, model: str, *, is_chat: bool = True
) -> tuple[bytes, Mapping[str, Any]]:
    """Return an answer that isn't streamed, of a model of that name, and its count of tokens."""
    said = _decoded(body)
    if said is None:
        return body, {}
    said["model"] = model
    _with_kind(said, "chat.completion", is_chat=is_chat)
    _with_logprobs(said, 0)
    return json.dumps(said).encode(), _usage_of(said) or {}


@dataclass
class EventStream:
    """One streamed answer, taken in pieces that may be cut anywhere."""

    model: str
    """What the client calls it."""
    wants_usage: bool
    usage: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the engine said of tokens; empty: nothing yet."""
    is_done: bool = False
    """The engine has ended it in order."""
    is_chat: bool = True
    place: int = 0
    """Of the prompt that is answered, among several of one request."""
    is_last: bool = True
    """No other answer follows in the same stream."""
    before: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the answers before it cost."""
    answer_id: str = ""
    """Of the answers before it in the same stream, and of its own; empty: the engine's."""
    _written: int = 0
    """Characters of a completion so far."""
    _rest: bytes = b""
    _last: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Take what came; yield the whole events that clients get."""
        *events, self._rest = (self._rest + piece).replace(b"\r\n", b"\n").split(_EVENT_END)
        for event in events:
            yield from self._event(event)

    def end(self) -> Iterator[bytes]:
        """Yield what is missing at the end of the engine's answer."""
        if self._rest.strip():
            yield from self._event(self._rest)
        if not self.is_done:
            yield from self._ended()

    def _event(self, event: bytes) -> Iterator[bytes]:
        data = event.strip()
        if not data or self.is_done:
            return
        if not data.startswith(_DATA):
            yield event + _EVENT_END  # a comment, with which engines show that they are alive
        elif data.removeprefix(_DATA).strip() == _DONE_DATA:
            yield from self._ended()
        elif (said := _decoded(data.removeprefix(_DATA))) is None:
            yield event + _EVENT_END
        else:
            yield from self._chunk(said)

    def _chunk(self, said: dict[str, Any]) -> Iterator[bytes]:
        if usage := _usage_of(said):
            self.usage = usage
        said.pop("usage", None)
        said["model"] = self.model
        _with_kind(said, "chat.completion.chunk", is_chat=self.is_chat)
        self.answer_id = self.answer_id or str(said.get("id") or "")
        if self.place:
            said["id"] = self.answer_id
            said["choices"] = [placed(each, self.place) for each in said.get("choices") or ()]
        self._written += _with_logprobs(said, self._written)
        self._last = said
        if said.get("choices") or "error" in said:
            yield _line({**said, "usage": None} if self.wants_usage else said)

    def _ended(self) -> Iterator[bytes]:
        self.is_done = True
        if not self.is_last:
            return
        if self.wants_usage:
            usage = summed_usage((self.before, self.usage)) if self.before else self.usage
            yield _line({**self._last, "choices": [], "usage": usage or None})
        yield DONE


def _with_kind(said: dict[str, Any], of_chat: str, *, is_chat: bool) -> None:
    """Give an answer the kind and the id that clients know: llama.cpp's and mlx-lm's are mixed."""
    if "choices" not in said:
        return
    said["object"] = of_chat if is_chat else "text_completion"
    known = said.get("id")
    if not is_chat and isinstance(known, str) and known.startswith(_ID_OF_CHAT):
        said["id"] = _ID_OF_COMPLETION + known.removeprefix(_ID_OF_CHAT)


def _with_logprobs(said: Mapping[str, Any], offset: int) -> int:
    """Put what is said of a completion's tokens into its form; return how long its text is."""
    choices = said.get("choices")
    first = cast("list[object]", choices)[:1] if isinstance(choices, list) else []
    match first:
        case [{"text": str(text), "logprobs": dict(logprobs)} as choice]:
            found = of_completion(cast("dict[str, Any]", logprobs), offset)
            if found is not None:
                cast("dict[str, Any]", choice)["logprobs"] = found
        case [{"text": str(text)}]:
            pass
        case _:
            return 0
    return len(text)


def _line(said: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(said).encode() + _EVENT_END


def _usage_of(said: Mapping[str, Any]) -> Mapping[str, Any] | None:
    found = said.get("usage")
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def _decoded(data: bytes) -> dict[str, Any] | None:
    try:
        found: object = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None

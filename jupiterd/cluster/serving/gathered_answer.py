"""One whole answer out of the events of an engine's stream.

Owns putting them together, for clients that want no stream from engines that must be asked for one.
Doesn't know sockets, nor what clients are told of the model (`answer_events`).
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

_END: Final = b"\n\n"
_DATA: Final = b"data:"


@dataclass
class GatheredAnswer:
    """One answer out of the events of its stream."""

    is_chat: bool
    _first: dict[str, Any] = field(default_factory=dict[str, Any])
    _text: list[str] = field(default_factory=list[str])
    _reasoning: list[str] = field(default_factory=list[str])
    _calls: list[Any] = field(default_factory=list[Any])
    _finish: str | None = None
    _usage: object = None
    _rest: bytes = b""
    error: object = None
    """What an engine said of a failure, in the place of an event; None: nothing."""

    def add(self, piece: bytes) -> None:
        """Take what came, cut anywhere."""
        *events, self._rest = (self._rest + piece).replace(b"\r\n", b"\n").split(_END)
        for document in _documents(events):
            self._add(document)

    def whole(self) -> dict[str, Any]:
        """Return the answer as OpenAI has it where nothing is streamed."""
        choice: dict[str, Any] = {"index": 0, "finish_reason": self._finish or "stop"}
        if self.is_chat:
            choice["message"] = self._message()
        else:
            choice["text"] = "".join(self._text)
        kind = "chat.completion" if self.is_chat else "text_completion"
        told = {key: self._first.get(key) for key in ("id", "created", "model")}
        whole = {**told, "object": kind, "choices": [choice]}
        return whole | ({"usage": self._usage} if self._usage else {})

    def _message(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self._text)}
        if self._reasoning:
            message["reasoning"] = "".join(self._reasoning)
        return message | ({"tool_calls": self._calls} if self._calls else {})

    def _add(self, document: Mapping[str, Any]) -> None:
        self.error = self.error or document.get("error")
        self._first = self._first or dict(document)
        self._usage = document.get("usage") or self._usage
        for choice in document.get("choices") or ():
            part = choice.get("delta") or {} if self.is_chat else choice
            self._text.append(part.get("content" if self.is_chat else "text") or "")
            if reasoning := part.get("reasoning"):
                self._reasoning.append(reasoning)
            self._calls += part.get("tool_calls") or ()
            self._finish = choice.get("finish_reason") or self._finish


def _documents(events: Iterable[bytes]) -> Iterable[Mapping[str, Any]]:
    """Yield the JSON objects of events; comments and what can't be read are passed over."""
    for event in events:
        lines = (line[len(_DATA) :] for line in event.splitlines() if line.startswith(_DATA))
        try:
            document: object = json.loads(b"\n".join(lines))
        except ValueError:  # a comment, or the mark of the end
            continue
        if isinstance(document, dict):
            yield cast("Mapping[str, Any]", document)

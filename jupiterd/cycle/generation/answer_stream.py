"""An answer that comes piece by piece, as servers send it while their model writes.

Owns putting the pieces of a stream of events together, and telling a whole answer from one that
broke off. Doesn't know connections or time.
"""

import json
from typing import Any, Final

from jupiterd.cycle.generation.server_protocol import Again, Reply, error_words, tokens_of
from jupiterd.cycle.templates.prompt import WrittenAnswer

CONTENT_TYPE: Final = "text/event-stream"
_DATA: Final = "data:"
_END: Final = "[DONE]"


class AnswerStream:
    """The pieces of one answer so far."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._usage: object = None
        self._finish: str | None = None
        self._trouble = ""
        self.pieces = 0
        """How many held something that the model wrote; about as many as tokens."""

    def feed(self, line: str) -> None:
        """Take in one line; comments and names of events bring nothing of the answer."""
        if not line.startswith(_DATA):
            return
        data = line.removeprefix(_DATA).strip()
        if data == _END:
            self._finish = self._finish or "stop"
            return
        try:
            said: Any = json.loads(data)
        except (ValueError, RecursionError):
            self._trouble = "what it answers is no chat completion"
            return
        self._take(said)

    def _take(self, said: object) -> None:
        if not isinstance(said, dict):
            self._trouble = "what it answers is no chat completion"
        elif said.get("error"):
            self._trouble = error_words(said) or "it broke off with an error"
        else:
            self._usage = said.get("usage") or self._usage
            choices: Any = said.get("choices")
            if isinstance(choices, list) and choices and isinstance(choices[0], dict):
                self._take_choice(choices[0])

    def _take_choice(self, choice: dict[str, Any]) -> None:
        delta: Any = choice.get("delta")
        text: Any = delta.get("content") if isinstance(delta, dict) else None
        if isinstance(text, str):
            self._pieces.append(text)
        if isinstance(delta, dict) and any(
            isinstance(said, str) and said for said in delta.values()
        ):
            self.pieces += 1
        if isinstance(finish := choice.get("finish_reason"), str):
            self._finish = finish

    def reply(self) -> Reply:
        """Return what came of it, once nothing follows."""
        if self._trouble:
            return Again(self._trouble)
        if self._finish is None:
            return Again("its answer broke off")
        text = "".join(self._pieces)
        return WrittenAnswer(text, tokens_of(self._usage, text), is_whole=self._finish != "length")

"""One answer while it is being written, and what it took.

Pure. Owns the figures of an answer: how long its first token took, how many followed each second.
Times come in as arguments. Doesn't know who writes it, or who reads it.
"""

from dataclasses import dataclass, field
from typing import Any

from jupiterd.ctl.chat.endpoint.answer_chunks import Chunk, ModelFacts
from jupiterd.errors import JupiterError

STOPPED = "stopped"
"""Why an answer ended that its reader didn't want to wait for."""

LEAST_S = 0.05
"""Seconds. What is written in less was sent at once, and says nothing of a speed."""


@dataclass
class AnswerProgress:
    """An answer, as far as it has come."""

    facts: ModelFacts
    asked_s: float
    """When it was asked for, on the clock of the other times here."""
    pieces: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    """What a model that reasons wrote for itself."""
    finish: str = STOPPED
    error: JupiterError | None = None
    prompt_tokens: int | None = None
    _told_tokens: int | None = None
    _first_s: float | None = None
    _last_s: float | None = None

    def take(self, chunk: Chunk, now_s: float) -> None:
        """Take what an event brought."""
        if chunk.text:
            self.pieces.append(chunk.text)
        if chunk.thought:
            self.thoughts.append(chunk.thought)
        if chunk.text or chunk.thought:
            self._first_s = now_s if self._first_s is None else self._first_s
            self._last_s = now_s
        self.finish = chunk.finish or self.finish
        if chunk.prompt_tokens is not None:
            self.prompt_tokens = chunk.prompt_tokens
        if chunk.completion_tokens is not None:
            self._told_tokens = chunk.completion_tokens

    @property
    def text(self) -> str:
        """Return what was written so far."""
        return "".join(self.pieces)

    @property
    def tokens(self) -> int:
        """Return how many tokens were written; where nobody counted, in how many pieces."""
        counted = len(self.pieces) + len(self.thoughts)
        return counted if self._told_tokens is None else self._told_tokens

    @property
    def is_thinking(self) -> bool:
        """Say whether it has thoughts so far, and no answer."""
        return bool(self.thoughts) and not self.pieces

    @property
    def first_token_s(self) -> float | None:
        """Return the seconds from the question to the first token; None: there is none yet."""
        return None if self._first_s is None else self._first_s - self.asked_s

    @property
    def tokens_per_s(self) -> float | None:
        """Return how many tokens followed the first in each second; None: too few to tell."""
        if self._first_s is None or self._last_s is None or self.tokens < 2:
            return None
        took_s = self._last_s - self._first_s
        return (self.tokens - 1) / took_s if took_s >= LEAST_S else None

    def to_plain(self) -> dict[str, Any]:
        """Return the fields of the JSON document."""
        facts, error = self.facts, self.error
        return {
            "model": facts.name,
            "node": facts.node or None,
            "engine": facts.engine or None,
            "chat": facts.is_chat,
            "text": self.text,
            "reasoning": "".join(self.thoughts) or None,
            "finish_reason": None if error else self.finish,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.tokens,
            "first_token_s": _rounded(self.first_token_s),
            "tokens_per_s": _rounded(self.tokens_per_s),
            "error": error and {"code": error.code, "message": error.message, "hint": error.hint},
        }


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 4)

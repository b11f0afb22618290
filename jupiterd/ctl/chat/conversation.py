"""A conversation with one model: what was said, and what of it the model is sent.

Pure. Owns the turns, and which of the oldest are left out where the context has no room for them.
Doesn't know how it is sent, or what else the user talks to.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

Message = dict[str, str]
"""`role` and `content`, as OpenAI's API has them."""

ANSWER_TOKENS = 512
"""The room that is kept for an answer whose length nobody bounded."""

MOST_OF_CONTEXT = 4
"""That room is at the most one part in so many of the context."""


@dataclass(frozen=True)
class Turn:
    """What a user asked, and what the model answered; it may have been stopped."""

    asked: str
    answered: str


@dataclass(frozen=True)
class Conversation:
    """The turns so far; every change is another conversation."""

    system: str = ""
    turns: tuple[Turn, ...] = ()
    forgotten: int = 0
    """How many of the oldest turns are no longer sent."""

    def messages(self, asked: str) -> list[Message]:
        """Return what a chat model is sent with the next question."""
        said = [_message("system", self.system)] if self.system else []
        for turn in self.turns[self.forgotten :]:
            said += [_message("user", turn.asked), _message("assistant", turn.answered)]
        return [*said, _message("user", asked)]

    def with_turn(self, asked: str, answered: str) -> "Conversation":
        """Return it with one turn more."""
        return replace(self, turns=(*self.turns, Turn(asked, answered)))

    def undone(self) -> "Conversation":
        """Return it without the last turn; without any, the same."""
        turns = self.turns[:-1]
        return replace(self, turns=turns, forgotten=min(self.forgotten, len(turns)))

    def cleared(self) -> "Conversation":
        """Return it without turns; the system's text stays."""
        return Conversation(self.system)

    def remembered(self) -> "Conversation":
        """Return it with all turns to be sent again: another model may have room for them."""
        return replace(self, forgotten=0)

    @property
    def can_forget(self) -> bool:
        """Say whether there is a turn that could be left out."""
        return self.forgotten < len(self.turns)

    def forgetting(self, turns: int = 1) -> "Conversation":
        """Return it with so many of the oldest turns less to be sent."""
        return replace(self, forgotten=min(self.forgotten + turns, len(self.turns)))


@dataclass(frozen=True)
class Measure:
    """How many tokens a model made of how many characters: the only tokenizer here."""

    characters: int = 0
    tokens: int = 0

    def estimate(self, characters: int) -> float:
        """Return about how many tokens a text has; 0 where nothing was measured."""
        return characters * self.tokens / self.characters if self.characters else 0.0


def length(messages: Sequence[Message]) -> int:
    """Return how many characters the messages have."""
    return sum(len(message["content"]) for message in messages)


def answer_room(context_tokens: int, max_tokens: int | None) -> int:
    """Return how many tokens of a context are kept for the answer."""
    return min(max_tokens or ANSWER_TOKENS, context_tokens // MOST_OF_CONTEXT)


def fitted(
    conversation: Conversation, asked: str, measure: Measure, prompt_tokens: int
) -> Conversation:
    """Return it without the oldest turns that a prompt of so many tokens has no room for.

    What it says is about right: a server that counts otherwise refuses, and one more is left out.
    """
    while (
        conversation.can_forget
        and measure.estimate(length(conversation.messages(asked))) > prompt_tokens
    ):
        conversation = conversation.forgetting()
    return conversation


def _message(role: str, content: str) -> Message:
    return {"role": role, "content": content}

"""What a user talks to at a time, and how.

Pure. Owns the state that the commands of a conversation change. Doesn't know commands, or models.
"""

from dataclasses import dataclass, field, replace

from jupiterd.ctl.chat.endpoint.answer_chunks import ModelFacts
from jupiterd.ctl.chat.partner import Partner, Question
from jupiterd.ctl.chat.sampling import Sampling


@dataclass
class Talk:
    """One or two partners, which are asked the same."""

    partners: list[Partner]
    sampling: Sampling = field(default_factory=Sampling)
    is_verbose: bool = False
    is_conversation: bool = False
    """There is a prompt at which to go on."""
    last: str = ""
    """The last question, also if it wasn't answered."""

    @property
    def first(self) -> Partner:
        """Return the one that is always there."""
        return self.partners[0]

    @property
    def system(self) -> str:
        """Return what models are told before the conversation."""
        return self.first.conversation.system

    def tell(self, system: str) -> None:
        """Tell all partners something else before the conversation."""
        for partner in self.partners:
            partner.conversation = replace(partner.conversation, system=system)

    def ask(self, text: str) -> Question:
        """Return the question that a text is."""
        self.last = text
        return Question(text, self.sampling)

    def ask_again(self) -> Question | None:
        """Take the last answer back and return its question, drawn anew; None: there is none."""
        if not self.last:
            return None
        self._undo(self.last)
        self.sampling = self.sampling.again()
        return Question(self.last, self.sampling)

    def go_on(self) -> Question | None:
        """Return the text up to here, for a model that completes it; None: there is none."""
        turns = self.first.conversation.turns
        return self.ask(turns[-1].asked + turns[-1].answered) if turns else None

    def undo(self) -> str:
        """Take the last question and its answers back; return it, or an empty text."""
        turns = self.first.conversation.turns
        asked = turns[-1].asked if turns else ""
        self._undo(asked)
        left = self.first.conversation.turns
        self.last = left[-1].asked if left else ""
        return asked

    def clear(self) -> None:
        """Forget all turns."""
        self.last = ""
        for partner in self.partners:
            partner.conversation = partner.conversation.cleared()

    def talk_to(self, facts: ModelFacts) -> None:
        """Go on with another model; it is told what was said so far."""
        self.partners[0] = Partner(facts, self.first.conversation.remembered())

    def put_beside(self, facts: ModelFacts | None) -> None:
        """Have another model answer, too, which is told what was said so far; None: no longer."""
        beside = [] if facts is None else [Partner(facts, self.first.conversation.remembered())]
        self.partners = [self.first, *beside]

    def _undo(self, asked: str) -> None:
        for partner in self.partners:
            turns = partner.conversation.turns
            if turns and turns[-1].asked == asked:
                partner.conversation = partner.conversation.undone()

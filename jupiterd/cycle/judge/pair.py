"""Two ways of going on from one beginning, and what a judge said of them.

Owns the value type, and what two answers come to. Doesn't know how they were asked for, or what
follows.
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from blake3 import blake3

from jupiterd.cycle.judge.question import chosen


class PairKind(StrEnum):
    """Who wrote the two texts."""

    STUDENTS = "students"
    """Ours is the candidate's, theirs the last student's: what a judge is there for."""
    FOREIGN = "foreign"
    """Planted: ours is what stood there, theirs is of another source's document."""
    SHUFFLED = "shuffled"
    """Planted: ours is what stood there, theirs the same words in another order."""
    CORRUPTED = "corrupted"
    """Planted: ours is what stood there, in theirs some words are another document's."""


class PairOutcome(StrEnum):
    """What a judge's two answers say together."""

    WIN = "win"
    """Ours was preferred in both orders."""
    LOSS = "loss"
    TIE = "tie"
    """One and the other, or an answer that names neither."""


@dataclass(frozen=True)
class Pair:
    """One question, which is asked in both orders."""

    kind: str
    document: str
    """Id of the held-out document that both go on from."""
    cluster: str
    beginning: str
    ours: str
    theirs: str
    replies: tuple[str, ...] = ()
    """What the judge said where ours was shown first, and where it was shown second; none where it
    wasn't asked."""

    @cached_property
    def id(self) -> str:
        """Return what names the question, whatever was answered."""
        identity = f"{self.kind}\0{self.document}\0{self.beginning}\0{self.ours}\0{self.theirs}"
        return blake3(identity.encode()).hexdigest(16)

    @property
    def is_planted(self) -> bool:
        """Say whether it is known which of the two is better."""
        return self.kind != PairKind.STUDENTS

    @cached_property
    def choices(self) -> tuple[int | None, ...]:
        """Return which place each answer names: 1, 2, or None for an answer that can't be read."""
        return tuple(map(chosen, self.replies))

    @property
    def outcome(self) -> PairOutcome:
        """Return what both answers say; a pair that wasn't asked about is a tie."""
        if self.choices == (1, 2):
            return PairOutcome.WIN
        return PairOutcome.LOSS if self.choices == (2, 1) else PairOutcome.TIE

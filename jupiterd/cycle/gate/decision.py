"""What the gate can say, of the whole and of each of its questions.

Owns these words. Doesn't know how any of them is come to.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Decision(StrEnum):
    """What the gate can say."""

    PROMOTE = "PROMOTE"
    """Shown to be better by more than the margin; nothing vetoes."""
    HOLD = "HOLD"
    """Neither shown to be better by the margin nor to be worse."""
    REJECT = "REJECT"
    """Shown to be worse, or broken."""
    ABSTAIN = "ABSTAIN"
    """Too little evidence for any verdict."""


class Question(StrEnum):
    """What is asked of a candidate, in the order in which it is asked."""

    SANE = "G0"
    """Does it work at all?"""
    BETTER = "G1"
    """Is it a better model of the domain than the last student that was shown to be one?"""
    BEYOND_BASE = "base"
    """Is it better than the model that the cycle began with? Asked only where one was brought."""
    KEEPS = "general text"
    """Does it still know what that model knew of other text? Asked only where one was brought."""
    NOT_WORSE = "G2"
    """Is it at least as good as the generator in force?"""
    PREFERRED = "tie-break"
    """Where neither is shown to be better than the other: whose answers does a judge prefer? Asked
    only where the domain names a judge."""
    TEACHES = "G3"
    """Does a small student learn as much from its text as from the generator's?"""


class Outcome(StrEnum):
    """How a question was answered."""

    PASSED = "passed"
    FAILED = "failed"
    TIED = "tied"
    """Neither shown nor ruled out; a judge may break the tie."""
    NOT_RUN = "not run"
    """Nothing was measured for it; it promotes nobody and holds nobody up."""
    NOT_ASKED = "not asked"
    """A question before it has decided, or there is too little text to answer it."""


@dataclass(frozen=True)
class Answer:
    """One question's answer."""

    outcome: Outcome
    reason: str
    decision: Decision = Decision.PROMOTE
    """What the verdict is where this question decides it."""

    @property
    def decides(self) -> bool:
        """Say whether no later question can change the verdict any more."""
        return self.outcome is Outcome.FAILED


Answers = Mapping[Question, Answer]

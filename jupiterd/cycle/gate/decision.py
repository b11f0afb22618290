"""The vocabulary of the gate: decisions, questions and the outcome of each question.

Owns these types. Doesn't know the rules that choose among them (`questions`, `verdict`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Decision(StrEnum):
    """The gate's decision on a candidate."""

    PROMOTE = "PROMOTE"
    """Shown to be better by more than the margin; nothing vetoes."""
    HOLD = "HOLD"
    """Neither shown to be better by the margin nor to be worse."""
    REJECT = "REJECT"
    """Shown to be worse, or broken."""
    ABSTAIN = "ABSTAIN"
    """Too little evidence for any verdict."""


class Question(StrEnum):
    """A question about a candidate; the gate asks them in this order."""

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


class AnswerOutcome(StrEnum):
    """How a question was answered."""

    PASSED = "passed"
    FAILED = "failed"
    TIED = "tied"
    """Neither shown nor ruled out; a judge may break the tie."""
    NOT_RUN = "not run"
    """Nothing was measured for it: it neither promotes nor blocks the candidate."""
    NOT_ASKED = "not asked"
    """An earlier question has decided, or there is too little text to answer this one."""


@dataclass(frozen=True)
class QuestionAnswer:
    """One question's answer."""

    outcome: AnswerOutcome
    reason: str
    decision: Decision = Decision.PROMOTE
    """The verdict where this question decides it."""

    @property
    def decides(self) -> bool:
        """Say whether no later question can change the verdict any more."""
        return self.outcome is AnswerOutcome.FAILED


Answers = Mapping[Question, QuestionAnswer]

"""The facts about a round that verdict.json lacks: its training, and whether a round follows.

Pure. Owns the words on too little training. Doesn't know how a verdict is reached.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from jupiterd.formats import counted


@dataclass(frozen=True)
class RoundCourse:
    """One round's training, compared with the text that was available."""

    cycle: str
    """The cycle's name or short id, as commands take it."""
    is_last: bool
    """No round follows unless a person requests more."""
    steps: int = 0
    tokens: int = 0
    """Tokens that this round trained on."""
    text_tokens: int = 0
    """Tokens that were available; 0: unknown."""
    max_steps: int = 0
    """The bound on each round's steps that a person set; 0: none."""

    @property
    def more_rounds(self) -> str:
        """Return the command that adds rounds to the cycle."""
        return f"jupiterctl cycle extend {self.cycle} --rounds N"


def short_training_lines(course: RoundCourse) -> Iterator[str]:
    """Return lines with the remedy where the bound on steps cut training below one pass."""
    if not course.max_steps or not 0 < course.tokens < course.text_tokens:
        return
    passes = course.tokens / course.text_tokens
    share = f"{passes:.0%} of a pass" if passes >= 0.1 else "under a tenth of a pass"
    yield (
        f"Likely cause: it trained {counted(course.steps, 'step')}, {share} over the text, for "
        f"--max-steps was {course.max_steps:,}. Start the cycle without --max-steps, or go on: "
        f"{course.more_rounds}."
    )

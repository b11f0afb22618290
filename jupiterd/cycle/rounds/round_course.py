"""What a round's training was, and whether a round follows: what a verdict alone doesn't know.

Pure. Owns the words on too little training. Doesn't know how a verdict is reached.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from jupiterd.formats import counted


@dataclass(frozen=True)
class RoundCourse:
    """One round's training, beside the text that there was to be trained on."""

    cycle: str
    """As people may call it."""
    is_last: bool
    """No round follows unless people ask for more."""
    steps: int = 0
    tokens: int = 0
    """Trained on in this round."""
    text_tokens: int = 0
    """That there were to be trained on; 0: nobody knows."""
    max_steps: int = 0
    """Of each round, as people asked for it; 0: they didn't."""

    @property
    def more_rounds(self) -> str:
        """Return what gives the cycle more rounds."""
        return f"jupiterctl cycle extend {self.cycle} --rounds N"


def short_training_lines(course: RoundCourse) -> Iterator[str]:
    """Return that bounded steps took less than a pass, and what to type; nothing otherwise."""
    if not course.max_steps or not 0 < course.tokens < course.text_tokens:
        return
    passes = course.tokens / course.text_tokens
    share = f"{passes:.0%} of a pass" if passes >= 0.1 else "under a tenth of a pass"
    yield (
        f"Likely cause: it trained {counted(course.steps, 'step')}, {share} over the text, for "
        f"--max-steps was {course.max_steps:,}. Start the cycle without --max-steps, or go on: "
        f"{course.more_rounds}."
    )

"""What a candidate wrote when it was tried out, kept for people to read.

Owns the form of the file. Pure: it is given texts and returns texts. Decides nothing: whether a
model works is `cycle.gate.sanity`'s question, and no verdict is computed from these lines.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Final

from jupiterd.errors import CorruptArtifactError

COMPLETIONS_FILE: Final = "completions.jsonl"
"""Beside the scores of the piece that tried the candidate out."""

MAX_COMPLETIONS_BYTES: Final = 1 << 20


@dataclass(frozen=True)
class Completion:
    """One text that a model went on with."""

    prompt: str
    """The beginning of a held-out document."""
    text: str
    """What the model wrote after it, up to its end mark."""
    is_looping: bool = False
    """It goes round: `cycle.text_rules.looping`, when it was written."""


def completion_lines(completions: Iterable[Completion]) -> str:
    """Return the file's text, one completion on each line, in their order."""
    rows = (json.dumps(asdict(each), sort_keys=True) for each in completions)
    return "".join(f"{row}\n" for row in rows)


def read_completions(text: str) -> list[Completion]:
    """Return what the file says.

    Raises:
        CorruptArtifactError: a line is something else.
    """
    try:
        return [Completion(**json.loads(line)) for line in text.splitlines()]
    except (ValueError, TypeError) as error:
        raise CorruptArtifactError(f"a line of {COMPLETIONS_FILE} is no completion") from error

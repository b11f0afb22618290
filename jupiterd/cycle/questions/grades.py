"""What came of each question, as lines of a file.

Owns the form of the file. Pure. Doesn't know how an answer is graded (`grading`).
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final

from jupiterd.errors import CorruptArtifactError

GRADES_FILE: Final = "grades.jsonl"

MAX_WRITTEN_CHARS: Final = 600


@dataclass(frozen=True)
class Grade:
    """What a model answered to one question, and whether that is right."""

    is_right: bool
    written: str = ""
    """Where any text may be the answer."""
    picked: int | None = None
    """Place of the likeliest choice; None: there are no choices, or none is the likeliest alone."""
    is_exact: bool = False
    """What was written is a right answer alone; of choices: the right one is the likeliest."""


def grade_lines(grades: Iterable[Grade]) -> str:
    """Return the file's text, a line for each question in their order."""
    return "".join(f"{json.dumps(asdict(each), sort_keys=True)}\n" for each in grades)


def read_grades(text: str) -> list[Grade]:
    """Return what the file says.

    Raises:
        CorruptArtifactError: a line is something else.
    """
    try:
        return [_grade(json.loads(line)) for line in text.splitlines()]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CorruptArtifactError(f"a line of {GRADES_FILE} is no grade") from error


def _grade(plain: Any) -> Grade:  # noqa: ANN401 - JSON
    found = Grade(
        plain["is_right"], plain["written"], plain["picked"], plain.get("is_exact", False)
    )
    types = (found.is_right, bool), (found.written, str), (found.picked, int | None)
    if not all(isinstance(value, kind) for value, kind in (*types, (found.is_exact, bool))):
        raise TypeError("a field has another type")
    return found

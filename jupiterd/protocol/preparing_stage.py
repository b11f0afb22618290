"""What a worker does before its first step or document, in stages, and the words for it.

Owns their names, which travel and stand in JSON. Pure. Doesn't know who shows them.
"""

from collections.abc import Mapping
from typing import Any, Final

from jupiterd.formats import duration, plain

IMPORTING: Final = "importing"
MEETING: Final = "meeting"
LOADING: Final = "loading"
TRYING: Final = "trying_micro_batches"
COMPILING: Final = "compiling"
FIRST_STEP: Final = "first_step"

STAGES: Final = (IMPORTING, MEETING, LOADING, TRYING, COMPILING, FIRST_STEP)
"""In the order in which they come."""

_WORDS: Final = {
    IMPORTING: "importing libraries",
    MEETING: "meeting the other ranks",
    TRYING: "trying micro batches",
    FIRST_STEP: "taking the first step",
}
_LONGEST: Final = 40
_MINUTE_S: Final = 59.5


def preparing_words(preparing: Mapping[str, Any]) -> str:
    """Return a stage with its time, such as `compiling, 12 of about 40 s`.

    preparing: stage; detail, such as `32 of 64`; elapsed_s, s; expected_s, s, None where no earlier
    time is known
    """
    stage = str(preparing.get("stage") or "")
    words = _WORDS.get(stage, plain(stage)[:_LONGEST])
    if detail := preparing.get("detail"):
        words = f"{words}: {plain(detail)[:_LONGEST]}"
    taken, expected = preparing.get("elapsed_s") or 0.0, preparing.get("expected_s")
    if not expected:
        return f"{words}, {_time(taken)}"
    is_short = max(taken, expected) < _MINUTE_S
    return f"{words}, {round(taken) if is_short else _time(taken)} of about {_time(expected)}"


def _time(seconds: float) -> str:
    return f"{round(seconds)} s" if seconds < _MINUTE_S else duration(seconds)

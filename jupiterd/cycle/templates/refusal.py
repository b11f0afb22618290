"""Why an answer of a generator becomes no sample.

Owns the reasons, their names, and what is told beside one. Doesn't know what finds them. What a
text is worth beyond that is up to the filters, which judge real text by the same rules.
"""

from dataclasses import dataclass
from enum import StrEnum


class Refusal(StrEnum):
    """Why an answer becomes no sample."""

    EMPTY = "empty"
    TOO_SHORT = "too-short"
    REPEATED = "repeated"
    """It goes round in circles."""
    TRUNCATED = "truncated"
    """It was cut off before its end."""
    LEAKS_PROMPT = "leaks-prompt"
    """It repeats what it was told to do or the marks around the document, or speaks of "the text
    above", which nobody sees who reads it."""
    UNGROUNDED = "ungrounded"
    """It has hardly a term of the document: it is about something else."""
    COPY = "copy"
    """It says nothing that the document doesn't say in the same words."""
    DECLINED = "declined"
    """It says that it can't, or won't."""
    MALFORMED = "malformed"
    """It isn't what was asked for: no question, no table, a function that doesn't parse."""


@dataclass(frozen=True)
class RefusedAnswer:
    """Why one answer becomes no sample, with what was measured of it."""

    reason: Refusal
    measure: str = ""
    """What was measured, such as `words`; empty: nothing was counted."""
    value: float = 0.0
    limit: float = 0.0
    """The least or the most that `measure` could have been, whichever it missed."""

"""What a generator is given, and what it gave back.

Owns these values. Doesn't know templates or engines.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Prompt:
    """One request, in both forms that a generator may take it in."""

    message: str
    """For a model that is talked to: what its user says."""
    opening: str
    """For a model that writes on: the text that it goes on from."""
    goes_on: bool = False
    """Writing on suits it better, also with a model that can be talked to."""


@dataclass(frozen=True)
class WrittenAnswer:
    """What came of one prompt."""

    text: str
    tokens: int
    """Of the generator; of a server that doesn't tell, an estimate."""
    is_whole: bool
    """It ended by itself; else it was cut off at the greatest length."""
    is_opened: bool = False
    """It goes on from the prompt's opening, instead of answering its message."""

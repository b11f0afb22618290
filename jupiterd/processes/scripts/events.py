"""What is heard of the ranks of a script: what they print, how they end, what is missing of it.

Owns these values. Doesn't know where they are written, or how they travel.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias

from jupiterd.protocol.frames import ConnectionsRefused

STORE_RANK: Final = -1
"""Stands for the store among those who print and end."""

NOTICE_RANK: Final = -2
"""Stands for what jupiterctl itself says, in the record of a launch."""


@dataclass(frozen=True)
class Printed:
    """A rank printed something."""

    rank: int
    is_error: bool
    data: bytes


@dataclass(frozen=True)
class Ended:
    """A rank ended, with 128 and the signal's number where it was a signal."""

    rank: int
    status: int


@dataclass(frozen=True)
class Skipped:
    """So many bytes of events came before what follows, and aren't kept any more."""

    size_bytes: int


@dataclass(frozen=True)
class Ending:
    """Somebody ends the ranks, a moment from now: what they say of their end isn't the reason."""

    reason: str


@dataclass(frozen=True)
class Over:
    """Nothing of an order runs any more, and nothing follows."""

    reason: str = ""
    """Why it was ended, where the ranks didn't end by themselves."""
    code: str = ""
    """Of the error that kept it from being started; `reason` is its message then."""
    hint: str = ""


@dataclass(frozen=True)
class Notice:
    """Who keeps the ranks has something to say that people had better know."""

    words: str


ScriptEvent: TypeAlias = Printed | Ended | Skipped | Ending | Over | Notice | ConnectionsRefused

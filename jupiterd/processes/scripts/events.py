"""Events of a script's ranks: their output, their ends, and what is missing.

Owns these values. Doesn't know where they are stored, or how they are sent.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias

from jupiterd.protocol.frames import ConnectionsRefused

STORE_RANK: Final = -1
"""The rank number that stands for the store in events."""

NOTICE_RANK: Final = -2
"""The rank number that stands for jupiterctl's own messages in the record of a launch."""


@dataclass(frozen=True)
class Printed:
    """A rank printed something."""

    rank: int
    is_error: bool
    data: bytes


@dataclass(frozen=True)
class Ended:
    """A rank ended; `status` is 128 plus the signal's number if a signal ended it."""

    rank: int
    status: int


@dataclass(frozen=True)
class Skipped:
    """`size_bytes` bytes of events before the next one are no longer kept."""

    size_bytes: int


@dataclass(frozen=True)
class Ending:
    """The ranks will be ended in a moment: their own errors from now on aren't the cause."""

    reason: str


@dataclass(frozen=True)
class Over:
    """All processes of an order have ended; no event follows."""

    reason: str = ""
    """Why it was ended; empty if the ranks ended by themselves."""
    code: str = ""
    """Code of the error that prevented the start, with its message as `reason`."""
    hint: str = ""


@dataclass(frozen=True)
class Notice:
    """A message for the user from the process that keeps the ranks."""

    words: str


ScriptEvent: TypeAlias = Printed | Ended | Skipped | Ending | Over | Notice | ConnectionsRefused

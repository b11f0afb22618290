"""Commands that end alarms which people have seen.

Owns their fields. Doesn't know what an alarm is. Pure.
"""

from dataclasses import dataclass
from typing import ClassVar

from jupiterd.protocol.commands.command import PlainMap
from jupiterd.protocol.commands.requested_command import RequestedCommand


@dataclass(frozen=True, kw_only=True)
class DismissFailure(RequestedCommand):
    """End the alarm about a cycle, a run or a data set that failed."""

    VERB: ClassVar[str] = "cycle.dismiss"

    cycle: str | None = None
    """Its name, or the beginning of its id; None: all such alarms."""


@dataclass(frozen=True, kw_only=True)
class DismissAlarms(RequestedCommand):
    """End alarms by their names."""

    VERB: ClassVar[str] = "alarm.dismiss"

    names: tuple[str, ...] = ()
    """Codes, keys, machines or runs; none: everything that has happened."""
    alarms: tuple[PlainMap, ...] | None = None
    """What these are, as the machine sees it that was asked."""


@dataclass(frozen=True, kw_only=True)
class NoteAlarmsOver(RequestedCommand):
    """Take note that alarms which were dismissed are over."""

    VERB: ClassVar[str] = "alarm.over"

    keys: tuple[str, ...] = ()

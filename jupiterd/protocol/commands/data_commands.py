"""Commands about data sets and their sources.

Owns their fields. Doesn't know how text becomes tokens. Pure.
"""

from dataclasses import dataclass
from typing import ClassVar

from jupiterd.protocol.commands.command import Command, PlainMap
from jupiterd.protocol.commands.requested_command import RequestedCommand


@dataclass(frozen=True, kw_only=True)
class PrepareData(RequestedCommand):
    """Make a data set."""

    VERB: ClassVar[str] = "data.prepare"

    source: PlainMap
    """As `DataSettings` has it."""
    name: str
    node: str = ""
    """Whose disk the text lies on."""
    tokenizer: str | None = None
    """The data set whose tokenizer cuts it; None: one is trained."""


@dataclass(frozen=True, kw_only=True)
class StopData(Command):
    """Stop making a data set."""

    VERB: ClassVar[str] = "data.stop"

    data: str = ""
    """Its name, or the beginning of its id; empty: the newest."""


@dataclass(frozen=True, kw_only=True)
class RemoveData(Command):
    """Remove a data set from the list."""

    VERB: ClassVar[str] = "data.remove"

    data: str


@dataclass(frozen=True, kw_only=True)
class PurgeSource(Command):
    """Leave a source out for good."""

    VERB: ClassVar[str] = "data.purge"

    source: str
    """Its name in a domain's file, or an address."""
    domain: str | None = None
    """All of whose cycles are meant; None: that of the newest cycle."""
    cycle: str | None = None
    """The one that is meant alone."""

"""Commands that try or measure something, or tell a daemon what it couldn't see itself.

Owns their fields. Doesn't know how anything is measured. Pure.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from jupiterd.protocol.commands.command import WIRE, Command, PlainMap


@dataclass(frozen=True, kw_only=True)
class TryCommand(Command):
    """Make all checks of another command, and do nothing of it."""

    VERB: ClassVar[str] = "dry_run"

    verb: str = ""
    arguments: PlainMap | None = None
    """The other command's fields, as they travel."""
    to_fetch: tuple[str, ...] = ()
    """The folders that will hold their models by the time it is ordered."""


@dataclass(frozen=True, kw_only=True)
class CheckLinks(Command):
    """Measure every path to a node."""

    VERB: ClassVar[str] = "check.links"

    node: str
    asker: str | None = field(default=None, metadata={WIRE: "from"})
    """The node that measures; None: the one that is asked."""


@dataclass(frozen=True, kw_only=True)
class CheckAllreduce(Command):
    """Let the machines that would train add up a known vector."""

    VERB: ClassVar[str] = "check.sync"

    nodes: str = ""
    """As people say it; empty: those that would train."""
    engine: str | None = None


@dataclass(frozen=True, kw_only=True)
class TryGenerator(Command):
    """See whether a model that others made can write here."""

    VERB: ClassVar[str] = "generator.try"

    generator: PlainMap | None = None
    engine: str | None = None


@dataclass(frozen=True, kw_only=True)
class NoteFetch(Command):
    """Take note how far a fetch from the hub is that a command on this machine makes."""

    VERB: ClassVar[str] = "hub.fetch"

    name: str = ""
    done: int = 0
    """Bytes."""
    total: int = 0
    bytes_per_s: int = 0
    ended: str = ""
    """How; empty: it goes on."""

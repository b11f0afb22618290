"""A command of which the leader takes note where it was given.

Owns the field. Doesn't know what is recorded of it. Pure.
"""

from dataclasses import dataclass

from jupiterd.protocol.commands.command import Command


@dataclass(frozen=True, kw_only=True)
class RequestedCommand(Command):
    """One with the machine on which somebody gave it."""

    asked_at: str | None = None
    """A node's id. The leader says it, of whoever has asked, whatever came with the command."""
    usual_adapter_of: str | None = None
    """The machine whose settings say which adapter is trained, as the command doesn't; its name."""

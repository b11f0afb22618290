"""Something that the dashboard lets people change.

Pure. Owns what a change is made of: always a command that people could type themselves, so that
both have the same effect. Doesn't know how it is confirmed, or carried out.
"""

import shlex
from collections.abc import Callable
from dataclasses import dataclass

PROGRAM = "jupiterctl"


@dataclass(frozen=True)
class Action:
    """One command, and the texts of the question before it."""

    command: tuple[str, ...]
    """Arguments of jupiterctl, such as `("node", "remove", "7600fc64")`."""
    title: str
    question: str
    """Names the object: `Remove studio (7600fc64) from the cluster?`"""
    consequences: tuple[str, ...] = ()
    """Lines below the question: what follows, and what can't be undone."""

    @property
    def typed(self) -> str:
        """Return the command as people type it."""
        return shlex.join((PROGRAM, *self.command))


Ask = Callable[[Action], object]
"""Asks for confirmation of a change, and carries it out after a yes."""

"""Something that the dashboard lets people change.

Pure. Owns what a change is made of. Doesn't know how it is asked for, or carried out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Action:
    """One command of the daemon, and the words around it."""

    verb: str
    """As `jupiterctl` calls it, such as `node.remove`."""
    arguments: Mapping[str, Any]
    title: str
    question: str
    """Names the object: `Remove studio (7600fc64) from the cluster?`"""
    done: str
    """Said when the daemon has done it."""
    consequences: tuple[str, ...] = field(default=())
    """Lines below the question: what follows, and what can't be undone."""

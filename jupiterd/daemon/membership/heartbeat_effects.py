"""What heartbeats say of this node, and the callbacks for a change of leadership.

Owns the names of both. Doesn't know who leads, or what leading is used for.
"""

from collections.abc import Callable
from dataclasses import dataclass

from jupiterd.daemon.links.heartbeat_stream import Description


@dataclass(frozen=True)
class HeartbeatEffects:
    """What a daemon's other parts have to do with its heartbeats."""

    describe: Callable[[], Description]
    on_lead: Callable[[int], None]
    """Called with the term, also where it rises while we lead."""
    on_step_down: Callable[[str], None]
    """Called with the reason."""

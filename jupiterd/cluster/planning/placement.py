"""Which node does a piece of work.

Owns the choice for single items; gangs are planned elsewhere. Doesn't know what the work is.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from jupiterd.ids import NodeId

PREFERENCE = {"generator": 0, "hybrid": 1, "trainer": 2, "idle": 3}
"""Trainers come late: what they are spared makes the next gang start sooner."""


@dataclass(frozen=True)
class Seat:
    """A node that may be given work."""

    node: NodeId
    role: str
    has_engine: bool
    running: int
    """Pieces of work it has already."""


def choose(seats: Sequence[Seat], *, needs_engine: bool) -> tuple[NodeId | None, str]:
    """Return who should do one more piece of work, with the reason; None where nobody can."""
    able = [seat for seat in seats if seat.has_engine or not needs_engine]
    if not able:
        return None, "no node that is alive has a machine learning library installed"
    best = min(able, key=lambda seat: (seat.running, PREFERENCE.get(seat.role, 9), seat.node))
    return best.node, f"a {best.role} with {best.running} pieces of work running"

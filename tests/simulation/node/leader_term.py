"""One stretch of leading.

Owns what a leader's shells share. Doesn't know how leaders are chosen.
"""

from dataclasses import dataclass, field

from jupiterd.cluster.membership.pairing_window import PairingWindow
from jupiterd.ids import NodeId


@dataclass
class LeaderTerm:
    """One stretch of leading; the term may rise within it."""

    term: int
    began_at: float
    window: PairingWindow
    """How long this leader has seen the window open."""
    is_open: bool = False
    """Everybody's entries are united as far as they answered: it may append."""
    appended: int = 0
    tips_of_others: dict[NodeId, dict[str, int]] = field(
        default_factory=dict[NodeId, dict[str, int]]
    )
    """What those held whom the new leader thought alive when it began."""

    def open(self) -> None:
        """Let the leader append."""
        self.is_open = True

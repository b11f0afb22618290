"""Who asks to be let in during a term, and how long the door and the tokens are in force.

Owns what ends with the term: a new leader begins with none of it. Decides about nobody.
"""

from dataclasses import dataclass, field

from jupiterd.cluster.ledger.tokens import TokenTimer
from jupiterd.cluster.membership.pairing_window import PairingWindow
from jupiterd.cluster.membership.pending_joins import PendingJoins


@dataclass(frozen=True)
class Admissions:
    """The newcomers of one term, and two clocks."""

    waiting: PendingJoins
    window: PairingWindow = field(default_factory=PairingWindow)
    """How long the door has been open by this leader's clock."""
    token_timer: TokenTimer = field(default_factory=TokenTimer)
    """How long tokens have been in force by this leader's clock."""

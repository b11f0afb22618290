"""What a leader's heartbeats say of the door and of the join tokens.

Owns this word: the time left is by the leader's clock. Doesn't know who shows it.
"""

from itertools import islice
from typing import Any, Final

from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.ledger.tokens import TokenTimer
from jupiterd.cluster.membership.admission_policy import closes_by_itself
from jupiterd.cluster.membership.pairing_window import PairingWindow
from jupiterd.ids import short

MAX_TOLD_TOKENS: Final = 16
"""Telemetry is small; of more tokens a follower doesn't know the time left."""


def admission_terms(
    state: State, window: PairingWindow, timer: TokenTimer, at_s: float, *, trusts_lan: bool
) -> dict[str, Any]:
    """Return whether everybody on the network is let in, and how long doors and tokens are open."""
    closes = closes_by_itself(state)
    tokens = islice(sorted(state.tokens), MAX_TOLD_TOKENS)
    return {
        "trusts_lan": trusts_lan,
        "closes_in_s": window.left_s(at_s, state.window_edit) if closes else None,
        "tokens": {short(token): round(timer.left_s(at_s, token)) for token in tokens},
    }

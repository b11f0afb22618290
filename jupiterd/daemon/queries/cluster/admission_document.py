"""What `status` and `cluster show` say of the pairing window and of the join tokens.

Owns these keys; the leader's word on them comes with its heartbeats. Changes nothing, and never
shows a token's secret.
"""

from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.membership.admission_policy import door
from jupiterd.ids import short

MAX_SHOWN_TOKENS: Final = 64

Terms = Mapping[str, Any]
"""What the leader reports, see `LocalView.admission_terms`; empty where no leader is heard."""


def admission_document(state: State, terms: Terms) -> dict[str, Any]:
    """Return whether newcomers are let in, why, and until when, as far as this node can say."""
    trusts_lan = terms.get("trusts_lan")
    is_open, reason = door(state, trusts_lan=trusts_lan is True)
    return {
        "open": is_open,
        "reason": reason,
        "closes_in_s": _seconds(terms.get("closes_in_s")) if trusts_lan is not True else None,
        "trusts_lan": trusts_lan if isinstance(trusts_lan, bool) else None,
    }


def token_documents(state: State, terms: Terms) -> list[dict[str, Any]]:
    """Return the join tokens in force, without their secrets."""
    left = terms.get("tokens")
    left_s: Mapping[str, Any] = left if isinstance(left, dict) else {}
    used = [admission.token for admission in state.roster.admissions()]
    return [
        {
            "id": token,
            "uses": fact.uses,
            "used": used.count(token),
            "expires_in_s": _seconds(left_s.get(short(token))),
        }
        for token, fact in islice(sorted(state.tokens.items()), MAX_SHOWN_TOKENS)
    ]


def _seconds(value: object) -> float | None:
    return round(float(value), 1) if isinstance(value, int | float) else None

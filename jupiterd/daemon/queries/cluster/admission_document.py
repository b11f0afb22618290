"""What `status` and `cluster show` say of the door and of the join tokens.

Owns these keys, and the leader's word on them that travels with its heartbeats: the time left is by
the leader's clock. Changes nothing, and never shows a token's secret.
"""

from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from jupiterd.cluster.membership.admission_policy import closes_by_itself, door
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.ids import short

if TYPE_CHECKING:
    from jupiterd.daemon.app.node import Node
    from jupiterd.daemon.leader.leading import Leading

MAX_SHOWN_TOKENS = 64
MAX_TOLD_TOKENS = 16
"""Telemetry is small; of more tokens a follower doesn't know the time left."""


def door_document(node: "Node") -> dict[str, Any]:
    """Return whether newcomers are let in, why, and until when, as far as this node can say."""
    told = _told(node)
    trusts_lan = told.get("trusts_lan")
    is_open, reason = door(node.journal.state, trusts_lan=trusts_lan is True)
    return {
        "open": is_open,
        "reason": reason,
        "closes_in_s": _seconds(told.get("closes_in_s")) if trusts_lan is not True else None,
        "trusts_lan": trusts_lan if isinstance(trusts_lan, bool) else None,
    }


def token_documents(node: "Node") -> list[dict[str, Any]]:
    """Return the join tokens in force, without their secrets."""
    left = _told(node).get("tokens")
    left_s: Mapping[str, Any] = left if isinstance(left, dict) else {}
    state = node.journal.state
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


def leaders_word(node: "Node", leading: "Leading") -> dict[str, Any]:
    """Return what a leader's heartbeats say of the door."""
    state, timer = node.journal.state, leading.token_timer
    edit, closes = state.window_edit, closes_by_itself(state)
    tokens = islice(sorted(state.tokens), MAX_TOLD_TOKENS)
    return {
        "trusts_lan": node.settings.trust_lan,
        "closes_in_s": leading.window.left_s(now_s(), edit) if closes else None,
        "tokens": {short(token): round(timer.left_s(now_s(), token)) for token in tokens},
    }


def _told(node: "Node") -> Mapping[str, Any]:
    """Return the leader's word; nothing where nobody leads, or it hasn't said so yet."""
    if node.leading is not None:
        return leaders_word(node, node.leading)
    leader = node.pulse.election.leader
    peer = None if leader is None else node.peers.get(leader)
    told = None if peer is None else peer.telemetry.get("door")
    return told if isinstance(told, dict) else {}


def _seconds(value: object) -> float | None:
    return round(float(value), 1) if isinstance(value, int | float) else None

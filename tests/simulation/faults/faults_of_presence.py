"""Faults of liveness and leadership, as they are planted by `mutants`.

Owns the bad versions of methods of `failure_detector` and `election`: each takes the place of one,
or wraps it.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from jupiterd.cluster.membership.election import ElectionRole
from jupiterd.cluster.membership.election_messages import BecomeLeader, RequestPreVote


def lead_unsaved(election: Any, term: int, reason: str) -> list[object]:
    election._role, election._leader = ElectionRole.LEADER, election._self_id
    election._term = term
    return [BecomeLeader(term, reason)]


def never_late(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda membership, now, _lag_s: original(membership, now, 0.0)


def ages_with_rumours(membership: Any, now: float) -> dict[Any, float]:
    found = {node: membership.last_heard_s(node, now) for node in membership._peers}
    return {node: age for node, age in found.items() if age is not None}


def heard_by_rumour(original: Callable[..., Any]) -> Callable[..., Any]:
    def hear(membership: Any, now: float, heard: Any) -> Any:
        for node, age_s in heard.ages_s.items():
            if node in membership._peers:
                peer = membership._peers[node]
                peer.heard_at = max(peer.heard_at, now - age_s)
        return original(membership, now, heard)

    return hear


def heard_just_now(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda membership, now, heard: original(membership, now, replace(heard, waited_s=0.0))


def asks_for_ever(election: Any, now: float) -> list[object]:
    if now < election._round.ends_at:
        return []
    election._round.ends_at = now + election._timing.answer_s
    return [RequestPreVote(frozenset(election._round.awaited), election._term + 1)]


def keeps_on_after_failing(election: Any, now: float, *, can_persist: bool) -> list[object]:
    election._can_persist = can_persist
    return []

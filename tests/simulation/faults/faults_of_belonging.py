"""Faults of who belongs and who is obeyed, as they are planted by `mutants`.

Owns the bad versions of functions of `admission`, `tokens`, `state` and `fencing`: each takes the
place of one, or wraps it.
"""

from collections.abc import Callable
from typing import Any

from jupiterd.cluster.facts.facts import PairingWindowSet
from jupiterd.cluster.membership.fencing import Obeyed
from jupiterd.ids import NodeId


def admit_whatever_the_window(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda state, _is_open, node, token="": original(state, True, node, token)


def count_without_uses(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda issued, withdrawn, _admissions: original(issued, withdrawn, [])


def count_without_withdrawals(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda issued, _withdrawn, admissions: original(issued, [], admissions)


def opening_beats_closing(original: Callable[..., Any]) -> Callable[..., Any]:
    def apply(state: Any, fact: Any, order: Any) -> None:
        if isinstance(fact, PairingWindowSet):
            rank = fact.is_open, fact.edit, *order
            state._window.offer((order[1], fact.is_open), fact, rank)
        else:
            original(state, fact, order)

    return apply


def obey_anybody(obeyed: Obeyed, leader: NodeId, term: int, attempt: int) -> Obeyed:
    return Obeyed(term, attempt or obeyed.attempt, leader)


def obey_two_in_one_term(obeyed: Obeyed, _leader: NodeId) -> int:
    return obeyed.term

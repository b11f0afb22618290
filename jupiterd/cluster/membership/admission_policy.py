"""Whether newcomers are let in just now, and why; and what is recorded as the door is shut.

Owns the answer in words. Doesn't let anybody in (`admission`), and knows no clock: how long a door
stays open is the leader's to say.
"""

from collections.abc import Iterable

from jupiterd.cluster.facts.facts import (
    CycleStarted,
    DataRequested,
    Fact,
    PairingWindowLocked,
    PairingWindowSet,
    TrainingStarted,
)
from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.membership.admission import OPEN_COMMAND
from jupiterd.ids import NodeId

TRUSTS_LAN = "the leader was started with --trust-lan"
OPENED = "somebody opened it"
NEVER_WORKED = "the first work that is started closes it"
CLOSED = f"to let machines in, run on any member: {OPEN_COMMAND}"


def door(state: State, *, trusts_lan: bool) -> tuple[bool, str]:
    """Return whether the door is open, with the reason."""
    if trusts_lan:
        return True, TRUSTS_LAN
    if not state.window_open:
        return False, CLOSED
    return True, OPENED if state.has_worked else NEVER_WORKED


def closes_by_itself(state: State) -> bool:
    """Say whether the leader will close the window when its time is up."""
    return state.window_open and state.has_worked


def shut_with(
    state: State, leader: NodeId, facts: Iterable[Fact] = ()
) -> tuple[PairingWindowLocked, ...]:
    """Return what a leader records beside facts that shut the door, or because it is shut.

    That is once, and by a trusted one: whoever else has shut it, or in an older version, has named
    nobody.
    """
    recorded, roster = tuple(facts), state.roster
    is_named = roster.is_named or any(isinstance(fact, PairingWindowLocked) for fact in recorded)
    if leader not in roster.trusted or is_named:
        return ()
    is_shut = roster.is_shut or not state.window_open or any(map(_shuts, recorded))
    return (PairingWindowLocked(roster.let_in_by_others()),) if is_shut else ()


def _shuts(fact: Fact) -> bool:
    if isinstance(fact, PairingWindowSet):
        return not fact.is_open
    return isinstance(fact, CycleStarted | DataRequested | TrainingStarted)

"""What people ask of a leader about members: the window, tokens, yeses, removals; and what time
asks.

Owns the facts. A leader to whom nobody has said yes records none of what only trusted ones may.
Imitates `daemon.member_commands` and the part of `daemon.term_duties` that closes the window when
it is over.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from jupiterd.cluster.facts.facts import (
    Fact,
    NodeRemoved,
    PairingWindowSet,
    TokenIssued,
    TokenWithdrawn,
)
from jupiterd.ids import NodeId

if TYPE_CHECKING:
    from tests.simulation.node.process import Process

USES = (1, 1, 1, 2, 0)


def window(process: "Process") -> Sequence[Fact]:
    """Open or close the window."""
    is_open = process.world.rng.random() < 0.5
    return [_window(process, is_open=is_open)] if is_trusted(process) or not is_open else []


def token(process: "Process") -> Sequence[Fact]:
    """Issue a join token."""
    world = process.world
    if not is_trusted(process):
        return []
    return [TokenIssued(world.fresh_name(16), world.fresh_name(32), world.rng.choice(USES))]


def withdraw(process: "Process") -> Sequence[Fact]:
    """Withdraw a token that still counts."""
    in_force = sorted(process.replica.ledger.state.tokens)
    if not in_force:
        return []
    return [TokenWithdrawn(process.world.rng.choice(in_force), "somebody withdrew it")]


def remove(process: "Process") -> Sequence[Fact]:
    """Remove another member, and the tokens that it knew."""
    others = sorted(process.others())
    if len(others) < 2 or not is_trusted(process):
        return []  # somebody is left to talk to
    state = process.replica.ledger.state
    node = process.world.rng.choice(others)
    removed = NodeRemoved(node, state.roster.admissions_of(node), _last_seen(process, node))
    return [removed, *(TokenWithdrawn(each, "it was removed") for each in state.tokens)]


def trust(process: "Process") -> Sequence[Fact]:
    """Say yes to a member that walked in."""
    members, trusted = process.replica.ledger.state.members, _trusted(process)
    walked_in = sorted(members.keys() - trusted)
    if not walked_in or not is_trusted(process):
        return []
    process.world.met["somebody says yes"] += 1
    admitted = members[process.world.rng.choice(walked_in)]
    return [replace(admitted, reason="a person has said yes to it", token="")]


def is_trusted(process: "Process") -> bool:
    """Say whether somebody has said yes to this node, as far as it knows."""
    return process.node in _trusted(process)


def _trusted(process: "Process") -> frozenset[NodeId]:
    return process.replica.ledger.state.roster.trusted


def tend(process: "Process") -> None:
    """Close the window when it has been open long enough for this leader."""
    leader_term = process.leader_term
    if leader_term is None or not leader_term.is_open:
        return
    state, now = process.replica.ledger.state, process.machine.clock_s()
    if leader_term.window.is_over(now, state.window_edit, is_open=state.window_open):
        process.world.met["the window is over"] += 1
        process.record(lambda own: [_window(own, is_open=False)])


def _window(process: "Process", *, is_open: bool) -> PairingWindowSet:
    return PairingWindowSet(is_open, process.replica.ledger.state.window_edit + 1)


def _last_seen(process: "Process", node: NodeId) -> dict[str, int]:
    tips = process.replica.ledger.tips().items()
    return {
        writer.partition("/")[2]: index for writer, index in tips if writer.startswith(f"{node}/")
    }

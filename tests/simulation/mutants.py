"""Faults that must not go unnoticed: each is planted in the real code, and some seed must fail.

Owns what each fault is, how it is planted and where it shows. Where the rule is one of the asyncio
shells', the fault is planted in the simulation's imitation of them (`journal`, `exchange`).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from blake3 import blake3

from jupiterd.cluster.election import Election, ElectionRole
from jupiterd.cluster.election_messages import AskPreVote, BecomeLeader
from jupiterd.cluster.ledger import Ledger
from jupiterd.cluster.membership import Membership
from jupiterd.cluster.presence import Presence
from jupiterd.cluster.progress_tree import ProgressTree
from jupiterd.cluster.registers import Register
from tests.simulation import profiles
from tests.simulation.exchange import Exchange
from tests.simulation.journal import Journal
from tests.simulation.profiles import Profile

Plant = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Mutant:
    """One planted fault."""

    name: str
    plant: Plant
    profile: Profile
    seeds: int = 30
    """So many are enough to notice it."""


def _replace(owner: type, name: str, make: Callable[[Any], Callable[..., Any]]) -> Plant:
    """Plant `make(original)` in place of a method."""
    return lambda patch: patch.setattr(owner, name, make(getattr(owner, name)))


def _instead(owner: type, name: str, method: Callable[..., Any]) -> Plant:
    return _replace(owner, name, lambda _original: method)


# --- election and membership ---


def _lead_unsaved(election: Any, term: int, reason: str) -> list[object]:
    election._role, election._leader = ElectionRole.LEADER, election._self_id
    election._term = term
    return [BecomeLeader(term, reason)]


def _never_late(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda membership, now, _lag_s: original(membership, now, 0.0)


def _ages_with_rumours(membership: Any, now: float) -> dict[Any, float]:
    found = {node: membership.last_heard_s(node, now) for node in membership._peers}
    return {node: age for node, age in found.items() if age is not None}


def _heard_by_rumour(original: Callable[..., Any]) -> Callable[..., Any]:
    def hear(membership: Any, now: float, heard: Any) -> Any:
        for node, age_s in heard.ages_s.items():
            if node in membership._peers:
                peer = membership._peers[node]
                peer.heard_at = max(peer.heard_at, now - age_s)
        return original(membership, now, heard)

    return hear


def _heard_just_now(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda membership, now, heard: original(membership, now, replace(heard, waited_s=0.0))


def _asks_for_ever(election: Any, now: float) -> list[object]:
    if now < election._round.ends_at:
        return []
    election._round.ends_at = now + election._timing.answer_s
    return [AskPreVote(frozenset(election._round.awaited), election._term + 1)]


def _keeps_on_after_failing(election: Any, now: float, *, can_persist: bool) -> list[object]:
    election._can_persist = can_persist
    return []


# --- ledger and state ---


def _lacking_with_gaps(original: Callable[..., Any]) -> Callable[..., Any]:
    def lacking(ledger: Ledger, have: Any, limit_bytes: int) -> Any:
        entries, more = original(ledger, have, limit_bytes)
        return [entry for entry in entries if entry.index != 7], more

    return lacking


def _chain_by_number(original: Callable[..., Any]) -> Callable[..., Any]:
    def check(ledger: Any, entry: Any, tip: Any) -> None:
        if not (tip.index and entry.index == tip.index + 1):
            original(ledger, entry, tip)

    return check


def _chain_of_any_terms(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda ledger, entry, tip: original(ledger, entry, replace(tip, term=0))


def _facts_of_the_longest(original: Callable[..., Any]) -> Callable[..., Any]:
    def add(ledger: Any, entry: Any) -> bool:
        longest = max(ledger.tips().values(), default=0)
        if entry.index >= longest:
            return original(ledger, entry)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ledger._state, "apply", lambda fact, order: None)
            return original(ledger, entry)

    return add


def _head_of_numbers(ledger: Ledger) -> str:
    tips = sorted(f"{writer} {index}" for writer, index in ledger.tips().items())
    return blake3(repr(tips).encode()).hexdigest()


def _line_by_arrival(tree: Any) -> Any:
    if tree._leaves is None:
        tree._leaves = tuple(tree._find_leaves())
    return tree._leaves


def _adopt_tips_alone(original: Callable[..., Any]) -> Callable[..., Any]:
    def adopt(ledger: Any, snapshot: Any) -> None:
        with pytest.MonkeyPatch.context() as patch:
            if len(ledger):
                patch.setattr(ledger._state, "apply", lambda fact, order: None)
            original(ledger, snapshot)

    return adopt


def _adopt_older_tips(original: Callable[..., Any]) -> Callable[..., Any]:
    def adopt(ledger: Any, snapshot: Any) -> None:
        original(ledger, snapshot)
        for writer, tip in snapshot.tips.items():
            ledger._chains[writer].skip_to(tip)

    return adopt


# --- shells ---


def _absorb_in_memory(journal: Any, raws: Any) -> int:
    new = [entry.raw for raw in raws if (entry := journal._admit(raw)) is not None]
    journal._unsaved += new
    return len(new)


def _open_at_once(exchange: Any, reign: Any, nodes: Any) -> None:
    exchange._process.world.witness.unites(exchange._process, reign, nodes)
    reign.open()


MUTANTS = (
    Mutant(
        "a term is used before it is on disk",
        _instead(Election, "_lead", _lead_unsaved),
        profiles.CALM,
    ),
    Mutant(
        "one that wakes goes on leading",
        _instead(Presence, "wake", lambda *_: []),
        profiles.SLEEPERS,
    ),
    Mutant(
        "a pre-vote is always granted",
        _instead(Election, "answer_pre_vote", lambda *_: (True, "why not")),
        profiles.LINKS,
    ),
    Mutant(
        "a leader stays beside a stronger one",
        _instead(Election, "_meet_leader", lambda *_: []),
        profiles.SPLIT,
    ),
    Mutant(
        "terms in the ledger aren't looked at",
        _instead(Election, "_see_term", lambda *_: []),
        profiles.BACKUPS,
    ),
    Mutant(
        "a leader whose disk is full goes on",
        _instead(Election, "_set_storage", _keeps_on_after_failing),
        profiles.WRITES,
    ),
    Mutant("late ticks accuse others", _replace(Membership, "_tick", _never_late), profiles.CALM),
    Mutant(
        "rumours are told as if heard",
        _instead(Membership, "ages", _ages_with_rumours),
        profiles.GOSSIP,
    ),
    Mutant(
        "rumours are taken as heard",
        _replace(Membership, "_hear", _heard_by_rumour),
        profiles.GOSSIP,
    ),
    Mutant(
        "heartbeats that waited count as new",
        _replace(Membership, "_hear", _heard_just_now),
        profiles.NAPS,
    ),
    Mutant(
        "a silent node holds up an election for ever",
        _instead(Election, "_repeat_or_finish", _asks_for_ever),
        profiles.GOSSIP,
    ),
    Mutant(
        "an exchange drops an entry",
        _replace(Ledger, "lacking", _lacking_with_gaps),
        profiles.SPLIT,
    ),
    Mutant(
        "the hash of the entry before isn't compared",
        _replace(Ledger, "_check_chain", _chain_by_number),
        profiles.FORGERS,
    ),
    Mutant(
        "the terms of a chain may go back",
        _replace(Ledger, "_check_chain", _chain_of_any_terms),
        profiles.FORGERS,
    ),
    Mutant(
        "authors needn't be members when they write",
        _instead(Ledger, "_check_author", lambda *_: None),
        profiles.FORGERS,
    ),
    Mutant(
        "a union keeps the longest chain's facts alone",
        _replace(Ledger, "add", _facts_of_the_longest),
        profiles.SPLIT,
    ),
    Mutant("the head ignores hashes", _instead(Ledger, "head", _head_of_numbers), profiles.TWINS),
    Mutant(
        "registers keep what came last",
        _instead(Register, "_beats", lambda *_: True),
        profiles.SPLIT,
    ),
    Mutant(
        "the line is the first leaf that came",
        _instead(ProgressTree, "_ranked_leaves", _line_by_arrival),
        profiles.SPLIT,
    ),
    Mutant(
        "a snapshot's facts are left out",
        _replace(Ledger, "adopt", _adopt_tips_alone),
        profiles.SUMS,
    ),
    Mutant(
        "a snapshot takes newer entries back",
        _replace(Ledger, "adopt", _adopt_older_tips),
        profiles.SUMS,
    ),
    Mutant(
        "nobody is told that only a snapshot helps",
        _instead(Ledger, "has_forgotten", lambda *_: False),
        profiles.SUMS,
    ),
    Mutant(
        "peers are answered before the disk is",
        _instead(Journal, "absorb", _absorb_in_memory),
        profiles.WRITES,
    ),
    Mutant(
        "a new leader doesn't unite first",
        _instead(Exchange, "unite", _open_at_once),
        profiles.SHOWERS,
        seeds=60,
    ),
    Mutant(
        "a restart goes on under the old name",
        _instead(Journal, "writer_name", lambda *_: "the-same"),
        profiles.BACKUPS,
    ),
)

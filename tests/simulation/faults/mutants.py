"""Faults that must not go unnoticed: each is planted in the real code, and some seed must fail.

Owns what each fault is, how it is planted and where it shows. Where the rule is one of the asyncio
shells', the fault is planted in the simulation's imitation of them (`replica`, `anti_entropy`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from jupiterd.cluster.facts.facts import NodeAdmitted
from jupiterd.cluster.ledger import roster, state, tokens
from jupiterd.cluster.ledger.ledger import Ledger
from jupiterd.cluster.ledger.lww_registers import Register
from jupiterd.cluster.ledger.progress_tree import ProgressTree
from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.membership import admission
from jupiterd.cluster.membership.clones import CloneWatch
from jupiterd.cluster.membership.election import Election
from jupiterd.cluster.membership.failure_detector import FailureDetector
from jupiterd.cluster.membership.fencing import Obeyed
from jupiterd.cluster.membership.pairing_window import PairingWindow
from jupiterd.cluster.membership.presence import Presence
from tests.simulation import profiles
from tests.simulation.faults import faults_of_belonging as bad_belonging
from tests.simulation.faults import faults_of_clones as bad_clones
from tests.simulation.faults import faults_of_ledger as bad_ledger
from tests.simulation.faults import faults_of_presence as bad_presence
from tests.simulation.node import fencing as orders
from tests.simulation.node.anti_entropy import AntiEntropy
from tests.simulation.node.disk import Disk
from tests.simulation.node.fencing import Fencing
from tests.simulation.node.process import Process
from tests.simulation.node.replica import Replica
from tests.simulation.node.strangers import Strangers
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
    unnoticed: int = 0
    """So many of the first didn't notice it when they were tried last; they come last."""

    @property
    def order(self) -> Sequence[int]:
        """Return the numbers of its seeds, from the one that is most likely to notice it."""
        numbers = range(self.seeds)
        return [*numbers[self.unnoticed :], *numbers[: self.unnoticed]]


def _replace(owner: object, name: str, make: Callable[[Any], Callable[..., Any]]) -> Plant:
    """Plant `make(original)` in place of a method."""
    return lambda patch: patch.setattr(owner, name, make(getattr(owner, name)))


def _instead(owner: object, name: str, method: Callable[..., Any]) -> Plant:
    return _replace(owner, name, lambda _original: method)


MUTANTS = (
    Mutant(
        "a term is used before it is on disk",
        _instead(Election, "_lead", bad_presence.lead_unsaved),
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
        profiles.SPLIT,
    ),
    Mutant(
        "a leader whose disk is full goes on",
        _instead(Election, "_set_storage", bad_presence.keeps_on_after_failing),
        profiles.WRITES,
    ),
    Mutant(
        "late ticks accuse others",
        _replace(FailureDetector, "_tick", bad_presence.never_late),
        profiles.CALM,
    ),
    Mutant(
        "rumours are told as if heard",
        _instead(FailureDetector, "ages", bad_presence.ages_with_rumours),
        profiles.GOSSIP,
    ),
    Mutant(
        "rumours are taken as heard",
        _replace(FailureDetector, "_hear", bad_presence.heard_by_rumour),
        profiles.GOSSIP,
    ),
    Mutant(
        "heartbeats that waited count as new",
        _replace(FailureDetector, "_hear", bad_presence.heard_just_now),
        profiles.NAPS,
    ),
    Mutant(
        "a silent node holds up an election for ever",
        _instead(Election, "_repeat_or_finish", bad_presence.asks_for_ever),
        profiles.GOSSIP,
    ),
    Mutant(
        "an exchange drops an entry",
        _replace(Ledger, "lacking", bad_ledger.lacking_with_gaps),
        profiles.SPLIT,
    ),
    Mutant(
        "the hash of the entry before isn't compared",
        _replace(Ledger, "_check_chain", bad_ledger.chain_by_number),
        profiles.FORGERS,
    ),
    Mutant(
        "the terms of a chain may go back",
        _replace(Ledger, "_check_chain", bad_ledger.chain_of_any_terms),
        profiles.FORGERS,
    ),
    Mutant(
        "authors needn't be members when they write",
        _instead(Ledger, "_check_author", lambda *_: None),
        profiles.FORGERS,
    ),
    Mutant(
        "a union keeps the longest chain's facts alone",
        _replace(Ledger, "add", bad_ledger.facts_of_the_longest),
        profiles.SPLIT,
    ),
    Mutant(
        "the head ignores hashes",
        _instead(Ledger, "head", bad_ledger.head_of_numbers),
        profiles.TWINS,
    ),
    Mutant(
        "registers keep what came last",
        _instead(Register, "_beats", lambda *_: True),
        profiles.SPLIT,
    ),
    Mutant(
        "the line is the first leaf that came",
        _instead(ProgressTree, "_ranked_leaves", bad_ledger.line_by_arrival),
        profiles.SPLIT,
    ),
    Mutant(
        "a snapshot's facts are left out",
        _replace(Ledger, "adopt", bad_ledger.adopt_tips_alone),
        profiles.SUMS,
    ),
    Mutant(
        "a snapshot takes newer entries back",
        _replace(Ledger, "adopt", bad_ledger.adopt_older_tips),
        profiles.SUMS,
    ),
    Mutant(
        "nobody is told that only a snapshot helps",
        _instead(Ledger, "has_forgotten", lambda *_: False),
        profiles.SUMS,
    ),
    Mutant(
        "peers are answered before the disk is",
        _instead(Replica, "absorb", bad_ledger.absorb_in_memory),
        profiles.WRITES,
    ),
    Mutant(
        "a new leader doesn't unite first",
        _instead(AntiEntropy, "unite", bad_ledger.open_at_once),
        profiles.SHOWERS,
        seeds=60,
    ),
    Mutant(
        "a restart goes on under the old name",
        _instead(Replica, "writer_name", lambda *_: "the-same"),
        profiles.BACKUPS,
    ),
    Mutant(
        "a removal isn't honoured",
        _instead(roster, "_is_withdrawn", lambda *_: False),
        profiles.REMOVALS,
    ),
    Mutant(
        "what a removed node decides afterwards counts",
        _instead(roster, "_was_known", lambda *_: True),
        profiles.REMOVALS,
        seeds=60,
        unnoticed=27,
    ),
    Mutant(
        "nobody is told that it was removed",
        _instead(Strangers, "_tell", lambda *_: None),
        profiles.REMOVALS,
    ),
    Mutant(
        "a member whose admission was lost isn't learnt from itself",
        _instead(Strangers, "_pull", lambda *_: None),
        profiles.BACKUPS,
        unnoticed=16,
    ),
    Mutant(
        "a closed window lets in",
        _replace(admission, "admit", bad_belonging.admit_whatever_the_window),
        profiles.DOORS,
    ),
    Mutant(
        "who walks in is trusted",
        _replace(NodeAdmitted, "walked_in", lambda _original: property(lambda _: False)),
        profiles.DOORS,
    ),
    Mutant(
        "the window doesn't close by itself",
        _instead(PairingWindow, "is_over", lambda *_, **__: False),
        profiles.DOORS,
    ),
    Mutant(
        "opening beats a later closing",
        _replace(State, "apply", bad_belonging.opening_beats_closing),
        profiles.DOORS,
    ),
    Mutant(
        "a token for one lets in two",
        _replace(state, "still_count", bad_belonging.count_without_uses),
        profiles.DOORS,
    ),
    Mutant(
        "a token that was withdrawn lets in",
        _replace(state, "still_count", bad_belonging.count_without_withdrawals),
        profiles.DOORS,
    ),
    Mutant(
        "the proof of a token isn't compared",
        _instead(tokens, "is_proved", lambda *_: True),
        profiles.DOORS,
    ),
    Mutant(
        "orders of the past are obeyed",
        _instead(Obeyed, "after", bad_belonging.obey_anybody),
        profiles.LAGGARDS,
    ),
    Mutant(
        "two leaders of one term are obeyed",
        _instead(Obeyed, "least_term", bad_belonging.obey_two_in_one_term),
        profiles.SPLIT,
        seeds=60,
        unnoticed=33,
    ),
    Mutant(
        "nobody asks its leader for a term that it may obey",
        _instead(Fencing, "_ask_for_term", lambda *_: None),
        profiles.STORMY,
        seeds=80,
        unnoticed=60,
    ),
    Mutant(
        "what is obeyed isn't saved", _instead(Disk, "save_obeyed", lambda *_: None), profiles.CALM
    ),
    Mutant(
        "a clone isn't told by its greeting",
        _instead(CloneWatch, "is_greeted_by_itself", lambda *_: True),
        profiles.CLONES,
    ),
    Mutant(
        "who calls notices a clone, who is called doesn't",
        _instead(CloneWatch, "is_greeted_by_itself", bad_clones.notice_as_caller_alone),
        profiles.CLONES,
    ),
    Mutant(
        "an entry of a clone in our name is passed over",
        _instead(CloneWatch, "is_ours", lambda *_: True),
        profiles.TWINS,
    ),
    Mutant(
        "one whose key is used twice goes on leading",
        _instead(Process, "fall_silent", lambda *_: None),
        profiles.CLONES,
    ),
    Mutant(
        "one that fell silent stands again",
        _instead(Election, "_may_ask", bad_clones.stand_again),
        profiles.CLONES,
    ),
    Mutant(
        "one whose key is used twice answers members",
        _instead(Process, "answers", bad_clones.answer_members_alone),
        profiles.CLONES,
    ),
    Mutant(
        "orders of somebody whom a node doesn't follow are obeyed",
        _instead(orders, "is_followed", lambda *_: True),
        profiles.SPLIT,
    ),
    Mutant(
        "a term far above all that is known is believed",
        _instead(Ledger, "check_near", lambda *_: None),
        profiles.FORGERS,
    ),
    Mutant(
        "what was dated back to before the door was shut counts",
        _instead(roster, "_is_named", lambda *_: True),
        profiles.FIRST_DAY,
    ),
)

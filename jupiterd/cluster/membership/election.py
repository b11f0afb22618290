"""Elects the leader of the group of nodes that hear each other.

Owns roles, terms and pre-votes. Doesn't know the transport, the ledger, or what a leader does.

The election needs no quorum: any group elects a leader, and a node alone leads itself. Terms and
pre-votes are those of Raft (Ongaro & Ousterhout, USENIX ATC 2014; pre-vote: Ongaro's thesis, 9.6),
but every present node must grant, where Raft needs a majority of all members.

1. The leader stays. A follower that hears its leader refuses every pre-vote.
2. A follower that hears no leader for 1.5-3.0 s (a steadier node waits less; so does every node if
   the leader ran a gang) requests a pre-vote from every present node, and leads once all grant it.
   A node that leaves two requests unanswered is passed over, so that it can't block the election.
   The silent leader is passed over after one request if another node grants: that node doesn't hear
   the leader either.
3. If two nodes request at once, the one with the greater (stability, id) goes on; the other grants.
4. If two leaders hear each other, the one with the greater (runs a gang, members, stability, id)
   goes on and takes a term above both terms; the other steps down and follows. A heartbeat that
   either of them sent before they heard each other doesn't count.
5. A node that appears or leaves never restarts a running election.
6. A node that wakes from sleep stops leading and listens before it requests a pre-vote. A leader
   without any other present node leads on: a lone node on a busy machine is late again and again,
   and would lose its work each time.
7. A node that can't write its term to disk doesn't lead or request pre-votes until it can. It still
   grants the pre-votes of others.

The shell carries out the effects in order: it persists a term before it does anything that follows,
then sends, then acts. If it can't persist, it drops the rest and reports `StorageFailed`. A leader
that gets `BecomeLeader` goes on leading under the new term.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, assert_never

from jupiterd.cluster.membership.election_messages import (
    BeatSeen,
    BecomeLeader,
    Effect,
    ElectionInput,
    ElectionTicked,
    Follow,
    GangChanged,
    HandedOver,
    OwnChange,
    PersistTerm,
    PresenceChanged,
    PreVoteAnswered,
    Reinstated,
    RequestPreVote,
    Resigned,
    StabilityChanged,
    StepDown,
    StorageFailed,
    StorageRecovered,
    TermSeen,
    Woke,
)
from jupiterd.cluster.values.timing import LAN, Timing
from jupiterd.ids import NodeId, short

__all__ = [
    "BeatSeen",
    "BecomeLeader",
    "Effect",
    "Election",
    "ElectionInput",
    "ElectionRole",
    "ElectionTicked",
    "Follow",
    "GangChanged",
    "HandedOver",
    "PersistTerm",
    "PreVoteAnswered",
    "PresenceChanged",
    "Reinstated",
    "RequestPreVote",
    "Resigned",
    "StabilityChanged",
    "StepDown",
    "StorageFailed",
    "StorageRecovered",
    "TermSeen",
    "Uniform",
    "Woke",
]


class Uniform(Protocol):
    """The part of random.Random that an election needs."""

    def uniform(self, a: float, b: float) -> float:
        """Return a number between a and b."""
        ...


class ElectionRole(StrEnum):
    """The role of a node in its group."""

    FOLLOWER = "follower"
    ASKING = "asking"
    """It waits for the answers to its pre-vote."""
    LEADER = "leader"


_Precedence = tuple[bool, int, int, NodeId]
_LONG_AGO = float("-inf")


@dataclass
class _Round:
    """A pre-vote in progress."""

    awaited: set[NodeId]
    ends_at: float
    voters: int
    is_repeated: bool = False
    has_grants: bool = False


class Election:
    """One node's part in the election; `now` is in seconds of a clock that runs during sleep."""

    def __init__(
        self, self_id: NodeId, term: int, now: float, rng: Uniform, timing: Timing = LAN
    ) -> None:
        """`term`: the highest term on disk or in the ledger."""
        self._self_id = self_id
        self._rng = rng
        self._timing = timing
        self._term = term
        self._role = ElectionRole.FOLLOWER
        self._leader: NodeId | None = None
        self._leader_heard_at = _LONG_AGO
        self._unheard: NodeId | None = None
        """The leader that this node no longer hears and asked the other nodes about."""
        self._passed_over: set[NodeId] = set()
        self._present: frozenset[NodeId] = frozenset()
        self._beats: dict[NodeId, tuple[float, BeatSeen]] = {}
        """Present node -> when this node last heard it, and that heartbeat."""
        self._round = _Round(set(), now, 0)
        self._successor: NodeId | None = None
        """The node that the last leader named, as long as this node waits for it to lead."""
        self._has_resigned = False
        self._has_lost_leader = False
        """The leader left or died, and this node has followed no other since."""
        self._can_persist = True
        self._alone_since = now
        self.stability = 0
        """How steadily this machine runs; a greater number is steadier."""
        self.runs_gang = False
        """Whether this node, as leader, runs a gang."""
        self._deadline = now + self._patience_s()

    @property
    def term(self) -> int:
        """The highest term that this node knows."""
        return self._term

    @property
    def role(self) -> ElectionRole:
        """This node's current role."""
        return self._role

    @property
    def leader(self) -> NodeId | None:
        """The leader of the group; None during an election."""
        return self._leader

    @property
    def passed_over(self) -> frozenset[NodeId]:
        """The nodes that this node didn't wait for when it was elected and hasn't heard since."""
        return frozenset(self._passed_over)

    @property
    def wake_at(self) -> float:
        """When the shell must send the next `ElectionTicked`; infinite if nothing is due."""
        if not self._may_ask():
            return math.inf
        if self._role is ElectionRole.ASKING:
            return self._round.ends_at
        settled_at = self._alone_since + self._timing.alone_settle_s
        return self._deadline if self._present else min(settled_at, self._deadline)

    def members_alive(self, now: float) -> int:
        """Return how many nodes follow this node by their own heartbeats, plus itself.

        A node that was silent for `election_min_s` may have elected another leader: it isn't
        counted.
        """
        heard_after = now - self._timing.election_min_s
        followers = [
            node
            for node, (heard_at, beat) in self._beats.items()
            if beat.leader == self._self_id and heard_at > heard_after
        ]
        return 1 + len(followers)

    def steadiest(self, nodes: Iterable[NodeId]) -> NodeId | None:
        """Return the steadiest of these nodes by their heartbeats; None if none was heard."""
        known = {node: self._beats[node][1].stability for node in nodes if node in self._beats}
        return max(known, key=lambda node: (known[node], node), default=None)

    def step(self, now: float, event: ElectionInput) -> list[Effect]:
        """Handle an event at `now`; return the effects that the shell must carry out, in order."""
        match event:
            case PresenceChanged():
                return self._see_presence(now, event.present)
            case BeatSeen():
                return self._see_beat(now, event)
            case PreVoteAnswered():
                return self._see_answer(now, event)
            case ElectionTicked():
                return self._tick(now)
            case _:
                return self._take_up(now, event)

    def answer_pre_vote(
        self, now: float, node: NodeId, term: int, stability: int
    ) -> tuple[bool, str]:
        """Return whether this node grants the pre-vote of `node`, and why.

        A granted term may still be too low: the answer carries this node's term, and the candidate
        takes a term above it.
        """
        if self._role is ElectionRole.LEADER:
            return False, f"{short(self._self_id)} leads in term {self._term}"
        if self._leader and now - self._leader_heard_at < self._timing.election_min_s:
            return False, f"{short(self._self_id)} hears the leader {short(self._leader)}"
        if self._role is ElectionRole.ASKING and self._is_steadier_than(stability, node):
            return False, f"{short(self._self_id)} asks too and is steadier"
        self._role = ElectionRole.FOLLOWER
        self._deadline = max(self._deadline, now + self._timing.election_min_s)
        return True, f"no leader is heard; term {max(term, self._term + 1)} is free"

    # --- what is seen ---

    def _take_up(self, now: float, event: OwnChange) -> list[Effect]:
        match event:
            case StorageFailed() | StorageRecovered():
                return self._set_storage(now, can_persist=isinstance(event, StorageRecovered))
            case Woke():
                return self._wake(now, event.late_s)
            case TermSeen():
                return self._see_term(event.term, is_of_others=event.is_of_others)
            case Resigned():
                self._has_resigned = True
                return self._stop_leading("the daemon stops")
            case Reinstated():
                if self._has_resigned:
                    self._has_resigned = False
                    self._deadline = now + self._patience_s()
            case StabilityChanged():
                self.stability = event.stability
            case GangChanged():
                self.runs_gang = event.runs_gang
            case HandedOver():
                return self._take_over(now, event.successor)
            case _:
                assert_never(event)
        return []

    def _see_presence(self, now: float, present: frozenset[NodeId]) -> list[Effect]:
        present -= {self._self_id}
        if not present and self._present:
            self._alone_since = now
        self._present = present
        for node in set(self._beats) - present:
            del self._beats[node]
        is_follower = self._role is ElectionRole.FOLLOWER
        if is_follower and not {self._leader, self._successor} - {None} <= present:
            self._lose_leader(now)
        if self._role is ElectionRole.ASKING:
            self._round.awaited &= present
            return self._finish_if_complete()
        return []

    def _see_beat(self, now: float, beat: BeatSeen) -> list[Effect]:
        if beat.node == self._self_id:
            return []
        self._note_beat(now, beat)
        if beat.leader == beat.node:
            return self._see_leader(now, beat)
        if beat.node == self._leader:
            return self._see_abdication(now, beat)
        if self._leader is None and self._role is ElectionRole.FOLLOWER and beat.leader:
            # Only a peer names this leader. Follow it, but keep the election deadline until the
            # leader itself is heard. Peers that haven't noticed its end may still name a leader
            # that is gone.
            is_here = beat.leader in self._present
            reason = f"{short(beat.node)} follows it"
            return self._follow(beat.leader, beat.term, reason) if is_here else []
        return self._see_term(beat.term) if beat.leader == self._leader else []

    def _note_beat(self, now: float, beat: BeatSeen) -> None:
        """Store a heartbeat; a delayed one doesn't replace a fresh one that still counts."""
        heard_at, _ = self._beats.get(beat.node, (_LONG_AGO, beat))
        if beat.is_fresh:
            self._beats[beat.node] = now, beat
            self._passed_over.discard(beat.node)
        elif now - heard_at >= self._timing.election_min_s:
            self._beats[beat.node] = _LONG_AGO, beat

    def _see_leader(self, now: float, beat: BeatSeen) -> list[Effect]:
        if self._role is ElectionRole.LEADER:
            return self._meet_leader(now, beat) if beat.is_fresh else []
        if self._leader != beat.node and self._hears_leader(now):
            return []  # the two leaders decide between themselves who goes on
        self._leader_heard_at = now
        self._deadline = now + self._patience_s(hurries=beat.runs_gang)
        return self._follow(beat.node, beat.term, "it leads")

    def _meet_leader(self, now: float, beat: BeatSeen) -> list[Effect]:
        if self._precedence(now) > _precedence_of(beat):
            if self._term > beat.term:
                return []
            return self._lead(beat.term + 1, f"takes precedence over {short(beat.node)}")
        reason = f"{short(beat.node)} leads and takes precedence"
        self._leader_heard_at = now
        self._deadline = now + self._patience_s()
        # The other may never learn that we led; a term above ours makes it go above both.
        own_term = self._term + 1 if self._term >= beat.term else beat.term
        return [StepDown(reason), *self._follow(beat.node, own_term, reason)]

    def _see_abdication(self, now: float, beat: BeatSeen) -> list[Effect]:
        if beat.leader and beat.leader != self._self_id:
            return self._follow(beat.leader, beat.term, f"{short(beat.node)} follows it")
        if self._role is ElectionRole.FOLLOWER:
            self._lose_leader(now)
        return self._see_term(beat.term)

    def _see_answer(self, now: float, answer: PreVoteAnswered) -> list[Effect]:
        if self._role is not ElectionRole.ASKING or answer.node not in self._round.awaited:
            return []
        effects = self._see_term(answer.term)
        if not answer.granted:
            self._role = ElectionRole.FOLLOWER
            self._deadline = now + self._wait_after_refusal_s()
            return effects
        self._round.awaited.discard(answer.node)
        self._round.has_grants = True
        return [*effects, *self._finish_if_complete()]

    def _see_term(self, term: int, *, is_of_others: bool = False) -> list[Effect]:
        if term + is_of_others <= self._term:
            return []
        if self._role is ElectionRole.LEADER:
            return self._lead(term + 1, f"term {term} was seen")
        return self._raise_term(term)

    # --- what is done ---

    def _tick(self, now: float) -> list[Effect]:
        if now < self.wake_at:
            return []
        return self._repeat_or_finish(now) if self._role is ElectionRole.ASKING else self._ask(now)

    def _may_ask(self) -> bool:
        is_leader = self._role is ElectionRole.LEADER
        return not (self._has_resigned or not self._can_persist or is_leader)

    def _ask(self, now: float) -> list[Effect]:
        self._role = ElectionRole.ASKING
        self._unheard, self._leader = self._leader or self._unheard, None
        self._round = _Round(set(self._present), now + self._answer_s(), len(self._present))
        if not self._present:
            return self._finish_if_complete()
        return [RequestPreVote(self._present, self._term + 1)]

    def _repeat_or_finish(self, now: float) -> list[Effect]:
        if self._round.is_repeated or self._is_witnessed():
            self._passed_over = set(self._round.awaited)
            return self._win(f"{len(self._round.awaited)} of {self._round.voters} didn't answer")
        self._round.is_repeated = True
        self._round.ends_at = now + self._timing.answer_s
        return [RequestPreVote(frozenset(self._round.awaited), self._term + 1)]

    def _finish_if_complete(self) -> list[Effect]:
        if self._round.awaited:
            return []
        agreed = f"all {self._round.voters} nodes asked agree" if self._round.voters else "alone"
        return self._win(agreed)

    def _win(self, reason: str) -> list[Effect]:
        return self._lead(self._term + 1, reason)

    def _lead(self, term: int, reason: str) -> list[Effect]:
        self._role = ElectionRole.LEADER
        self._has_lost_leader, self._unheard = False, None
        self._leader = self._self_id
        self._term = term
        return [PersistTerm(term), BecomeLeader(term, reason)]

    def _follow(self, leader: NodeId, term: int, reason: str) -> list[Effect]:
        self._role = ElectionRole.FOLLOWER
        self._has_lost_leader, self._successor = False, None
        self._unheard = None
        effects = self._raise_term(term)
        if leader != self._leader:
            self._leader = leader
            effects.append(Follow(leader, self._term, reason))
        return effects

    def _raise_term(self, term: int) -> list[Effect]:
        if term <= self._term:
            return []
        self._term = term
        return [PersistTerm(term)]

    def _wake(self, now: float, late_s: float) -> list[Effect]:
        """Step down after a sleep: all that this node knows of others is as old as the sleep."""
        if self._role is ElectionRole.LEADER and not self._present:  # no other node could lead
            return []
        self._alone_since, self._deadline = now, now + self._patience_s()
        return self._stop_leading(f"it was asleep for {late_s:.1f} s")

    def _set_storage(self, now: float, *, can_persist: bool) -> list[Effect]:
        self._can_persist = can_persist
        self._deadline = now + self._patience_s()
        return self._stop_leading("its term can't be written to disk")

    def _stop_leading(self, reason: str) -> list[Effect]:
        was_leader = self._role is ElectionRole.LEADER
        self._role = ElectionRole.FOLLOWER
        if not was_leader:
            return []
        self._leader = None
        return [StepDown(reason)]

    def _take_over(self, now: float, successor: NodeId) -> list[Effect]:
        """Handle the departure of a leader that named a successor.

        The successor requests its pre-vote at once; the others wait for it, but only as long as it
        is present.
        """
        if self._role is not ElectionRole.FOLLOWER or self._leader is not None:
            return []
        if successor == self._self_id:
            self._deadline = now
            return self._tick(now)
        if successor in self._present:
            self._successor, self._deadline = successor, now + self._timing.answer_s
        return []

    def _lose_leader(self, now: float) -> None:
        """Bring the election forward: the leader said that it stops, or it is gone."""
        self._leader = self._successor = self._unheard = None
        self._has_lost_leader = True
        self._leader_heard_at = _LONG_AGO
        hurry_s = self._timing.rank_s * self._rank() + self._rng.uniform(0.0, self._timing.hurry_s)
        self._deadline = min(self._deadline, now + hurry_s)

    # --- what is weighed ---

    def _patience_s(self, *, hurries: bool = False) -> float:
        least_s, most_s = self._timing.election_min_s, self._timing.election_max_s
        most_s = self._timing.gang_max_s if hurries else most_s
        least_s = min(least_s + self._timing.rank_s * self._rank(), (least_s + 3 * most_s) / 4)
        return self._rng.uniform(least_s, most_s)

    def _wait_after_refusal_s(self) -> float:
        """Wait only briefly if the leader is known to be gone: the others soon notice it too."""
        if not self._has_lost_leader:
            return self._patience_s()
        return self._timing.beat_s + self._rng.uniform(0.0, self._timing.hurry_s)

    def _answer_s(self) -> float:
        """Return how long the first request waits for answers: less if a gang stands still."""
        beat = self._beats.get(self._unheard or self._self_id)
        is_gang_still = beat is not None and beat[1].runs_gang
        return self._timing.gang_answer_s if is_gang_still else self._timing.answer_s

    def _is_witnessed(self) -> bool:
        """Return whether only the silent leader hasn't answered and another node has granted."""
        return self._round.awaited == {self._unheard} and self._round.has_grants

    def _rank(self) -> int:
        """Return how many present nodes are steadier than this one."""
        return sum(1 for _, beat in self._beats.values() if beat.stability > self.stability)

    def _hears_leader(self, now: float) -> bool:
        is_other = self._leader is not None and self._leader != self._self_id
        return is_other and now - self._leader_heard_at < self._timing.election_min_s

    def _is_steadier_than(self, stability: int, node: NodeId) -> bool:
        return (self.stability, self._self_id) > (stability, node)

    def _precedence(self, now: float) -> _Precedence:
        return self.runs_gang, self.members_alive(now), self.stability, self._self_id


def _precedence_of(beat: BeatSeen) -> _Precedence:
    return beat.runs_gang, beat.members_alive, beat.stability, beat.node

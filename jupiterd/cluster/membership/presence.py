"""One node's view of its group: which members are alive and who leads, decided together.

Owns the exchange between `failure_detector` and `election`, the contents of the heartbeat, and the
wake from sleep. Doesn't know how a heartbeat travels, what the disk holds besides the term, or what
a leader does.

The shell carries out the effects in order: it persists a term before it does anything that follows,
then sends, then acts. If it can't persist, it drops the rest except `StepDown`, and reports
`StorageFailed`.

An event loop that stood still for seconds (somebody closed the lid or stopped the process) reads
old messages from its queue as if they were new. By then another node may lead, and the senders may
be dead. So the first event after the stall detects it, whichever event that is; a leader then steps
down before it handles the event; and until a tick is on time again, a heartbeat only proves that
its sender lived before the stall.

This node ignores a message whose term is far above the highest one that it knows: see `bounds`.

`step` does both by itself. Every other entry point of the shell (it appends an entry, answers an
exchange, or executes a command) must call `wake` first and carry out the effects before it goes on.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from jupiterd.cluster.membership.election import Election, ElectionTicked, Uniform
from jupiterd.cluster.membership.election_messages import (
    BeatSeen,
    BecomeLeader,
    Follow,
    GangChanged,
    HandedOver,
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
from jupiterd.cluster.membership.failure_detector import (
    AddressRefused,
    Changed,
    FailureDetector,
    Heard,
    RosterChanged,
    SaidGoodbye,
    Ticked,
)
from jupiterd.cluster.values.bounds import MAX_NUMBER, MAX_STEP, REGAINED
from jupiterd.cluster.values.timing import LAN, Timing
from jupiterd.ids import NodeId

__all__ = [
    "AddressRefused",
    "AnswerPreVote",
    "Beat",
    "BecomeLeader",
    "Changed",
    "DeadlinePassed",
    "Effect",
    "Follow",
    "GangChanged",
    "HandedOver",
    "Input",
    "PersistTerm",
    "PreVoteAnswered",
    "PreVoteRequested",
    "Presence",
    "Reinstated",
    "RequestPreVote",
    "Resigned",
    "RosterChanged",
    "SaidGoodbye",
    "StabilityChanged",
    "StepDown",
    "StorageFailed",
    "StorageRecovered",
    "TermSeen",
    "Ticked",
]


@dataclass(frozen=True)
class Beat:
    """The heartbeat of a node: twice a second to its leader, about once to other followers."""

    node: NodeId
    term: int
    leader: NodeId | None
    """The leader that it follows; itself where it leads."""
    stability: int = 0
    members_alive: int = 1
    runs_gang: bool = False
    ages_s: Mapping[NodeId, float] = field(default_factory=dict[NodeId, float])
    """Member -> seconds since it heard that member itself."""
    sent_s: float = 0.0
    """When it was sent, by the sender's clock."""
    echo_s: float | None = None
    """The `sent_s` of the last heartbeat that it got from the receiver; None if it got none."""


@dataclass(frozen=True)
class DeadlinePassed:
    """The time of `Presence.wake_at` came; the shell didn't measure the loop's lag."""


@dataclass(frozen=True)
class PreVoteRequested:
    """A member requests a pre-vote."""

    node: NodeId
    term: int
    stability: int


@dataclass(frozen=True)
class AnswerPreVote:
    """Tell `node` whether this node grants its pre-vote, and the highest term known here."""

    node: NodeId
    granted: bool
    term: int
    reason: str


_OfMembers = AddressRefused | SaidGoodbye | RosterChanged | Ticked
_OfElection = (
    PreVoteAnswered
    | TermSeen
    | StabilityChanged
    | GangChanged
    | HandedOver
    | Resigned
    | Reinstated
    | StorageFailed
    | StorageRecovered
)

Input = Beat | PreVoteRequested | DeadlinePassed | _OfMembers | _OfElection
"""An event that the shell reports."""

Effect = Changed | AnswerPreVote | PersistTerm | RequestPreVote | BecomeLeader | StepDown | Follow
"""An effect that the shell must carry out; it only announces a `Changed`."""


class Presence:
    """The liveness of the members and the leadership of the group, as one node sees them."""

    def __init__(
        self, self_id: NodeId, term: int, now: float, rng: Uniform, timing: Timing = LAN
    ) -> None:
        """`now`: in seconds of a clock that runs during sleep; `term`: as for `Election`."""
        self._self_id = self_id
        self._timing = timing
        self._tick_due_at = math.inf
        """When the next tick is due; infinite before the first one, so that it isn't late."""
        self._is_woken = False
        """`wake` has already reported the sleep that makes the next tick late."""
        self._waited_s = 0.0
        """The longest time a heartbeat may have waited for the loop; 0 unless the loop slept."""
        self._stamps: dict[NodeId, float] = {}
        """The `sent_s` of each node's last beat."""
        self._room = MAX_STEP
        """By how much messages of other nodes may raise this node's term now."""
        self.membership = FailureDetector(self_id, now, timing)
        self.election = Election(self_id, term, now, rng, timing)

    @property
    def wake_at(self) -> float:
        """When the shell must send `DeadlinePassed`, besides the ticks; infinite: not at all."""
        return self.election.wake_at

    def step(self, now: float, event: Input) -> list[Effect]:
        """Handle an event at `now`; return the effects that the shell must carry out, in order."""
        effects, term = self.wake(now), self.election.term
        match event:
            case PreVoteRequested() if not self.believes(event.term):
                effects.append(self._refuse(event))
            case Beat() | PreVoteAnswered() if not self.believes(event.term):
                pass
            case Beat():
                effects += self._hear(now, event)
            case PreVoteRequested():
                effects.append(self._answer(now, event))
            case AddressRefused() | SaidGoodbye() | RosterChanged():
                effects += self._judge(now, event)
            case Ticked():
                effects += self._tick(now, event)
            case DeadlinePassed():
                effects += self.election.step(now, ElectionTicked())
            case _:
                effects += self.election.step(now, event)
        self._room = max(0, self._room - (self.election.term - term))
        return effects

    def believes(self, term: int) -> bool:
        """Return whether this cluster can have reached the term that a message states."""
        return 0 <= term <= min(self.election.term + self._room, MAX_NUMBER)

    def wake(self, now: float) -> list[Effect]:
        """Detect a tick so late that the loop must have slept; return the election's effects."""
        late_s = now - self._tick_due_at
        if self._is_woken or late_s <= self._timing.asleep_s:
            return []
        self._is_woken = True
        self._waited_s = late_s
        return [*self.election.step(now, Woke(late_s))]

    def beat(self, now: float, to: NodeId) -> Beat:
        """Return this node's current heartbeat for another node."""
        return Beat(
            node=self._self_id,
            term=self.election.term,
            leader=self.election.leader,
            stability=self.election.stability,
            members_alive=self.election.members_alive(now),
            runs_gang=self.election.runs_gang,
            ages_s=self.membership.ages(now),
            sent_s=now,
            echo_s=self._stamps.get(to),
        )

    def _hear(self, now: float, beat: Beat) -> list[Effect]:
        effects = self._judge(now, Heard(beat.node, beat.ages_s, self._waited_s))
        self._stamps[beat.node] = beat.sent_s
        seen = BeatSeen(
            beat.node,
            beat.term,
            beat.leader,
            beat.stability,
            beat.members_alive,
            beat.runs_gang,
            is_fresh=self._is_fresh(now, beat),
        )
        return [*effects, *self.election.step(now, seen)]

    def _is_fresh(self, now: float, beat: Beat) -> bool:
        """Return whether the sender had heard this node within `fresh_s`.

        A heartbeat sent into an unplugged cable arrives once the cable is back, and describes a
        group that may have another leader by then. Such a heartbeat echoes an old one of ours.
        """
        return beat.echo_s is not None and 0.0 <= now - beat.echo_s < self._timing.fresh_s

    def _tick(self, now: float, tick: Ticked) -> list[Effect]:
        """Handle a tick; measure its lag too: a loop that a slow disk held up reports none."""
        lag_s = max(tick.loop_lag_s, now - self._tick_due_at)
        self._tick_due_at = now + self._timing.beat_s
        self._is_woken = False
        self._room = min(MAX_STEP, self._room + REGAINED)
        if lag_s <= self._timing.lag_limit_s:
            self._waited_s = 0.0
        changes = self._judge(now, Ticked(lag_s))
        return [*changes, *self.election.step(now, ElectionTicked())]

    def _judge(
        self, now: float, event: Heard | AddressRefused | SaidGoodbye | RosterChanged | Ticked
    ) -> list[Effect]:
        changes = self.membership.step(now, event)
        if not changes and not isinstance(event, RosterChanged):
            return []
        present = self.membership.present() - {self._self_id}
        return [*changes, *self.election.step(now, PresenceChanged(present))]

    def _refuse(self, request: PreVoteRequested) -> AnswerPreVote:
        own = self.election.term
        return AnswerPreVote(request.node, False, own, f"its term is far above {own}")  # noqa: FBT003

    def _answer(self, now: float, request: PreVoteRequested) -> AnswerPreVote:
        granted, reason = self.election.answer_pre_vote(
            now, request.node, request.term, request.stability
        )
        return AnswerPreVote(request.node, granted, self.election.term, reason)

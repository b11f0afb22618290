"""One node's view of its group: which members are alive and who leads, decided together.

Owns the exchange between `membership` and `election`, the contents of the heartbeat, and the wake
from sleep. Doesn't know how a heartbeat travels, what else than the term is on disk, or what a
leader does.

What the shell does with effects, in the order in which they come: persist a term before anything
after it, then send, then act. Where persisting fails it drops the rest, all but `StepDown`, and
tells `StorageFailed`.

A loop that stood still for seconds (the lid was shut, the process was stopped) handles what has
piled up as if no time had passed; others may lead by now, and whoever is heard may be dead. So a
late tick is noticed by whatever comes first, a leader steps down before it takes in anything else,
and until a tick is in time again a heartbeat proves no more than that its sender lived before.

A term that lies far above the highest one known isn't believed, and neither is anything else that
came with it: see `bounds`.

`step` sees to both by itself. Each other entry point of the shell (an entry to be appended, an
exchange to be answered, a command) calls `wake` first and does what it returns before it goes on.
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
from jupiterd.cluster.membership.membership import (
    AddressRefused,
    Changed,
    Heard,
    Membership,
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
    """The last `sent_s` that it has of whom it says this to; None where it never heard it."""


@dataclass(frozen=True)
class DeadlinePassed:
    """`Presence.wake_at` has come; nothing is known of the loop's lag."""


@dataclass(frozen=True)
class PreVoteRequested:
    """A member requests a pre-vote."""

    node: NodeId
    term: int
    stability: int


@dataclass(frozen=True)
class AnswerPreVote:
    """Answer a node whether it may lead, with the highest term known here."""

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
"""What a shell tells."""

Effect = Changed | AnswerPreVote | PersistTerm | RequestPreVote | BecomeLeader | StepDown | Follow
"""What a shell is asked to do; a `Changed` is only to be told of."""


class Presence:
    """The liveness of the members and the leadership of the group, as one node sees them."""

    def __init__(
        self, self_id: NodeId, term: int, now: float, rng: Uniform, timing: Timing = LAN
    ) -> None:
        """`now` is in seconds on a clock that counts sleep; `term` as `Election` wants it."""
        self._self_id = self_id
        self._timing = timing
        self._tick_due_at = math.inf
        """When the next tick is due; before the first one nothing is late."""
        self._is_woken = False
        """The sleep that made the next tick late has been reported."""
        self._waited_s = 0.0
        """Seconds that a heartbeat may have waited for our loop; 0 unless it just slept."""
        self._stamps: dict[NodeId, float] = {}
        """The `sent_s` of each node's last beat."""
        self._room = MAX_STEP
        """How far messages of others may raise our term now."""
        self.membership = Membership(self_id, now, timing)
        self.election = Election(self_id, term, now, rng, timing)

    @property
    def wake_at(self) -> float:
        """When `DeadlinePassed` is wanted next, beside the ticks; infinite where it isn't."""
        return self.election.wake_at

    def step(self, now: float, event: Input) -> list[Effect]:
        """Take in what happened at `now` and return what is to be done, in order."""
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
        """Say whether this cluster can have reached a term that a message states."""
        return 0 <= term <= min(self.election.term + self._room, MAX_NUMBER)

    def wake(self, now: float) -> list[Effect]:
        """Detect that a tick is so late that the loop must have been asleep."""
        late_s = now - self._tick_due_at
        if self._is_woken or late_s <= self._timing.asleep_s:
            return []
        self._is_woken = True
        self._waited_s = late_s
        return [*self.election.step(now, Woke(late_s))]

    def beat(self, now: float, to: NodeId) -> Beat:
        """Return this node's present heartbeat for another node."""
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
        """Say whether its sender had heard us just now when it said so.

        What was sent into a pulled cable comes when the cable is back, and tells of a group that
        has another leader by then. It is no younger than the last beat of ours that it answers.
        """
        return beat.echo_s is not None and 0.0 <= now - beat.echo_s < self._timing.fresh_s

    def _tick(self, now: float, tick: Ticked) -> list[Effect]:
        """Measure the lag here too: a loop held up by its own work (a slow disk) tells of none."""
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

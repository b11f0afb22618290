"""Detects failed members: each is alive, suspect or gone.

Owns each member's age (seconds since any node heard it) and the liveness that follows. Doesn't know
the transport of heartbeats, who leads, or who may become a member.

1. A member's age is the smallest of our own observation and of the reports of nodes that we hear,
   each increased by the time since it arrived. A report holds the reporter's direct observations
   alone, so that a rumour can't confirm itself.
2. Liveness gets worse (alive -> suspect -> gone) on `Ticked` alone; it gets better at once.
3. After a late tick no member gets worse, and ages are cut to half of the next limit.
4. A goodbye or a refused connection makes a member gone at once, until it is heard again.
5. A member that was never heard is suspect, not gone: at our start the others need time to answer.

Safety never depends on liveness: it decides when to try something, not whether a result counts.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import assert_never

from jupiterd.cluster.values.timing import LAN, Timing
from jupiterd.ids import NodeId, short

NEVER = -math.inf


class Liveness(StrEnum):
    """A member's state, by the age of its last heartbeat."""

    ALIVE = "alive"
    SUSPECT = "suspect"
    """Place no new work on it."""
    GONE = "gone"
    """Treat it like a member that left."""


@dataclass(frozen=True)
class RosterChanged:
    """The ledger now has these members; this node may be among them."""

    members: frozenset[NodeId]


@dataclass(frozen=True)
class Heard:
    """`node` sent a heartbeat, with the ages that it observed itself."""

    node: NodeId
    ages_s: Mapping[NodeId, float] = field(default_factory=dict[NodeId, float])
    waited_s: float = 0.0
    """The longest time that it can have waited in this node's queue, in seconds."""


@dataclass(frozen=True)
class AddressRefused:
    """A verified address of this node refuses connections."""

    node: NodeId


@dataclass(frozen=True)
class SaidGoodbye:
    """The node announced that it stops."""

    node: NodeId


@dataclass(frozen=True)
class Ticked:
    """Time has passed; `loop_lag_s`: the seconds by which this tick is late."""

    loop_lag_s: float = 0.0


MembershipInput = RosterChanged | Heard | AddressRefused | SaidGoodbye | Ticked


@dataclass(frozen=True)
class Changed:
    """A member's liveness changed."""

    node: NodeId
    before: Liveness
    after: Liveness
    reason: str


@dataclass
class _Peer:
    liveness: Liveness
    heard_at: float = NEVER
    """When this node last heard it."""
    silenced_at: float = NEVER
    """When it said goodbye or refused a connection."""
    credit_at: float = NEVER
    """A time of grace after a stall of this node: `_judge` treats the member as heard then. It is
    no observation, so this node doesn't report it to others."""


@dataclass(frozen=True)
class _Report:
    received_at: float
    ages_s: Mapping[NodeId, float]


class FailureDetector:
    """The liveness of every other member."""

    def __init__(self, self_id: NodeId, now: float, timing: Timing = LAN) -> None:
        """`now`: in seconds of a clock that runs during sleep, the same clock in every call."""
        self._self_id = self_id
        self._started_at = now
        self._timing = timing
        self._peers: dict[NodeId, _Peer] = {}
        self._reports: dict[NodeId, _Report] = {}

    def step(self, now: float, event: MembershipInput) -> tuple[Changed, ...]:
        """Handle an event at `now`; return the changes of liveness."""
        match event:
            case RosterChanged():
                return self._set_roster(now, event.members)
            case Heard():
                return self._hear(now, event)
            case AddressRefused():
                return self._silence(now, event.node, "refuses connections")
            case SaidGoodbye():
                return self._silence(now, event.node, "said goodbye")
            case Ticked():
                return self._tick(now, event.loop_lag_s)
            case _:
                assert_never(event)

    def liveness(self, node: NodeId) -> Liveness:
        """Return a node's liveness; a node that isn't a member is gone."""
        if node == self._self_id:
            return Liveness.ALIVE
        peer = self._peers.get(node)
        return peer.liveness if peer else Liveness.GONE

    def last_heard_s(self, node: NodeId, now: float) -> float | None:
        """Return the seconds since this node, or a node that it hears, heard the member.

        None: nobody has heard it, or it is no member.

        A goodbye or a refused connection doesn't change that age.
        """
        if node == self._self_id:
            return 0.0
        if node not in self._peers:
            return None
        heard_at = max(self._peers[node].heard_at, self._evidence(now, node)[0])
        return None if heard_at == NEVER else max(now - heard_at, 0.0)

    def ages(self, now: float) -> dict[NodeId, float]:
        """Return member -> seconds since this node itself heard it, for its own heartbeats."""
        return {
            node: max(now - peer.heard_at, 0.0)
            for node, peer in self._peers.items()
            if peer.heard_at != NEVER and peer.heard_at > peer.silenced_at
        }

    def alive(self) -> frozenset[NodeId]:
        """Return the nodes that may get work; includes this node."""
        return self._with(Liveness.ALIVE)

    def present(self) -> frozenset[NodeId]:
        """Return the nodes that are alive or suspect; includes this node."""
        return self._with(Liveness.ALIVE, Liveness.SUSPECT)

    def answering(self, now: float) -> frozenset[NodeId]:
        """Return the alive nodes that this node heard within `quiet_s`; includes this node.

        Others need not be waited for. After a stall of this node's own loop, the members that were
        alive before it get that time once more.
        """
        since = now - self._timing.quiet_s
        late_since = since - self._timing.suspect_s / 2
        quiet = {
            node
            for node, peer in self._peers.items()
            if peer.heard_at < since and peer.credit_at < late_since
        }
        return self.alive() - quiet

    def _with(self, *wanted: Liveness) -> frozenset[NodeId]:
        found = (node for node, peer in self._peers.items() if peer.liveness in wanted)
        return frozenset((self._self_id, *found))

    def _set_roster(self, now: float, members: frozenset[NodeId]) -> tuple[Changed, ...]:
        changes: list[Changed] = []
        for node in sorted(set(self._peers) - members):
            before = self._peers.pop(node).liveness
            self._reports.pop(node, None)
            if before is not Liveness.GONE:
                changes.append(Changed(node, before, Liveness.GONE, "no longer a member"))
        for node in sorted(members - set(self._peers) - {self._self_id}):
            self._peers[node] = _Peer(Liveness.SUSPECT, credit_at=now)
            changes.append(
                Changed(node, Liveness.GONE, Liveness.SUSPECT, "a member, not heard yet")
            )
        return tuple(changes)

    def _hear(self, now: float, heard: Heard) -> tuple[Changed, ...]:
        peer = self._peers.get(heard.node)
        if peer is None:
            return ()
        sent_at = now - heard.waited_s
        if sent_at <= max(peer.heard_at, peer.silenced_at):
            return ()
        peer.heard_at = sent_at
        peer.silenced_at = NEVER
        sane = {node: age for node, age in heard.ages_s.items() if 0.0 <= age < math.inf}
        self._reports[heard.node] = _Report(sent_at, sane)
        return self._take_good_news(now, heard.node, sane)

    def _silence(self, now: float, node: NodeId, reason: str) -> tuple[Changed, ...]:
        peer = self._peers.get(node)
        if peer is None:
            return ()
        peer.silenced_at = now
        peer.credit_at = NEVER
        self._reports.pop(node, None)
        return self._set(node, peer, Liveness.GONE, reason)

    def _tick(self, now: float, loop_lag_s: float) -> tuple[Changed, ...]:
        if loop_lag_s > self._timing.lag_limit_s:
            self._give_credit(now)
            return self._judge_all(now, may_accuse=False)
        return self._judge_all(now, may_accuse=True)

    def _give_credit(self, now: float) -> None:
        next_accusation_s = {
            Liveness.ALIVE: self._timing.suspect_s,
            Liveness.SUSPECT: self._timing.gone_s,
        }
        for peer in self._peers.values():
            if peer.liveness in next_accusation_s:
                credit_at = now - next_accusation_s[peer.liveness] / 2
                peer.credit_at = max(peer.credit_at, credit_at)

    def _take_good_news(
        self, now: float, heard: NodeId, ages_s: Mapping[NodeId, float]
    ) -> tuple[Changed, ...]:
        """Re-evaluate only members whose liveness a heartbeat and its reports can improve.

        Re-evaluating all of them is too slow when many are down.
        """
        changes: list[Changed] = []
        for node, peer in self._peers.items():
            if peer.liveness is Liveness.ALIVE:
                continue
            is_suspect = peer.liveness is Liveness.SUSPECT
            limit_s = self._timing.suspect_s if is_suspect else self._timing.gone_s
            if node == heard or ages_s.get(node, math.inf) <= limit_s:
                after, reason = self._judge(now, node, peer)
                if _SEVERITY[after] < _SEVERITY[peer.liveness]:
                    changes += self._set(node, peer, after, reason)
        return tuple(changes)

    def _judge_all(self, now: float, *, may_accuse: bool) -> tuple[Changed, ...]:
        changes: list[Changed] = []
        for node, peer in self._peers.items():
            if peer.liveness is Liveness.ALIVE and not may_accuse:
                continue
            after, reason = self._judge(now, node, peer)
            if may_accuse or _SEVERITY[after] < _SEVERITY[peer.liveness]:
                changes += self._set(node, peer, after, reason)
        return tuple(changes)

    def _judge(self, now: float, node: NodeId, peer: _Peer) -> tuple[Liveness, str]:
        if peer.heard_at > peer.silenced_at and now - peer.heard_at <= self._timing.suspect_s:
            return Liveness.ALIVE, "heard"
        heard_at, by = self._evidence(now, node)
        age_s = now - max(heard_at, peer.credit_at)
        if heard_at == NEVER:
            after = Liveness.GONE if age_s > self._timing.gone_s else Liveness.SUSPECT
            return after, f"not heard since {min(age_s, now - self._started_at):.1f} s"
        if age_s > self._timing.gone_s:
            return Liveness.GONE, f"not heard for {now - heard_at:.1f} s"
        if age_s > self._timing.suspect_s:
            return Liveness.SUSPECT, f"not heard for {now - heard_at:.1f} s"
        return Liveness.ALIVE, "heard" if by is None else f"heard by {short(by)}"

    def _evidence(self, now: float, node: NodeId) -> tuple[float, NodeId | None]:
        """Return when the node was last heard, and the reporter; None: this node itself."""
        peer = self._peers[node]
        best = peer.heard_at if peer.heard_at > peer.silenced_at else NEVER
        by: NodeId | None = None
        for reporter, report in self._reports.items():
            if reporter == node or node not in report.ages_s or not self._hears(now, reporter):
                continue
            heard_at = report.received_at - report.ages_s[node]
            is_news = heard_at > peer.silenced_at + self._timing.rumour_margin_s
            if heard_at > best and is_news:
                best, by = heard_at, reporter
        return best, by

    def _hears(self, now: float, reporter: NodeId) -> bool:
        peer = self._peers.get(reporter)
        return peer is not None and now - peer.heard_at <= self._timing.suspect_s

    def _set(self, node: NodeId, peer: _Peer, after: Liveness, reason: str) -> tuple[Changed, ...]:
        before = peer.liveness
        if before is after:
            return ()
        peer.liveness = after
        return (Changed(node, before, after, reason),)


_SEVERITY = {Liveness.ALIVE: 0, Liveness.SUSPECT: 1, Liveness.GONE: 2}

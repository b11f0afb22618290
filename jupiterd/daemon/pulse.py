"""Heartbeats: what this node says to its peers twice a second, and what their answers mean.

Owns the shell of `presence`: its clock, its messages, and the effects it asks for, in the order
persist, then send, then act. Doesn't know what leading is used for.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Sequence

import grpc
import msgpack

from jupiterd.cluster.election import Election
from jupiterd.cluster.hardware import Hardware
from jupiterd.cluster.membership import Membership
from jupiterd.cluster.presence import (
    AnswerPreVote,
    AskPreVote,
    Beat,
    BecomeLeader,
    Changed,
    Effect,
    Follow,
    GangChanged,
    Input,
    PersistTerm,
    Presence,
    PreVoteAnswered,
    PreVoteAsked,
    Refused,
    Resigned,
    RosterChanged,
    SaidGoodbye,
    StabilityChanged,
    StepDown,
    StorageFailed,
    StorageRecovered,
    TermSeen,
    Ticked,
)
from jupiterd.cluster.timing import LAN
from jupiterd.daemon.clock import now_s
from jupiterd.daemon.exchange import Exchange
from jupiterd.daemon.journal import Journal
from jupiterd.daemon.peers import Peer, Peers
from jupiterd.errors import DiskFullError, StateDirError
from jupiterd.ids import NodeId, short
from jupiterd.rpc import peer_pb2
from jupiterd.store.ledger_file import LedgerFile

log = logging.getLogger(__name__)

BEAT_TIMEOUT_S = 2.0
PRE_VOTE_TIMEOUT_S = 1.0
MAX_TELEMETRY_BYTES = 4096


class Pulse:
    """Who is here and who leads, kept up by heartbeats."""

    def __init__(
        self,
        self_id: NodeId,
        journal: Journal,
        peers: Peers,
        exchange: Exchange,
        file: LedgerFile,
        group: asyncio.TaskGroup,
    ) -> None:
        self._self_id = self_id
        self._journal = journal
        self._peers = peers
        self._exchange = exchange
        self._file = file
        self._group = group
        self._stability = 0
        self._lag_s = 0.0
        self._in_flight: set[NodeId] = set()
        self._is_silent = False
        self._is_leaving = False
        self._description: tuple[float, peer_pb2.Heartbeat] | None = None
        self.describe: Callable[[], peer_pb2.Heartbeat] = peer_pb2.Heartbeat
        self.trouble = ""
        """Why this node can't write its term to disk; empty where it can."""
        self.on_lead: Callable[[int], None] = lambda _term: None
        self.on_step_down: Callable[[str], None] = lambda _reason: None
        self.reset()

    @property
    def membership(self) -> Membership:
        """Who is here."""
        return self._presence.membership

    @property
    def election(self) -> Election:
        """Who leads."""
        return self._presence.election

    def reset(self) -> None:
        """Start anew with the cluster the journal is in now."""
        term = max(int(self._file.get("term") or 0), self._journal.ledger.highest_term())
        rng = random.Random()  # noqa: S311 - spreads waits
        self._presence = Presence(self._self_id, term, now_s(), rng)
        self.set_stability(self._stability)
        self.roster_changed()

    def roster_changed(self) -> None:
        """Take up who is a member from the ledger."""
        others = frozenset(self._journal.state.members) - {self._self_id}
        self._tell(RosterChanged(others))
        self._tell(TermSeen(self._journal.ledger.highest_term()))

    def check_awake(self) -> None:
        """Step down if this machine was asleep: whatever acts for a leader calls this first."""
        self._act(self._presence.wake(now_s()))

    def alive(self) -> frozenset[NodeId]:
        """Return the members that answer, this node included."""
        return self.membership.alive()

    async def run(self) -> None:
        """Beat for ever; a late wake-up is our own lag, and accuses nobody."""
        due_s = now_s()
        while True:
            due_s = max(due_s + LAN.beat_s, now_s())
            await asyncio.sleep(max(0.0, due_s - now_s()))
            self._lag_s = max(0.0, now_s() - due_s)
            self.check_awake()
            self._save_again()
            self._tell(Ticked(self._lag_s))
            for peer in self._peers:
                if self._may_beat(peer):
                    self._group.create_task(self._beat(peer), name=f"beat {short(peer.node)}")

    def _may_beat(self, peer: Peer) -> bool:
        is_member = peer.node in self._journal.state.members
        return is_member and peer.node not in self._in_flight and not self._is_silent

    def fall_silent(self) -> None:
        """Lead no more and beat no more."""
        self._is_silent = True
        self.resign()

    def resign(self) -> None:
        """Lead no more, and don't stand again."""
        self._tell(Resigned())

    async def say_goodbye(self) -> None:
        """Resign, and tell everybody that we leave, so that nobody waits for a time-out.

        From then on every answer says so too: a later sign of life would take the goodbye back.
        """
        self._is_leaving = True
        self.fall_silent()
        message = self._message()
        calls = [
            peer.channels.heartbeat.Beat(message, timeout=BEAT_TIMEOUT_S) for peer in self._peers
        ]
        await asyncio.gather(*(_swallow(call) for call in calls))

    def heard(self, node: NodeId, message: peer_pb2.Heartbeat) -> None:
        """Take in a heartbeat, whichever side sent it."""
        if message.cluster != self._journal.cluster:
            return
        if message.goodbye:
            self._tell(SaidGoodbye(node))
            return
        self._tell(_beat_of(node, message))
        peer = self._peers.get(node)
        if peer is not None:
            _keep_telemetry(peer, message)
        if message.head != self._journal.ledger.head():
            self._exchange.request(node)

    def answer_pre_vote(self, node: NodeId, term: int, stability: int) -> tuple[bool, str]:
        """Say whether `node` may lead, as far as we see."""
        effects = self._tell(PreVoteAsked(node, term, stability))
        answer = next(effect for effect in effects if isinstance(effect, AnswerPreVote))
        return answer.granted, answer.reason

    def message(self) -> peer_pb2.Heartbeat:
        """Return what we say of ourselves just now."""
        return self._message()

    def set_stability(self, stability: int) -> None:
        """Take up how steady this machine is."""
        self._stability = stability
        self._tell(StabilityChanged(stability))

    async def _beat(self, peer: Peer) -> None:
        self._in_flight.add(peer.node)
        try:
            reply = await peer.channels.heartbeat.Beat(self._message(), timeout=BEAT_TIMEOUT_S)
            peer.answered_s = now_s()
            self.heard(peer.node, reply)
        except grpc.aio.AioRpcError as error:
            if "refused" in (error.details() or "").lower():
                self._tell(Refused(peer.node))
        finally:
            self._in_flight.discard(peer.node)

    def _message(self) -> peer_pb2.Heartbeat:
        message = peer_pb2.Heartbeat()
        message.CopyFrom(self._described())
        message.goodbye = self._is_leaving
        self._tell(GangChanged(message.runs_gang))
        beat = self._presence.beat(now_s())
        message.cluster = self._journal.cluster
        message.term = beat.term
        message.leader = beat.leader or ""
        message.head = self._journal.ledger.head()
        message.stability = beat.stability
        message.loop_lag_s = self._lag_s
        message.members_alive = beat.members_alive
        for node, age_s in beat.ages_s.items():
            message.ages_s[node] = age_s
        return message

    def _described(self) -> peer_pb2.Heartbeat:
        """Return what the daemon says of itself; asked once for all peers, for it isn't cheap."""
        if self._description is None or now_s() - self._description[0] > LAN.beat_s / 2:
            self._description = now_s(), self.describe()
        return self._description[1]

    def _tell(self, event: Input) -> list[Effect]:
        effects = self._presence.step(now_s(), event)
        self._act(effects)
        return effects

    def _act(self, effects: Sequence[Effect]) -> None:
        is_saved = True
        for effect in effects:
            if isinstance(effect, PersistTerm):
                is_saved = is_saved and self._save_term(effect.term)
            elif is_saved or isinstance(effect, StepDown):
                self._do(effect)
        if not is_saved:
            self._tell(StorageFailed())

    def _do(self, effect: Effect) -> None:
        match effect:
            case AskPreVote(nodes, term):
                for node in nodes:
                    self._group.create_task(self._ask(node, term), name="pre-vote")
            case BecomeLeader(term, reason):
                log.info("became_leader", extra={"term": term, "reason": reason})
                self.on_lead(term)
            case StepDown(reason):
                log.info("stepped_down", extra={"reason": reason})
                self.on_step_down(reason)
            case Follow() | Changed():
                _log(effect)
            case AnswerPreVote() | PersistTerm():
                pass  # returned to the asker; done before

    def _save_again(self) -> None:
        """Bring to disk what found no room there, as soon as there is some."""
        if self.trouble and self._save_term(self.election.term):
            self._tell(StorageRecovered())
        if self._journal.trouble:
            self._group.create_task(self._journal.save_again(), name="save again")

    def _save_term(self, term: int) -> bool:
        """Say whether the term is on disk; where it isn't, `trouble` says why."""
        try:
            self._file.set("term", str(term))
        except (DiskFullError, StateDirError) as error:
            if not self.trouble:
                log.warning("term_not_saved", extra={"term": term, "reason": error.message})
            self.trouble = error.message
            return False
        self.trouble = ""
        return True

    async def _ask(self, node: NodeId, term: int) -> None:
        peer = self._peers.get(node)
        if peer is None:
            return
        request = peer_pb2.PreVoteRequest(
            term=term, stability=self._stability, cluster=self._journal.cluster
        )
        try:
            call = peer.channels.heartbeat.AskPreVote(request, timeout=PRE_VOTE_TIMEOUT_S)
            reply = await call
        except grpc.aio.AioRpcError:
            return
        self._tell(PreVoteAnswered(node, reply.granted, reply.term))


def _beat_of(node: NodeId, message: peer_pb2.Heartbeat) -> Beat:
    return Beat(
        node=node,
        term=message.term,
        leader=NodeId(message.leader) if message.leader else None,
        stability=message.stability,
        members_alive=message.members_alive,
        runs_gang=message.runs_gang,
        ages_s={NodeId(member): age_s for member, age_s in message.ages_s.items()},
    )


def _log(effect: Follow | Changed) -> None:
    if isinstance(effect, Follow):
        fields = {"leader": short(effect.leader), "term": effect.term}
        log.info("follows", extra={**fields, "reason": effect.reason})
        return
    fields = {"node": short(effect.node), "before": str(effect.before), "after": str(effect.after)}
    log.info("liveness_changed", extra={**fields, "reason": effect.reason})


def _keep_telemetry(peer: Peer, message: peer_pb2.Heartbeat) -> None:
    """Take up what a peer says of itself; what can't be read leaves the last reading in place."""
    peer.run_nonce = message.run_nonce
    peer.addresses = tuple(message.addresses)
    peer.name = message.name or peer.name
    if 0 < len(message.telemetry) <= MAX_TELEMETRY_BYTES:
        try:
            told = msgpack.unpackb(message.telemetry, raw=False, strict_map_key=True)
            hardware = Hardware.from_plain(told["hardware"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            log.debug("telemetry_refused", extra={"node": short(peer.node), "reason": str(error)})
            return
        peer.telemetry, peer.hardware = told, hardware


async def _swallow(call: "grpc.aio.UnaryUnaryCall[peer_pb2.Heartbeat, peer_pb2.Heartbeat]") -> None:
    try:
        await call
    except grpc.aio.AioRpcError as error:
        log.debug("goodbye_unheard", extra={"reason": error.details()})

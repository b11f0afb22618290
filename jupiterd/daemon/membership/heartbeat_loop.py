"""Heartbeats: what this node says to its peers, and what their answers mean.

Owns the shell of `presence`: its clock, its messages, and the effects it asks for, in the order
persist, then send, then act. Doesn't know what leading is used for.
"""

import asyncio
import logging
import math
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence

import grpc

from jupiterd.cluster.membership.election import Election
from jupiterd.cluster.membership.failure_detector import FailureDetector
from jupiterd.cluster.membership.presence import (
    AddressRefused,
    AnswerPreVote,
    BecomeLeader,
    Changed,
    DeadlinePassed,
    Effect,
    Follow,
    GangChanged,
    HandedOver,
    Input,
    PersistTerm,
    Presence,
    PreVoteAnswered,
    PreVoteRequested,
    Reinstated,
    RequestPreVote,
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
from jupiterd.cluster.values.timing import LAN
from jupiterd.daemon.ledger.anti_entropy import AntiEntropy
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.links.heartbeat_stream import (
    BEAT_TIMEOUT_S,
    Description,
    SentParts,
    from_message,
    to_message,
)
from jupiterd.daemon.links.peers import Peer, Peers
from jupiterd.daemon.membership.fencing import check_term
from jupiterd.daemon.membership.followed_leader import FollowedLeader
from jupiterd.daemon.membership.heartbeat_effects import HeartbeatEffects
from jupiterd.daemon.membership.saved_term import SavedTerm
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.errors import TimedOutError
from jupiterd.ids import NodeId, short
from jupiterd.rpc import peer_pb2
from jupiterd.store.ledger_file import LedgerFile

log = logging.getLogger(__name__)

PRE_VOTE_TIMEOUT_S = 1.0
LEAVE_TIMEOUT_S = 0.5
ASIDE_S = 10.0
"""How long a leader that has stepped aside waits for another one."""
PROVE_LINK_S = 2.0
"""How often a node that gets heartbeats proves its own path to the sender."""
TURN_S = 2 * LAN.beat_s - LAN.beat_s / 4
"""Between two followers somebody speaks once a second; a tick may come a little early."""
LAGS_AVERAGED = 0.98
"""Of the worst lag at each tick: after a minute a tenth is left of it."""
HASTEN_S = 0.1
"""A broken stream is opened again at once, but not more often than this."""


class HeartbeatLoop:
    """Sends and answers heartbeats, and runs membership and election on them."""

    def __init__(
        self,
        replica: Replica,
        peers: Peers,
        exchange: AntiEntropy,
        file: LedgerFile,
        effects: HeartbeatEffects,
        group: asyncio.TaskGroup,
    ) -> None:
        self._self_id = replica.node
        self._effects = effects
        self._replica = replica
        self._peers = peers
        self._exchange = exchange
        self._saved = SavedTerm(file)
        self._group = group
        self._stability = 0
        self._lag_s = 0.0
        self.worst_lag_s = 0.0
        """By how much our loop came too late of late."""
        self._called_s: dict[NodeId, float] = {}
        """When each node last beat to us on a stream of its own."""
        self._called_from: dict[NodeId, str] = {}
        """The host that such a stream came from; empty where that isn't known."""
        self._hastened_s: dict[NodeId, float] = {}
        self._abouts: dict[NodeId, peer_pb2.About] = {}
        self._answering: set[asyncio.Task[object]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at_s = math.inf
        self._is_running = False
        self._is_silent = False
        self._is_leaving = False
        self._description = Description()
        self._described_s = -math.inf
        self.followed = FollowedLeader()
        self.reset()
        replica.known_term = lambda: self.election.term

    @property
    def membership(self) -> FailureDetector:
        """Who is here."""
        return self._presence.membership

    @property
    def election(self) -> Election:
        """Who leads."""
        return self._presence.election

    @property
    def trouble(self) -> str:
        """Why this node can't write its term to disk; empty where it can."""
        return self._saved.trouble

    def reset(self) -> None:
        """Restart in the cluster of the replica; members that fell silent stay so."""
        term = max(self._saved.load(), self._replica.ledger.highest_term())
        check_term(term)
        self._disbelieved: set[NodeId] = set()
        rng = random.Random()  # noqa: S311 - spreads waits
        self._presence = Presence(self._self_id, term, now_s(), rng)
        self.set_stability(self._stability)
        self.roster_changed()
        if self._is_silent:
            self.resign()

    def roster_changed(self) -> None:
        """Take up who is a member from the ledger."""
        # The term first: that somebody was removed may be what an election was waiting for.
        ledger = self._replica.ledger
        self._handle(TermSeen(ledger.highest_term()))
        self._handle(TermSeen(ledger.highest_term(besides=self._self_id), is_of_others=True))
        others = frozenset(self._replica.state.members) - {self._self_id}
        self._handle(RosterChanged(others))

    def check_awake(self) -> None:
        """Step down if this machine was asleep: whatever acts for a leader calls this first."""
        self._act(self._presence.wake(now_s()))

    def alive(self) -> frozenset[NodeId]:
        """Return the members that answer, this node included."""
        return self.membership.alive()

    def answering(self) -> frozenset[NodeId]:
        """Return the members that we have heard just now, this node included."""
        return self.membership.answering(now_s()) - self.election.passed_over

    def present(self) -> frozenset[NodeId]:
        """Return the members that aren't gone, this node included."""
        return self.membership.present()

    async def run(self) -> None:
        """Beat for ever; a late wake-up is our own lag, and accuses nobody."""
        self._is_running = True
        due_s = now_s()
        while True:
            due_s = max(due_s + LAN.beat_s, now_s())
            await asyncio.sleep(max(0.0, due_s - now_s()))
            self._lag_s = max(0.0, now_s() - due_s)
            self.worst_lag_s = max(self._lag_s, self.worst_lag_s * LAGS_AVERAGED)
            self.check_awake()
            self._speak_again()
            self._save_again()
            self._handle(Ticked(self._lag_s))
            for peer in self._peers:
                if self._is_due(peer):
                    self._start_beat(peer)

    def _is_due(self, peer: Peer) -> bool:
        """One of two calls and the other answers; that one calls if it isn't called."""
        called_s = self._called_s.get(peer.node, -math.inf)
        if not self._is_one_the_leader(peer.node):
            return self._is_turn(peer, called_s)
        if self._self_id < peer.node:
            return now_s() - peer.beats.sent_s > LAN.beat_s / 2
        is_called = now_s() - called_s < 2 * LAN.beat_s
        return not is_called or now_s() - peer.answered_s >= PROVE_LINK_S

    def _is_turn(self, peer: Peer, called_s: float) -> bool:
        """Two followers take turns, once a second: each hears of the other by the leader too."""
        if self._self_id < peer.node:
            return now_s() - max(peer.beats.sent_s, called_s) > TURN_S
        return now_s() - peer.answered_s > PROVE_LINK_S - LAN.beat_s / 4

    def _is_one_the_leader(self, node: NodeId) -> bool:
        return self.election.leader in (None, node, self._self_id)

    def _start_beat(self, peer: Peer) -> None:
        is_member = peer.node in self._replica.state.members
        if is_member and not self._is_silent and peer.beats.begin():
            self._group.create_task(self._beat(peer), name=f"beat {short(peer.node)}")

    def _beat_at_once(self) -> None:
        """Let everybody know who leads before the first order comes; it counts from then on."""
        for peer in self._peers if self._is_running else ():
            self._start_beat(peer)

    def _hasten(self, node: NodeId) -> None:
        """A stream has broken: its node may be dead, and refuse a connection."""
        peer, hastened_s = self._peers.get(node), self._hastened_s.get(node, -math.inf)
        if peer is not None and now_s() - hastened_s > HASTEN_S:
            self._hastened_s[node] = now_s()
            self._start_beat(peer)

    def _try_again_soon(self, node: NodeId) -> None:
        """A process that is being killed may still take a connection, and refuse the next one."""
        if self._is_running and node in self.alive():
            asyncio.get_running_loop().call_later(2 * HASTEN_S, self._hasten, node)

    def _keep_deadline(self) -> None:
        """See to it that the machine is woken when it wants to be, between two ticks too."""
        wake_at_s = self._presence.wake_at
        if not self._is_running or wake_at_s >= self._timer_at_s:
            return  # it is looked at again when the earlier one has passed
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at_s = wake_at_s
        delay_s = max(0.0, wake_at_s - now_s())
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._pass_deadline)

    def _pass_deadline(self) -> None:
        self._timer, self._timer_at_s = None, math.inf
        self._handle(DeadlinePassed())

    def fall_silent(self) -> None:
        """Lead no more and beat no more."""
        self._is_silent = True
        self.resign()

    def _speak_again(self) -> None:
        """Beat as before, and stand again, once the other daemon with our key has gone."""
        where = self._replica.clones.seen_at
        if self._replica.clones.is_over(now_s()):
            log.info("clone_gone", extra={"address": where})
            self._is_silent = self._is_leaving
            self.reinstate()

    def resign(self) -> None:
        """Lead no more, and don't stand again."""
        self._handle(Resigned())

    def reinstate(self) -> None:
        """Take back a resignation, unless the node fell silent."""
        if not self._is_silent:
            self._handle(Reinstated())

    async def step_aside(self, may_stand: Callable[[], bool]) -> None:
        """Let another node lead; stand again once one does, or nobody has for a while."""
        self.resign()
        try:
            async with asyncio.timeout(ASIDE_S):
                while self.election.leader is None:  # noqa: ASYNC110 - an election notifies nobody
                    await asyncio.sleep(HASTEN_S)
        except TimeoutError:
            log.warning("nobody_took_over")
        if may_stand():
            self.reinstate()

    async def say_goodbye(self) -> None:
        """Resign, and announce to everybody that we leave, so that nobody waits for a time-out.

        A leader names its successor, and notifies that one last: it asks the others at
        once. From then on every answer says that we leave: a sign of life would take it back. What
        we have recorded last they are to have, too, even what was still being sent.
        """
        self._is_leaving = True
        successor, others = self._successor(), self.answering() - {self._self_id}
        self.fall_silent()
        await self._exchange.unite(others)
        first = [peer for peer in self._peers if peer.node != successor]
        await asyncio.gather(*(self._announce_leaving(peer, successor) for peer in first))
        named = None if successor is None else self._peers.get(successor)
        if named is not None:
            await self._announce_leaving(named, successor)
        for task in self._answering:
            task.cancel()

    def _successor(self) -> NodeId | None:
        """Return the steadiest node that is alive, where this one leads."""
        others = self.alive() - {self._self_id}
        is_leader = self.election.leader == self._self_id
        return self.election.steadiest(others) if is_leader else None

    async def _announce_leaving(self, peer: Peer, successor: NodeId | None) -> None:
        request = peer_pb2.LeaveRequest(cluster=self._replica.cluster, successor=successor or "")
        try:
            await peer.channels.heartbeat.Leave(request, timeout=LEAVE_TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            log.debug("goodbye_unheard", extra={"reason": error.details()})

    def left(self, node: NodeId, request: peer_pb2.LeaveRequest) -> None:
        """Take in that a node stops, and who is to lead in its place."""
        if request.cluster == self._replica.cluster:
            self._handle(SaidGoodbye(node))
            if request.successor:
                self._handle(HandedOver(NodeId(request.successor)))

    async def answers(
        self, node: NodeId, beats: AsyncIterator[peer_pb2.Heartbeat], host: str = ""
    ) -> AsyncGenerator[peer_pb2.Heartbeat]:
        """Answer each heartbeat of a stream that a node has opened from a host."""
        task, sent = asyncio.current_task(), SentParts()
        if task is not None:
            self._answering.add(task)
        try:
            async for beat in beats:
                self._called_s[node], self._called_from[node] = now_s(), host
                self.heard(node, beat)
                reply = self.message(node)
                sent = sent.shorten(reply, self._description.about)
                yield reply
                if self._is_leaving:
                    return
        finally:
            self._answering.discard(task)
            self._called_s.pop(node, None)
            self._hasten(node)

    def heard(self, node: NodeId, message: peer_pb2.Heartbeat) -> None:
        """Take in a heartbeat, whichever side opened the stream."""
        if message.cluster != self._replica.cluster:
            return
        if not self._presence.believes(message.term):
            self._disbelieve(node, message)
            return
        if message.goodbye:
            self._handle(SaidGoodbye(node))
            return
        self._handle(from_message(node, message, self._replica.state.members))
        if message.HasField("about"):
            self._abouts[node] = message.about
        peer = self._peers.get(node)
        if peer is not None:
            peer.heard_s = now_s()
            peer.update(message.telemetry, self._abouts.get(node))
        if message.head != self._replica.ledger.head():
            self._exchange.request(node)

    def _disbelieve(self, node: NodeId, message: peer_pb2.Heartbeat) -> None:
        """Believe nothing of it; the ledger may have what proves its term."""
        if node not in self._disbelieved:
            self._disbelieved.add(node)
            terms = {"term": message.term, "own": self.election.term}
            log.warning("term_refused", extra={"node": short(node), **terms})
        if message.head != self._replica.ledger.head():
            self._exchange.request(node)

    def proved_s(self, peer: Peer) -> float:
        """Return when the link to a peer last worked; its calls count between our proofs.

        Not those over another path: it has left ours, perhaps because nothing arrives there.
        """
        called_s = self._called_s.get(peer.node, -math.inf)
        if self._called_from.get(peer.node, "") not in ("", peer.address.host):
            return peer.answered_s
        is_proved = now_s() - peer.answered_s < PROVE_LINK_S + BEAT_TIMEOUT_S
        return max(peer.answered_s, called_s) if is_proved else peer.answered_s

    def answer_pre_vote(self, node: NodeId, term: int, stability: int) -> tuple[bool, str]:
        """Say whether `node` may lead, as far as we see."""
        effects = self._handle(PreVoteRequested(node, term, stability))
        answer = next(effect for effect in effects if isinstance(effect, AnswerPreVote))
        return answer.granted, answer.reason

    def ask_for_term(self, leader: NodeId, least: int) -> None:
        """Let the leader we follow take a term above this one: its own is fenced off."""
        if leader == self.election.leader:
            self._handle(TermSeen(least))

    def set_stability(self, stability: int) -> None:
        """Take up how steady this machine is."""
        self._stability = stability
        self._handle(StabilityChanged(stability))

    async def _beat(self, peer: Peer) -> None:
        peer.beats.on_broken = lambda: self._hasten(peer.node)
        try:
            reply = await peer.beats.ask(self.message(peer.node), self._description.about)
            peer.answered_s = now_s()
            self.heard(peer.node, reply)
        except grpc.aio.AioRpcError as error:
            if "refused" in (error.details() or "").lower():
                self._handle(AddressRefused(peer.node))
            elif error.code() is grpc.StatusCode.UNAVAILABLE:
                self._try_again_soon(peer.node)
        except TimedOutError as error:
            log.debug("beat_unanswered", extra={"node": short(peer.node), "reason": error.message})
        except Exception:  # whatever a peer says, it must not end this daemon
            log.exception("beat_failed", extra={"node": short(peer.node)})
        finally:
            peer.beats.end()

    def message(self, to: NodeId) -> peer_pb2.Heartbeat:
        """Return what we say to a node just now."""
        self._describe()
        self._handle(GangChanged(self._description.runs_gang))
        beat = self._presence.beat(now_s(), to)
        message = to_message(beat, self._replica.cluster, self._replica.ledger.head())
        message.telemetry = self._description.telemetry
        message.goodbye = self._is_leaving
        message.loop_lag_s = self._lag_s
        return message

    def _describe(self) -> None:
        """Ask the daemon what it says of itself; once for all peers, for it isn't cheap."""
        if now_s() - self._described_s > LAN.beat_s / 2:
            self._described_s = now_s()
            self._description = self._effects.describe()

    def _handle(self, event: Input) -> list[Effect]:
        effects = self._presence.step(now_s(), event)
        self._act(effects)
        self._keep_deadline()
        return effects

    def _act(self, effects: Sequence[Effect]) -> None:
        self.followed.note(self.election.leader, self.election.term)
        is_saved = True
        for effect in effects:
            if isinstance(effect, PersistTerm):
                is_saved = is_saved and self._saved.save(effect.term)
            elif is_saved or isinstance(effect, StepDown):
                self._do(effect)
        if not is_saved:
            self._handle(StorageFailed())

    def _do(self, effect: Effect) -> None:
        match effect:
            case RequestPreVote(nodes, term):
                for node in nodes:
                    self._group.create_task(self._ask(node, term), name="pre-vote")
            case BecomeLeader(term, reason):
                log.info("became_leader", extra={"term": term, "reason": reason})
                self._effects.on_lead(term)
                self._beat_at_once()
            case StepDown(reason):
                log.info("stepped_down", extra={"reason": reason})
                self._effects.on_step_down(reason)
            case Follow() | Changed():
                _log(effect)
            case AnswerPreVote() | PersistTerm():
                pass  # returned to the asker; done before

    def _save_again(self) -> None:
        """Bring to disk what found no room there, as soon as there is some."""
        if self.trouble and self._saved.save(self.election.term):
            self._handle(StorageRecovered())
        if self._replica.trouble:
            self._group.create_task(self._replica.save_again(), name="save again")

    async def _ask(self, node: NodeId, term: int) -> None:
        peer = self._peers.get(node)
        if peer is None:
            return
        request = peer_pb2.PreVoteRequest(
            term=term, stability=self._stability, cluster=self._replica.cluster
        )
        try:
            reply = await peer.channels.heartbeat.AskPreVote(request, timeout=PRE_VOTE_TIMEOUT_S)
        except grpc.aio.AioRpcError:
            return
        if request.cluster == self._replica.cluster:  # or we have moved meanwhile
            self._handle(PreVoteAnswered(node, reply.granted, reply.term))


def _log(effect: Follow | Changed) -> None:
    if isinstance(effect, Follow):
        fields = {"leader": short(effect.leader), "term": effect.term}
        log.info("follows", extra={**fields, "reason": effect.reason})
        return
    fields = {"node": short(effect.node), "before": str(effect.before), "after": str(effect.after)}
    log.info("liveness_changed", extra={**fields, "reason": effect.reason})

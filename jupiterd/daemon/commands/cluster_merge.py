"""Two clusters that have work become one.

Owns the command, the ledger that is brought, and this node's move to the cluster that goes on.
Doesn't know what is recorded and who moves where (`cluster.cluster_merge`).

1. `merge`, at the leader of the cluster that is absorbed: people's wish is recorded there, and its
   ledger is brought to the leader of the other one.
2. `take`, there: with consent of that side, everything in force is recorded again.
3. `follow`, on each node of the absorbed cluster, whenever it meets a node of the other one: it
   moves once nothing that it holds is missing there; what is missing it brings.
"""

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import grpc

from jupiterd.cluster.facts.facts import (
    WALKED_IN,
    ClusterMerged,
    Fact,
    NodeAdmitted,
    NodeRemoved,
    SourcePurged,
    TokenIssued,
)
from jupiterd.cluster.facts.steering import StudentSteered
from jupiterd.cluster.ledger.ledger import Ledger
from jupiterd.cluster.ledger.snapshot import MAX_SNAPSHOT_BYTES
from jupiterd.cluster.ledger.tokens import Side, Token, is_proved, parse_token, prove
from jupiterd.cluster.membership.admission import MAX_MEMBERS, OPEN_COMMAND, Summary
from jupiterd.cluster.membership.cluster_merge import (
    absorbed_by,
    has_agreed,
    in_entries,
    leads_us,
    owed,
)
from jupiterd.cluster.membership.merge_plan import Brief, brief, notes, obstacles, read_brief
from jupiterd.daemon.leader.term import Term
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.ledger.signature_check import adopt, verified_snapshot
from jupiterd.daemon.ledger.snapshot_transfer import SNAPSHOT_TIMEOUT_S, chunks_of, fetch_ledger
from jupiterd.daemon.links.seen_clusters import Outsider
from jupiterd.daemon.membership.handshake import HELLO_TIMEOUT_S
from jupiterd.daemon.runtime.untrusted_input import dialable_addresses
from jupiterd.errors import (
    ConflictError,
    CorruptLedgerError,
    JupiterError,
    NoLeaderError,
    NotFoundError,
    PeerUnreachableError,
    RefusedError,
    TimedOutError,
    UsageError,
    from_wire,
)
from jupiterd.ids import ClusterId, NodeId, short
from jupiterd.net.channels import PeerChannels
from jupiterd.net.credentials import peek_certificate
from jupiterd.net.identity import Identity, node_id_of
from jupiterd.ports import Address
from jupiterd.protocol.commands.member_commands import MergeCluster
from jupiterd.rpc import peer_pb2

log = logging.getLogger(__name__)

_OF_TRUSTED_MEMBERS = (ClusterMerged, NodeAdmitted, NodeRemoved, SourcePurged, StudentSteered)

LOOK_TIMEOUT_S = 8.0
MAX_TRIED = 8

Messages = AsyncIterator[peer_pb2.BroughtLedger]


@dataclass(frozen=True)
class OwnCluster:
    """The cluster of this node."""

    identity: Identity
    replica: Replica
    summary: Callable[[], Summary]
    """Says what strangers are told of it."""
    is_open: Callable[[], bool]
    trusts_lan: bool
    term: Callable[[], Term | None]
    """Returns the term, where this node leads."""
    leader_addresses: Callable[[], Sequence[str]]
    check_leader: Callable[[NodeId, str], None]
    """Refuses what a stranger asks for of a leader to which nobody has said yes."""


@dataclass(frozen=True)
class Contacts:
    """Other clusters, as this node meets them."""

    outsiders: Callable[[], Mapping[ClusterId, Outsider]]
    """Returns those in sight."""
    look_again: Callable[[], None]
    """Has all addresses be asked anew."""
    moved: Callable[[NodeId, ClusterId], None]
    """Is told of the leader and the cluster that this node has moved to."""


class ClusterMerge:
    """This node's part in merges."""

    def __init__(self, own: OwnCluster, contacts: Contacts) -> None:
        self._own, self._contacts = own, contacts
        self._replica = own.replica
        self._moving = asyncio.Lock()
        self._taking = asyncio.Lock()

    async def merge(self, term: Term, command: MergeCluster) -> dict[str, Any]:
        """Let this cluster become part of another one, or with `dry_run` say what that would be.

        Raises:
            ConflictError: something stands in the way.
            RefusedError: the other cluster is closed, and no token of it was given.
        """
        target = self._target(command.cluster)
        token = _token_of(target, command.token)
        ours = brief(term.replica.ledger)
        theirs = await self._bring(target, token, b"")
        found = obstacles(ours, theirs)
        plan = {
            "absorbed": ours.to_plain(),
            "into": theirs.to_plain(),
            "obstacles": [{"title": title, "hint": hint} for title, hint in found],
            "notes": notes(ours, theirs),
        }
        if command.dry_run:
            return {"done": False, **plan}
        if found:
            raise ConflictError(*found[0])
        from jupiterd.daemon.commands.train_commands import check_that_no_training_runs

        check_that_no_training_runs(term.state)
        # Who asked may give up waiting for a large ledger; what was begun is finished.
        await asyncio.shield(self._carry_out(term, target, token))
        return {"done": True, **plan}

    async def _carry_out(self, term: Term, target: Outsider, token: Token | None) -> None:
        ours, into = term.replica.cluster, target.summary.cluster
        if not has_agreed(term.state, ours, into):
            await term.record(ClusterMerged(ours, into))
        await self._bring(target, token, await term.replica.in_short())
        self._contacts.look_again()

    def _target(self, wanted: str) -> Outsider:
        """Return the other cluster that is meant: by its id, the beginning of one, or its name."""
        if self._replica.state.blank:
            raise ConflictError(
                "this cluster has no work yet: it becomes part of the other one by itself",
                f"run on a member of the other one: {OPEN_COMMAND}",
            )
        seen = {
            cluster: outsider
            for cluster, outsider in self._contacts.outsiders().items()
            if cluster != self._replica.cluster
        }
        found = [
            outsider
            for cluster, outsider in seen.items()
            if wanted and (cluster.startswith(wanted) or outsider.summary.label == wanted)
        ]
        if not found:
            titles = ", ".join(sorted(other.summary.title for other in seen.values())) or "none"
            raise NotFoundError(f"no cluster in sight is called {wanted}", f"in sight: {titles}")
        if len(found) > 1:
            titles = ", ".join(sorted(other.summary.title for other in found))
            raise UsageError(f"{wanted} could be any of {titles}", "name it by its id")
        return found[0]

    async def _bring(self, target: Outsider, token: Token | None, raw: bytes) -> Brief:
        """Bring a snapshot to the target's leader, or nothing to look alone; return what it is.

        Raises:
            NoLeaderError: its leader can't be reached.
            JupiterError: what it says against it.
        """
        waiting, tried = [target.address], set[Address]()
        while waiting and len(tried) < MAX_TRIED:
            address = waiting.pop(0)
            if address in tried:
                continue
            tried.add(address)
            with suppress(grpc.aio.AioRpcError, PeerUnreachableError):
                reply = await self._bring_to(address, target.summary.cluster, token, raw)
                if reply.failure.code:
                    raise from_wire(reply.failure.code, reply.failure.message, reply.failure.hint)
                if reply.brief_json:
                    return _brief_in(reply, target.summary.cluster)
                waiting += dialable_addresses(reply.leader_addresses)
        raise NoLeaderError(f"the leader of {target.summary.title} can't be reached")

    async def _bring_to(
        self, address: Address, cluster: ClusterId, token: Token | None, raw: bytes
    ) -> peer_pb2.BringReply:
        identity = self._own.identity
        certificate = await peek_certificate(address, HELLO_TIMEOUT_S)
        member = node_id_of(certificate)
        channels = PeerChannels(identity, address, certificate)
        first = peer_pb2.BroughtLedger(cluster=self._replica.cluster, only_look=not raw)
        if token is not None:
            first.token_id = token.id
            first.proof = prove(token.secret, Side.NEWCOMER, cluster, identity.node_id, member)
        try:
            timeout_s = SNAPSHOT_TIMEOUT_S if raw else LOOK_TIMEOUT_S
            reply = await channels.control.Bring(_messages(first, raw), timeout=timeout_s)
        finally:
            await channels.close()
        if token is not None and reply.brief_json:
            expected = prove(token.secret, Side.MEMBER, cluster, identity.node_id, member)
            if not is_proved(expected, reply.proof):
                raise RefusedError("who answered for the other cluster doesn't know the token")
        return reply

    async def take(self, who: NodeId, messages: Messages) -> peer_pb2.BringReply:
        """Take in a ledger that somebody brings, as the leader of the cluster that goes on."""
        term = self._own.term()
        if term is None:
            return peer_pb2.BringReply(leader_addresses=self._own.leader_addresses())
        try:
            async with asyncio.timeout(SNAPSHOT_TIMEOUT_S):
                return await self._take(term, who, messages)
        except TimeoutError:
            return _refusal(TimedOutError("the ledger that was brought took too long"))
        except JupiterError as error:
            return _refusal(error)

    async def _take(self, term: Term, who: NodeId, messages: Messages) -> peer_pb2.BringReply:
        first = await anext(messages, peer_pb2.BroughtLedger())
        if not re.fullmatch("[0-9a-f]{32}", first.cluster):
            raise RefusedError("a stranger brought the ledger of a cluster that can't be one")
        token = self._consent(who, ClusterId(first.cluster), first)
        if not first.only_look:
            async with self._taking:
                brought = await _read(messages, ClusterId(first.cluster), who)
                await self._unite(term, brought, who, token)
        told = json.dumps(brief(term.replica.ledger).to_plain())
        proof = b"" if token is None else self._proof(token, Side.MEMBER, who)
        return peer_pb2.BringReply(brief_json=told, proof=proof)

    def _consent(
        self, who: NodeId, cluster: ClusterId, first: peer_pb2.BroughtLedger
    ) -> TokenIssued | None:
        """Return the token that lets this cluster in, if it needs one.

        Raises:
            RefusedError: nobody of this cluster has agreed.
        """
        state = self._replica.state
        is_member = who in state.members
        if not is_member and (state.roster.was_removed(who) or who in state.barred):
            raise RefusedError(f"node {short(who)} was removed from {self._own.summary().title}")
        if is_member and cluster in absorbed_by(state, self._replica.cluster):
            return None
        token = state.tokens.get(first.token_id)
        if token is not None and is_proved(self._proof(token, Side.NEWCOMER, who), first.proof):
            return token
        if self._own.is_open():
            return None
        raise RefusedError(
            f"{self._own.summary().title} is closed, so nobody there has agreed to a merge",
            f"run on any of its members: {OPEN_COMMAND}; or give a join token of it: --token -",
        )

    def _proof(self, token: TokenIssued, side: Side, newcomer: NodeId) -> bytes:
        cluster, own = self._replica.cluster, self._own.identity.node_id
        return prove(token.secret, side, cluster, newcomer, own)

    async def _unite(
        self, term: Term, brought: Ledger, who: NodeId, token: TokenIssued | None
    ) -> None:
        facts = owed(term.replica.ledger, brought)
        if token is not None:
            facts = [_let_in_by(token.token, who, fact) for fact in facts]
        elif not (who in term.state.roster.trusted or self._own.trusts_lan):
            facts = _walking_in(facts)
        _check_possible(term, facts)
        if any(isinstance(fact, _OF_TRUSTED_MEMBERS) for fact in facts):
            self._own.check_leader(who, "merge clusters")
        for chosen in in_entries(facts):
            await term.record(*chosen)
        if facts:
            log.info("united", extra={"cluster": short(brought.cluster), "facts": len(facts)})
            self._contacts.look_again()

    async def follow(self, node: NodeId, theirs: Summary, channels: PeerChannels) -> bool:
        """Move to the cluster that goes on in place of ours; say whether that was begun.

        A stranger's word for it isn't enough: people of our cluster have agreed, or it's a trusted
        member of ours that has moved there itself.
        """
        ours = self._own.summary()
        if self._moving.locked() or not leads_us(ours, theirs):
            return False
        state = self._replica.state
        is_trusted = node in state.roster.trusted
        if not (is_trusted or has_agreed(state, ours.cluster, theirs.cluster)):
            return False
        async with self._moving:
            try:
                await self._move(node, theirs, channels)
            except (JupiterError, grpc.aio.AioRpcError) as error:
                reason = error.message if isinstance(error, JupiterError) else error.details()
                log.warning("not_moved", extra={"cluster": theirs.title, "reason": reason})
                return False
        return True

    async def _move(self, node: NodeId, theirs: Summary, channels: PeerChannels) -> None:
        replica = self._replica
        fetched = await fetch_ledger(channels.control, node, theirs.cluster)
        if owed(fetched.ledger, replica.ledger):
            target = Outsider(theirs, channels.address)
            await self._bring(target, None, await replica.in_short())
            return
        before = replica.cluster
        await replica.move_to(fetched)
        log.info("moved_over", extra={"cluster": theirs.title, "before": short(before)})
        self._contacts.moved(theirs.leader or node, theirs.cluster)


def _let_in_by(token: str, who: NodeId, fact: Fact) -> Fact:
    """Return what is owed, where a token of ours that the bringer shows is a yes to all of them."""
    is_bringer = isinstance(fact, NodeAdmitted) and fact.node == who
    return replace(fact, token=token) if is_bringer else fact


def _walking_in(facts: list[Fact]) -> list[Fact]:
    """Return what is owed to a cluster that comes in through the open door alone.

    Raises:
        ConflictError: it has decided what who walks in may not, and all of it is owed.
    """
    if any(isinstance(fact, NodeRemoved | SourcePurged | StudentSteered) for fact in facts):
        raise ConflictError(
            "the cluster that is brought has removed a member of this one, purged a source or "
            "promoted a model, and an open door isn't enough for that",
            "make a join token here, and merge with it: jupiterctl cluster token",
        )
    return [
        replace(fact, reason=WALKED_IN) if isinstance(fact, NodeAdmitted) else fact
        for fact in facts
    ]


def _refusal(error: JupiterError) -> peer_pb2.BringReply:
    failure = peer_pb2.Failure(code=error.code, message=error.message, hint=error.hint)
    return peer_pb2.BringReply(failure=failure)


def _token_of(target: Outsider, text: str) -> Token | None:
    if not text:
        return None
    token = parse_token(text)
    if token.cluster != target.summary.cluster:
        raise UsageError(f"that token isn't of {target.summary.title}", "make one there")
    return token


async def _messages(first: peer_pb2.BroughtLedger, raw: bytes) -> Messages:
    yield first
    async for chunk in chunks_of(raw):
        yield peer_pb2.BroughtLedger(data=chunk.data)


def _brief_in(reply: peer_pb2.BringReply, cluster: ClusterId) -> Brief:
    try:
        found = read_brief(json.loads(reply.brief_json))
    except ValueError as error:
        raise RefusedError("the other cluster's answer can't be read") from error
    if found.id != cluster:
        raise RefusedError("another cluster answers at that address by now", "try again")
    return found


async def _read(messages: Messages, cluster: ClusterId, who: NodeId) -> Ledger:
    """Return the ledger that a member of it brings, verified.

    Raises:
        CorruptLedgerError: it isn't one, or not the caller's.
    """
    raw = bytearray()
    async for message in messages:
        raw += message.data
        if len(raw) > MAX_SNAPSHOT_BYTES:
            raise CorruptLedgerError("a ledger snapshot is too large")
    ledger = Ledger(cluster)
    snapshot = await asyncio.to_thread(verified_snapshot, ledger, bytes(raw), who)
    await asyncio.to_thread(adopt, ledger, snapshot)
    if who not in ledger.state.members:
        raise CorruptLedgerError(f"the ledger that node {short(who)} brought doesn't have it")
    return ledger


def _check_possible(term: Term, facts: list[Fact]) -> None:
    """Raise ConflictError where what is owed can't be recorded by this leader."""
    members = set(term.state.members)
    members |= {fact.node for fact in facts if isinstance(fact, NodeAdmitted)}
    if len(members) > MAX_MEMBERS:
        raise ConflictError(f"together they have more than {MAX_MEMBERS} members")
    if any(isinstance(fact, NodeRemoved) and fact.node == term.self_id for fact in facts):
        raise ConflictError(
            "the node that leads was removed from the cluster that is brought",
            "stop jupiterd on it; another node leads then",
        )

"""The Peer service: what other nodes may ask of this one.

Owns the border: who calls is taken from the key of the connection, and gets no further than its row
in `cluster.call_rights` says. Doesn't do the work itself; each verb is one call to the part that
does.
"""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, cast

import grpc.aio

from jupiterd.cluster.facts.facts import NodeAdmitted, TokenIssued
from jupiterd.cluster.ledger.tokens import Side, is_proved, prove
from jupiterd.cluster.membership.admission import Admission, admit
from jupiterd.cluster.training.gang_store import StoreQuestion
from jupiterd.cluster.values.bounds import is_bounded
from jupiterd.cluster.values.version_groups import why_refused
from jupiterd.daemon.ledger.snapshot_transfer import chunks_of
from jupiterd.daemon.links.link_measurement import ways_to
from jupiterd.daemon.links.reachability_probe import to_reply, try_links
from jupiterd.daemon.links.seen_clusters import to_message
from jupiterd.daemon.membership.approval_server import receive
from jupiterd.daemon.membership.handshake import PROTOCOL
from jupiterd.daemon.observability.report_wire import to_reply as to_reply_of_report
from jupiterd.daemon.queries.cycle.curve_wire import curves_reply
from jupiterd.daemon.runtime.untrusted_input import told_text
from jupiterd.daemon.runtime.work_events import KeepWish, WorkOrder, made_to_proto, to_proto
from jupiterd.errors import (
    BadCertificateError,
    ConflictError,
    JupiterError,
    MalformedError,
    NotAMemberError,
)
from jupiterd.ids import ClusterId, NodeId, short
from jupiterd.net.credentials import caller
from jupiterd.net.identity import node_id_of
from jupiterd.ports import Address
from jupiterd.rpc import peer_pb2, peer_pb2_grpc

if TYPE_CHECKING:
    from jupiterd.daemon.app.node import Node
    from jupiterd.daemon.leader.leading import Leading

log = logging.getLogger(__name__)

MAX_CERTIFICATE_BYTES = 4096

Context = grpc.aio.ServicerContext[Any, Any]


class PeerService(peer_pb2_grpc.PeerServicer):
    """Answers other nodes."""

    def __init__(self, node: "Node") -> None:
        self._node = node
        self._admitting = asyncio.Lock()

    async def Hello(self, request: peer_pb2.HelloRequest, context: Context) -> peer_pb2.HelloReply:
        """Say which cluster we're in, and look at the caller in turn."""
        who, address = caller(context), self._caller_address(context, request.port)
        where = str(address or self._node.listening.callers.host_of(context.peer()))
        is_caller = self._node.greeter.is_caller(who, request.greeting, where)
        if address is not None:
            self._node.greeter.note_caller(who, address, request.summary.cluster)
            if self._node.journal.cluster in request.summary.absorbed:
                self._node.greeter.addresses.hasten(address)
        is_member = who in self._node.journal.state.members
        summary = self._node.summary()
        told = summary if is_member else summary.for_stranger(ClusterId(request.summary.cluster))
        return peer_pb2.HelloReply(
            protocol=PROTOCOL,
            summary=to_message(told),
            name=self._node.settings.name if is_member else "",
            run_nonce=self._node.outlook.run_nonce,
            member=is_member,
            is_caller=is_caller,
            clone_at=self._node.journal.clones.seen_at if is_member else "",
            member_addresses=self._node.peers.told_addresses(who) if is_member else (),
            members_port=self._node.outlook.members_port if is_member else 0,
        )

    async def Join(self, request: peer_pb2.JoinRequest, context: Context) -> peer_pb2.JoinReply:
        """Let the caller in, or say who decides, or why not."""
        who = caller(context)
        decisions = peer_pb2.JoinReply.Decision
        node = self._node
        if node.greeter.joining.is_under_way:
            return peer_pb2.JoinReply(
                decision=decisions.PENDING, reason="it is joining another cluster"
            )
        leading = node.leading
        if leading is None:
            return peer_pb2.JoinReply(
                decision=decisions.ASK_LEADER,
                leader=node.pulse.election.leader or "",
                leader_addresses=node.outlook.leader_addresses(),
            )
        certificate = request.certificate_pem
        if len(certificate) > MAX_CERTIFICATE_BYTES or node_id_of(certificate) != who:
            raise BadCertificateError("the certificate isn't that of the connection")
        token = self._proved_token(who, request)
        if self._is_for_others(who, token):
            reason = "a trusted member is to lead first; it is tried again by itself"
            return peer_pb2.JoinReply(decision=decisions.PENDING, reason=reason)
        async with self._admitting:  # one after the other, or a token would let in two
            decision, reason = await self._admit(leading, who, request, token)
        address = self._caller_address(context, request.port)
        if decision is Admission.PENDING and request.commitment:
            return receive(leading.waiting, who, address.host if address else "", request, reason)
        if decision is not Admission.ADMITTED:
            node.refusals.count("not-let-in", short(who), reason)
            return peer_pb2.JoinReply(decision=decisions.REFUSED, reason=reason)
        if address is not None:
            node.greeter.addresses.note(address)
        return peer_pb2.JoinReply(
            decision=decisions.ADMITTED,
            reason=reason,
            cluster=node.journal.cluster,
            leader=node.identity.node_id,
            proof=self._proof(Side.MEMBER, who, token) if token is not None else b"",
        )

    def _is_for_others(self, who: NodeId, token: TokenIssued | None) -> bool:
        """Say whether a trusted member is to let this one in, and have one lead where one is here.

        This leader lets others walk in, as it did itself, until the door was shut once.
        """
        roster, hand_over = self._node.journal.state.roster, self._node.hand_over
        is_known = who in self._node.journal.state.members
        walks_in = token is None and self._node.is_open and not roster.is_shut
        if is_known or walks_in or hand_over.is_trusted:
            return False
        hand_over.begin_for(who)
        return True

    async def _admit(
        self,
        leading: "Leading",
        who: NodeId,
        request: peer_pb2.JoinRequest,
        token: TokenIssued | None,
    ) -> tuple[Admission, str]:
        state = self._node.journal.state
        letting_in = token.token if token is not None and token.token in state.tokens else ""
        apart = why_refused(told_text(request.version), self._node.hardware.program)
        trusts_lan = self._node.settings.trust_lan
        decision, reason = admit(state, self._node.is_open, who, letting_in, apart, trusts_lan)
        if decision is Admission.ADMITTED and who not in state.members:
            name = told_text(request.name)
            admission = NodeAdmitted(who, name, request.certificate_pem, reason, letting_in)
            await leading.record(admission)
            log.info("admitted", extra={"node": short(who), "reason": reason})
        if decision is Admission.ADMITTED:
            leading.waiting.drop(who)
        return decision, reason

    def _proved_token(self, who: NodeId, request: peer_pb2.JoinRequest) -> TokenIssued | None:
        """Return the join token whose secret the caller has proved to know, if there is one."""
        token = self._node.journal.state.issued_tokens.get(request.token_id)
        if token is not None and is_proved(self._proof(Side.NEWCOMER, who, token), request.proof):
            return token
        if request.token_id:
            self._node.refusals.count("bad-token", short(who), "it doesn't know that join token")
        return None

    def _proof(self, side: Side, newcomer: NodeId, token: TokenIssued) -> bytes:
        cluster, own = self._node.journal.cluster, self._node.identity.node_id
        return prove(token.secret, side, cluster, newcomer, own)

    async def Bring(
        self, request_iterator: AsyncIterator[peer_pb2.BroughtLedger], context: Context
    ) -> peer_pb2.BringReply:
        """Take in the ledger of a cluster that is to become part of this one."""
        who = caller(context)
        return await self._node.merging.take(who, request_iterator)

    async def AskRoster(
        self, request: peer_pb2.RosterRequest, context: Context
    ) -> peer_pb2.RosterReply:
        """Tell who was a member which entries say that it is one no more."""
        was_member = self._node.journal.state.roster.known(caller(context)) is not None
        if not was_member or request.cluster != self._node.journal.cluster:
            return peer_pb2.RosterReply()  # perhaps its admission hasn't come here yet
        entries = self._node.journal.ledger.roster_entries()
        return peer_pb2.RosterReply(entries=[entry.raw for entry in entries])

    async def Beat(
        self, request_iterator: AsyncIterator[peer_pb2.Heartbeat], context: Context
    ) -> AsyncIterator[peer_pb2.Heartbeat]:
        """Take in heartbeats, and answer each with ours for as long as the caller is a member."""
        who = await self._member(context)

        async def of_member() -> AsyncIterator[peer_pb2.Heartbeat]:
            async for beat in request_iterator:
                if not self._answers(who):
                    await self._member(context)  # says why
                yield beat

        address = self._caller_address(context, 1)
        host = "" if address is None else address.host
        async with aclosing(self._node.pulse.answers(who, of_member(), host)) as answers:
            async for answer in answers:
                yield answer

    async def Leave(self, request: peer_pb2.LeaveRequest, context: Context) -> peer_pb2.LeaveReply:
        """Take in that the caller stops."""
        self._node.pulse.left(await self._member(context), request)
        return peer_pb2.LeaveReply()

    async def UsePath(
        self, request: peer_pb2.UsePathRequest, context: Context
    ) -> peer_pb2.UsePathReply:
        """Take in which way between us the caller uses."""
        who = await self._member(context)
        with contextlib.suppress(ValueError):  # what is no address is no choice either
            return peer_pb2.UsePathReply(known=self._node.path_watch.hear(who, request.address))
        return peer_pb2.UsePathReply()

    async def TakeBytes(
        self, request_iterator: AsyncIterator[peer_pb2.MeasuredBytes], context: Context
    ) -> peer_pb2.TakenBytes:
        """Count bytes, so that the caller learns how many a path carries."""
        await self._member(context)
        return peer_pb2.TakenBytes(size_bytes=await self._node.measuring.take(request_iterator))

    async def GiveBytes(
        self,
        request: peer_pb2.GiveBytesRequest,  # noqa: ARG002 - the signature of all methods
        context: Context,
    ) -> AsyncIterator[peer_pb2.MeasuredBytes]:
        """Send bytes, for the same end."""
        await self._member(context)
        async with aclosing(self._node.measuring.give()) as pieces:
            async for piece in pieces:
                yield piece

    async def NotePath(
        self, request: peer_pb2.NotePathRequest, context: Context
    ) -> peer_pb2.NotePathReply:
        """Take in how much a way between us carries."""
        who = await self._member(context)
        with contextlib.suppress(ValueError):  # what is no address is none of our ways
            self._node.path_watch.note(who, request.address, request.bits_per_s)
        return peer_pb2.NotePathReply()

    async def MeasureWays(
        self, request: peer_pb2.MeasureWaysRequest, context: Context
    ) -> peer_pb2.MeasureWaysReply:
        """Measure our ways to another member."""
        await self._member(context)
        try:
            return peer_pb2.MeasureWaysReply(ways=await ways_to(self._node, NodeId(request.node)))
        except JupiterError as error:
            return peer_pb2.MeasureWaysReply(failure=_failure(error))

    async def TraceSamples(
        self, request: peer_pb2.TraceRequest, context: Context
    ) -> peer_pb2.TraceReply:
        """Tell what lies here of some samples, or of a token of shards."""
        await self._member(context)
        from jupiterd.daemon.queries.cluster.local_trace import (
            trace_for_member,  # memory that idle ones need not
        )

        return await trace_for_member(self._node, request)

    async def AskReport(
        self,
        request: peer_pb2.ReportRequest,  # noqa: ARG002 - it asks for everything
        context: Context,
    ) -> peer_pb2.ReportReply:
        """Tell what this daemon tells of itself beyond its heartbeats."""
        await self._member(context)
        return to_reply_of_report(await self._node.outlook.own_report.to_plain())

    async def ReadCurves(
        self, request: peer_pb2.CurvesRequest, context: Context
    ) -> peer_pb2.CurvesReply:
        """Tell the loss by step that ranks here have written."""
        await self._member(context)
        return curves_reply(await self._node.curves.of_run(request.run))

    async def AskPreVote(
        self, request: peer_pb2.PreVoteRequest, context: Context
    ) -> peer_pb2.PreVoteReply:
        """Say whether the caller may lead, as far as we see."""
        who = await self._member(context)
        if request.cluster != self._node.journal.cluster:
            return peer_pb2.PreVoteReply(granted=False, reason="it is in another cluster")
        granted, reason = self._node.pulse.answer_pre_vote(who, request.term, request.stability)
        term = self._node.pulse.election.term
        return peer_pb2.PreVoteReply(granted=granted, reason=reason, term=term)

    async def Exchange(
        self, request: peer_pb2.ExchangeRequest, context: Context
    ) -> peer_pb2.ExchangeReply:
        """Make the two ledgers equal."""
        await self._member(context)
        return await self._node.exchange.answer(request)

    async def FetchSnapshot(
        self,
        request: peer_pb2.SnapshotRequest,  # noqa: ARG002 - the signature of all methods
        context: Context,
    ) -> AsyncIterator[peer_pb2.SnapshotChunk]:
        """Send the ledger in short, as this node signs it."""
        await self._member(context)
        async for chunk in chunks_of(await self._node.journal.snapshot()):
            yield chunk

    async def Command(
        self, request: peer_pb2.CommandRequest, context: Context
    ) -> peer_pb2.CommandReply:
        """Carry out a command that somebody gave to a follower."""
        who = await self._member(context)
        try:
            arguments = _arguments(request.arguments_json)
            result = await self._node.commands.execute_here(request.verb, arguments, who)
        except JupiterError as error:
            return peer_pb2.CommandReply(failure=_failure(error))
        return peer_pb2.CommandReply(result_json=json.dumps(result))

    async def OpenProbe(
        self, request: peer_pb2.OpenProbeRequest, context: Context
    ) -> peer_pb2.OpenProbeReply:
        """Open a listener for a preflight."""
        await self._member(context)
        return await self._node.probes.open(request)

    async def ProbeRoutes(
        self, request: peer_pb2.ProbeRoutesRequest, context: Context
    ) -> peer_pb2.ProbeRoutesReply:
        """Try routes to the listeners of others."""
        await self._member(context)
        return await self._node.probes.prove(request)

    async def PrepareRanks(
        self, request: peer_pb2.PrepareRanksRequest, context: Context
    ) -> peer_pb2.PrepareRanksReply:
        """Say whether a gang's ranks may run here just now."""
        await self._leader(context)
        return await self._node.holder.prepare(request)

    async def TryLinks(
        self, request: peer_pb2.TryLinksRequest, context: Context
    ) -> peer_pb2.TryLinksReply:
        """Try our links to other members."""
        await self._member(context)
        own, nodes = self._node.identity.node_id, map(NodeId, request.nodes)
        return to_reply(await try_links(self._node.peers, own, nodes))

    async def RunWork(
        self, request: peer_pb2.WorkRequest, context: Context
    ) -> AsyncIterator[peer_pb2.WorkEvent]:
        """Do a piece of work; it ends with the stream, but for a gang's."""
        leader = await self._leader(context, request.term)
        try:
            work = self._node.holder.run(leader, WorkOrder.from_proto(request))
            async with aclosing(work) as events:
                async for event in events:
                    yield to_proto(event)
        except JupiterError as error:
            yield peer_pb2.WorkEvent(failure=_failure(error))

    async def UseStore(
        self, request: peer_pb2.StoreRequest, context: Context
    ) -> peer_pb2.StoreReply:
        """Answer a question to the store of a gang that the caller has a rank in."""
        who = await self._member(context)
        question = StoreQuestion.of(request.verb, request.keys, request.values)
        stores = self._node.runner.stores
        value = await stores.answer(who, request.store, question, request.within_s)
        return peer_pb2.StoreReply(value=value)

    async def EndEpoch(
        self, request: peer_pb2.EndEpochRequest, context: Context
    ) -> peer_pb2.EndEpochReply:
        """End what a gang does here."""
        leader = await self._leader(context, request.term)
        if request.after_step:
            await self._node.holder.stop_after_step(leader, request.term, request.epoch)
            return peer_pb2.EndEpochReply()
        wish = KeepWish.from_proto(request)
        made = await self._node.holder.end(leader, request.term, request.epoch, wish)
        return peer_pb2.EndEpochReply(kept=None if made is None else made_to_proto(made))

    def _caller_address(self, context: Context, port: int) -> Address | None:
        """Return where the caller may answer: the host it calls from, the port it names."""
        host = self._node.listening.callers.host_of(context.peer())
        return Address(host, port) if host and 0 < port < 65536 else None

    def _answers(self, who: NodeId) -> bool:
        is_cloned = self._node.journal.clones.is_seen
        return not is_cloned and who in self._node.journal.state.members

    async def _leader(self, context: Context, term: int | None = None) -> NodeId:
        """Return the caller; raises RefusedError unless this node follows it."""
        who = await self._member(context)
        await self._node.pulse.followed.check(who, term)
        return who

    async def _member(self, context: Context) -> NodeId:
        who = caller(context)
        if self._node.journal.clones.is_seen:
            raise ConflictError("another machine uses this node's key")
        if who not in self._node.journal.state.members:
            raise NotAMemberError(f"node {short(who)} is not a member of this cluster")
        return who


def _arguments(text: str) -> dict[str, Any]:
    """Read a command's arguments; raises MalformedError where they are none."""
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MalformedError("the arguments of a command can't be read") from error
    if not isinstance(found, dict) or not is_bounded(found):
        raise MalformedError("a command's arguments aren't a map, or a number in them is too large")
    return cast("dict[str, Any]", found)


def _failure(error: JupiterError) -> peer_pb2.Failure:
    return peer_pb2.Failure(code=error.code, message=error.message, hint=error.hint)

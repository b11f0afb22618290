"""The Peer service: what other nodes may ask of this one.

Owns the border: who calls is taken from the key of the connection, and gets no further than its row
in `cluster.call_rights` says. Doesn't do the work itself; each verb is one call to the part that
does.
"""

import contextlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Protocol, cast

from jupiterd.cluster.training.gang_store import StoreQuestion
from jupiterd.cluster.values.bounds import is_bounded
from jupiterd.daemon.api.border import Context, MemberGuard
from jupiterd.daemon.api.hello_calls import HelloCalls
from jupiterd.daemon.api.join_calls import JoinCalls
from jupiterd.daemon.executor.gang_stores import GangStores
from jupiterd.daemon.executor.order_executor import OrderExecutor
from jupiterd.daemon.executor.preflight_listener import PreflightListener
from jupiterd.daemon.ledger.anti_entropy import AntiEntropy
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.ledger.snapshot_transfer import chunks_of
from jupiterd.daemon.links.bandwidth_probe import BandwidthProbe
from jupiterd.daemon.links.link_measurement import LinkMeasurement
from jupiterd.daemon.links.path_monitor import PathMonitor
from jupiterd.daemon.links.peers import Peers
from jupiterd.daemon.links.reachability_probe import to_reply, try_links
from jupiterd.daemon.membership.heartbeat_loop import HeartbeatLoop
from jupiterd.daemon.observability.report_wire import to_reply as to_reply_of_report
from jupiterd.daemon.queries.cycle.curve_wire import Curves, curves_reply
from jupiterd.daemon.runtime.work_events import (
    SaveRequest,
    WorkOrder,
    checkpoint_to_proto,
    to_proto,
)
from jupiterd.errors import JupiterError, MalformedError
from jupiterd.ids import NodeId
from jupiterd.net.credentials import caller
from jupiterd.rpc import peer_pb2, peer_pb2_grpc

log = logging.getLogger(__name__)


class MergesLedgers(Protocol):
    """Takes in the ledger of a cluster that is to become part of this one."""

    async def take(
        self, who: NodeId, messages: AsyncIterator[peer_pb2.BroughtLedger]
    ) -> peer_pb2.BringReply:
        """Take it in and say what became of it."""
        ...


@dataclass(frozen=True)
class ClusterParts:
    """What keeps the cluster together."""

    replica: Replica
    heartbeats: HeartbeatLoop
    exchange: AntiEntropy
    merging: MergesLedgers


@dataclass(frozen=True)
class LinkParts:
    """The parts that know the paths between members."""

    peers: Peers
    paths: PathMonitor
    bandwidth: BandwidthProbe
    measurement: LinkMeasurement
    probes: PreflightListener


class ExecutesCommands(Protocol):
    """Carries out commands, where this node leads."""

    async def execute_here(
        self, verb: str, arguments: Mapping[str, Any], asked_at: NodeId | None = None, /
    ) -> dict[str, Any]:
        """Carry out a command of a member; raises JupiterError."""
        ...


@dataclass(frozen=True)
class WorkParts:
    """What does work for the leader, and for those who give commands elsewhere."""

    order_executor: OrderExecutor
    stores: GangStores
    commands: ExecutesCommands


@dataclass(frozen=True)
class ReportParts:
    """The parts that report this machine to members."""

    trace: Callable[[peer_pb2.TraceRequest], Awaitable[peer_pb2.TraceReply]]
    own_report: Callable[[], Awaitable[dict[str, Any]]]
    curves: Callable[[str], Awaitable[Curves]]


class PeerService(peer_pb2_grpc.PeerServicer):
    """Answers other nodes."""

    def __init__(
        self,
        border: MemberGuard,
        admission: tuple[HelloCalls, JoinCalls],
        cluster: ClusterParts,
        links: LinkParts,
        work: WorkParts,
        reports: ReportParts,
    ) -> None:
        """`border` checks callers; the rest carries out the calls."""
        self._border, (self._hello, self._join) = border, admission
        self._cluster, self._links, self._work, self._reports = cluster, links, work, reports

    async def Hello(self, request: peer_pb2.HelloRequest, context: Context) -> peer_pb2.HelloReply:
        """Say which cluster we're in, and look at the caller in turn."""
        host, address = self._border.host(context), self._border.address(context, request.port)
        return self._hello.answer(caller(context), host, address, request)

    async def Join(self, request: peer_pb2.JoinRequest, context: Context) -> peer_pb2.JoinReply:
        """Let the caller in, or say who decides, or why not."""
        address = self._border.address(context, request.port)
        return await self._join.answer(caller(context), address, request)

    async def Bring(
        self, request_iterator: AsyncIterator[peer_pb2.BroughtLedger], context: Context
    ) -> peer_pb2.BringReply:
        """Take in the ledger of a cluster that is to become part of this one."""
        who = caller(context)
        return await self._cluster.merging.take(who, request_iterator)

    async def AskRoster(
        self, request: peer_pb2.RosterRequest, context: Context
    ) -> peer_pb2.RosterReply:
        """Return to a former member the entries that say that it is one no more."""
        was_member = self._cluster.replica.state.roster.known(caller(context)) is not None
        if not was_member or request.cluster != self._cluster.replica.cluster:
            return peer_pb2.RosterReply()  # perhaps its admission hasn't come here yet
        entries = self._cluster.replica.ledger.roster_entries()
        return peer_pb2.RosterReply(entries=[entry.raw for entry in entries])

    async def Beat(
        self, request_iterator: AsyncIterator[peer_pb2.Heartbeat], context: Context
    ) -> AsyncIterator[peer_pb2.Heartbeat]:
        """Take in heartbeats, and answer each with ours for as long as the caller is a member."""
        who = self._border.member(context)

        async def of_member() -> AsyncIterator[peer_pb2.Heartbeat]:
            async for beat in request_iterator:
                if not self._border.is_answered(who):
                    self._border.member(context)  # says why
                yield beat

        host = self._border.host(context)
        async with aclosing(self._cluster.heartbeats.answers(who, of_member(), host)) as answers:
            async for answer in answers:
                yield answer

    async def Leave(self, request: peer_pb2.LeaveRequest, context: Context) -> peer_pb2.LeaveReply:
        """Take in that the caller stops."""
        self._cluster.heartbeats.left(self._border.member(context), request)
        return peer_pb2.LeaveReply()

    async def UsePath(
        self, request: peer_pb2.UsePathRequest, context: Context
    ) -> peer_pb2.UsePathReply:
        """Note which path between us the caller uses."""
        who = self._border.member(context)
        with contextlib.suppress(ValueError):  # what is no address is no choice either
            return peer_pb2.UsePathReply(
                known=self._links.paths.note_preferred(who, request.address)
            )
        return peer_pb2.UsePathReply()

    async def TakeBytes(
        self, request_iterator: AsyncIterator[peer_pb2.MeasuredBytes], context: Context
    ) -> peer_pb2.TakenBytes:
        """Count bytes, so that the caller learns how many a path carries."""
        self._border.member(context)
        return peer_pb2.TakenBytes(size_bytes=await self._links.bandwidth.take(request_iterator))

    async def GiveBytes(
        self,
        request: peer_pb2.GiveBytesRequest,  # noqa: ARG002 - the signature of all methods
        context: Context,
    ) -> AsyncIterator[peer_pb2.MeasuredBytes]:
        """Send bytes, for the same end."""
        self._border.member(context)
        async with aclosing(self._links.bandwidth.give()) as pieces:
            async for piece in pieces:
                yield piece

    async def NotePath(
        self, request: peer_pb2.NotePathRequest, context: Context
    ) -> peer_pb2.NotePathReply:
        """Note the bandwidth of a path between us that the caller measured."""
        who = self._border.member(context)
        with contextlib.suppress(ValueError):  # what is no address is none of our paths
            self._links.paths.note(who, request.address, request.bits_per_s)
        return peer_pb2.NotePathReply()

    async def MeasureWays(
        self, request: peer_pb2.MeasurePathsRequest, context: Context
    ) -> peer_pb2.MeasurePathsReply:
        """Measure our paths to another member."""
        self._border.member(context)
        try:
            return peer_pb2.MeasurePathsReply(
                paths=await self._links.measurement.paths_to(NodeId(request.node))
            )
        except JupiterError as error:
            return peer_pb2.MeasurePathsReply(failure=_failure(error))

    async def TraceSamples(
        self, request: peer_pb2.TraceRequest, context: Context
    ) -> peer_pb2.TraceReply:
        """Return what this node's store has of some samples, or of a token of shards."""
        self._border.member(context)
        return await self._reports.trace(request)

    async def AskReport(
        self,
        request: peer_pb2.ReportRequest,  # noqa: ARG002 - it asks for everything
        context: Context,
    ) -> peer_pb2.ReportReply:
        """Return this daemon's report: versions, processes and the end of its log."""
        self._border.member(context)
        return to_reply_of_report(await self._reports.own_report())

    async def ReadCurves(
        self, request: peer_pb2.CurvesRequest, context: Context
    ) -> peer_pb2.CurvesReply:
        """Return the loss by step that ranks here have written."""
        self._border.member(context)
        return curves_reply(await self._reports.curves(request.run))

    async def AskPreVote(
        self, request: peer_pb2.PreVoteRequest, context: Context
    ) -> peer_pb2.PreVoteReply:
        """Say whether the caller may lead, as far as we see."""
        who = self._border.member(context)
        if request.cluster != self._cluster.replica.cluster:
            return peer_pb2.PreVoteReply(granted=False, reason="it is in another cluster")
        granted, reason = self._cluster.heartbeats.answer_pre_vote(
            who, request.term, request.stability
        )
        term = self._cluster.heartbeats.election.term
        return peer_pb2.PreVoteReply(granted=granted, reason=reason, term=term)

    async def Exchange(
        self, request: peer_pb2.ExchangeRequest, context: Context
    ) -> peer_pb2.ExchangeReply:
        """Make the two ledgers equal."""
        self._border.member(context)
        return await self._cluster.exchange.answer(request)

    async def FetchSnapshot(
        self,
        request: peer_pb2.SnapshotRequest,  # noqa: ARG002 - the signature of all methods
        context: Context,
    ) -> AsyncIterator[peer_pb2.SnapshotChunk]:
        """Send the ledger in short, as this node signs it."""
        self._border.member(context)
        async for chunk in chunks_of(await self._cluster.replica.snapshot()):
            yield chunk

    async def Command(
        self, request: peer_pb2.CommandRequest, context: Context
    ) -> peer_pb2.CommandReply:
        """Carry out a command that somebody gave to a follower."""
        who = self._border.member(context)
        try:
            arguments = _arguments(request.arguments_json)
            result = await self._work.commands.execute_here(request.verb, arguments, who)
        except JupiterError as error:
            return peer_pb2.CommandReply(failure=_failure(error))
        return peer_pb2.CommandReply(result_json=json.dumps(result))

    async def OpenProbe(
        self, request: peer_pb2.OpenProbeRequest, context: Context
    ) -> peer_pb2.OpenProbeReply:
        """Open a listener for a preflight."""
        self._border.member(context)
        return await self._links.probes.open(request)

    async def ProbeRoutes(
        self, request: peer_pb2.ProbeRoutesRequest, context: Context
    ) -> peer_pb2.ProbeRoutesReply:
        """Try routes to the listeners of others."""
        self._border.member(context)
        return await self._links.probes.prove(request)

    async def PrepareRanks(
        self, request: peer_pb2.PrepareRanksRequest, context: Context
    ) -> peer_pb2.PrepareRanksReply:
        """Say whether a gang's ranks may run here just now."""
        await self._border.leader(context)
        return await self._work.order_executor.prepare(request)

    async def TryLinks(
        self, request: peer_pb2.TryLinksRequest, context: Context
    ) -> peer_pb2.TryLinksReply:
        """Try our links to other members."""
        self._border.member(context)
        own, nodes = self._cluster.replica.node, map(NodeId, request.nodes)
        return to_reply(await try_links(self._links.peers, own, nodes))

    async def RunWork(
        self, request: peer_pb2.WorkRequest, context: Context
    ) -> AsyncIterator[peer_pb2.WorkEvent]:
        """Do a piece of work; it ends with the stream, but for a gang's."""
        leader = await self._border.leader(context, request.term)
        try:
            work = self._work.order_executor.run(leader, WorkOrder.from_proto(request))
            async with aclosing(work) as events:
                async for event in events:
                    yield to_proto(event)
        except JupiterError as error:
            yield peer_pb2.WorkEvent(failure=_failure(error))

    async def UseStore(
        self, request: peer_pb2.StoreRequest, context: Context
    ) -> peer_pb2.StoreReply:
        """Answer a question to the store of a gang that the caller has a rank in."""
        who = self._border.member(context)
        question = StoreQuestion.of(request.verb, request.keys, request.values)
        stores = self._work.stores
        value = await stores.answer(who, request.store, question, request.within_s)
        return peer_pb2.StoreReply(value=value)

    async def EndEpoch(
        self, request: peer_pb2.EndAttemptRequest, context: Context
    ) -> peer_pb2.EndAttemptReply:
        """End what a gang does here."""
        leader = await self._border.leader(context, request.term)
        if request.after_step:
            await self._work.order_executor.stop_after_step(leader, request.term, request.attempt)
            return peer_pb2.EndAttemptReply()
        save = SaveRequest.from_proto(request)
        stored = await self._work.order_executor.end(leader, request.term, request.attempt, save)
        return peer_pb2.EndAttemptReply(
            kept=None if stored is None else checkpoint_to_proto(stored)
        )


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

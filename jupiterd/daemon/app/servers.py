"""What other nodes, and the front ends of this machine, are answered by.

Owns giving each service the parts that it calls. Doesn't own any socket.
"""

from functools import partial
from typing import TYPE_CHECKING

from jupiterd.daemon.api.border import MemberGuard
from jupiterd.daemon.api.control_service import ControlService
from jupiterd.daemon.api.hello_calls import HelloCalls
from jupiterd.daemon.api.join_calls import Deciding, JoinCalls, JoinPolicy
from jupiterd.daemon.api.peer_service import (
    ClusterParts,
    LinkParts,
    PeerService,
    ReportParts,
    WorkParts,
)
from jupiterd.daemon.artifacts.artifact_service import ArtifactService
from jupiterd.daemon.scripts.relay import PeerRanks, Relay
from jupiterd.daemon.scripts.script_service import ScriptService, add_scripts
from jupiterd.daemon.serving.serving_service import ServingService, add_serving
from jupiterd.daemon.serving.tasks.batch_relay import BatchRelay
from jupiterd.net.artifact_wire import add_artifacts
from jupiterd.net.server import NodeServer
from jupiterd.rpc import peer_pb2, peer_pb2_grpc

if TYPE_CHECKING:
    from jupiterd.daemon.app.wiring import Parts


def server_of(node: "Parts") -> NodeServer:
    """Return the servers for other nodes, with all that they answer."""
    server = node.listening.server()
    peers, scripts = _peer_service(node), _script_service(node)
    artifacts = ArtifactService(node.artifact_cache, node.listening.is_member)
    server.add(lambda s: peer_pb2_grpc.add_PeerServicer_to_server(peers, s))
    server.add(lambda s: add_scripts(scripts, s))
    server.add(lambda s: add_artifacts(artifacts, s))
    answers = ServingService(node.serving.local, node.serving.batches, _guard(node))
    server.add(lambda s: add_serving(answers, s))
    return server


def control_service_of(node: "Parts") -> ControlService:
    """Return what answers jupiterctl and jupiter-tui on this machine."""
    return ControlService(
        node.observers.documents.of,
        node.commands.execute,
        relay_of(node),
        BatchRelay(node.peers),
        lambda: node.is_closing,
    )


def relay_of(node: "Parts") -> Relay:
    """Return what passes on what jupiterctl asks of other machines."""
    return Relay(
        PeerRanks(node.peers),
        node.state_dir.root,
        node.running_scripts.later,
        lambda: node.is_closing,
    )


def _script_service(node: "Parts") -> ScriptService:
    return ScriptService(
        node.settings, node.replica, node.shipped, node.running_scripts, node.readiness
    )


def _guard(node: "Parts") -> MemberGuard:
    return MemberGuard(node.replica, node.listening.callers, node.heartbeats.followed)


def _peer_service(node: "Parts") -> PeerService:
    return PeerService(
        _guard(node),
        (_hello_calls(node), _join_calls(node)),
        ClusterParts(node.replica, node.heartbeats, node.anti_entropy, node.cluster_merge),
        LinkParts(
            node.peers,
            node.path_monitor,
            node.bandwidth_probe,
            node.link_measurement,
            node.preflight_listener,
        ),
        WorkParts(node.order_executor, node.worker_runner.stores, node.commands),
        ReportParts(partial(_trace, node), node.observers.own_report.to_plain, node.curves.of_run),
    )


def _hello_calls(node: "Parts") -> HelloCalls:
    return HelloCalls(
        node.settings.name, node.replica, node.peers, node.handshake, node.summary, node.local_view
    )


def _join_calls(node: "Parts") -> JoinCalls:
    policy = JoinPolicy(
        deciding=partial(_deciding, node),
        leader=lambda: (node.heartbeats.election.leader, node.local_view.leader_addresses()),
        program=lambda: node.hardware.program,
        trusts_lan=node.settings.trust_lan,
        is_open=lambda: node.is_open,
    )
    return JoinCalls(node.replica, node.handshake, node.hand_over, node.refusals, policy)


def _deciding(node: "Parts") -> Deciding | None:
    leading = node.leading
    return None if leading is None else Deciding(leading.term, leading.admissions.waiting)


async def _trace(node: "Parts", request: peer_pb2.TraceRequest) -> peer_pb2.TraceReply:
    """Return what this node's store has of some samples, or of a token of shards."""
    from jupiterd.daemon.queries.cluster.local_trace import (
        trace_for_member,  # memory that idle ones need not
    )

    return await trace_for_member(node.replica, node.artifact_cache.store, request)

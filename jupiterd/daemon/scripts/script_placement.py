"""A script on several machines, as seen from the daemon that jupiterctl asks: where it may run.

Owns choosing the machines, proving their routes, asking each whether it may and can, and passing
the ranks' events through. Doesn't run anything: jupiterctl runs this machine's ranks, and the
others' daemons (`script_service`) theirs.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import grpc.aio

from jupiterd.cluster.facts.facts import NodeAdmitted
from jupiterd.cluster.values.bounds import MAX_NUMBER
from jupiterd.cluster.values.node_names import find_node
from jupiterd.daemon.executor.preflight_listener import PreflightListener
from jupiterd.daemon.gangs.rendezvous import Place, prove_routes
from jupiterd.daemon.leader.connectivity import Connectivity
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.links.peers import Peers
from jupiterd.daemon.links.refused_connections import RefusedConnections
from jupiterd.daemon.membership.trust import check_trusted
from jupiterd.daemon.scripts.question import LaunchQuestion, place_of
from jupiterd.daemon.scripts.readiness import Readiness
from jupiterd.errors import BadRouteError, NotFoundError, PeerUnreachableError, UsageError
from jupiterd.ids import NodeId
from jupiterd.protocol.call_errors import from_rpc
from jupiterd.protocol.commands.script_commands import PrepareLaunch, ReportRefusedConnections
from jupiterd.protocol.frames import ConnectionsRefused
from jupiterd.rpc import script_pb2

PREPARE_TIMEOUT_S: Final = 15.0
LOOPBACK: Final = "127.0.0.1"

Places = dict[str, Any]


class ScriptPlacement:
    """Where launches of this machine may run."""

    def __init__(
        self,
        replica: Replica,
        peers: Peers,
        probes: PreflightListener,
        readiness: Readiness,
        alive: Callable[[], frozenset[NodeId]],
    ) -> None:
        """`readiness`: this machine's; `alive`: the members that answer."""
        self._replica, self._peers, self._probes = replica, peers, probes
        self._readiness, self._alive = readiness, alive
        self._own = replica.node

    async def prepare(self, command: PrepareLaunch) -> Places:
        """Return a place for each machine that is meant, this one first if it is one of them.

        Raises:
            JupiterError: one is unknown, unreachable, unwilling, or lacks the script.
        """
        names, own = member_names(self._replica.state.members, self._peers), self._own
        question = LaunchQuestion.of(command)
        chosen = chosen_nodes(question.nodes, names, self._alive(), own)
        if set(chosen) - {own}:
            check_trusted(self._replica.state, own, "bring scripts")
        requests = question.requests(chosen, names, own)
        hosts = await self._hosts(chosen)
        for member, place in hosts.items():
            requests[member].host = place.host
        questions = [
            self._ask(member, names[member], requests[member], question) for member in hosts
        ]
        replies = await asyncio.gather(*questions)
        return {
            "self": own,
            "places": [
                {
                    "node": member,
                    "name": names[member],
                    "host": place.host,
                    "interface": place.interface,
                    "addresses": list(place.addresses),
                    "folder": requests[member].folder,
                    **place_of(reply),
                }
                for (member, place), reply in zip(hosts.items(), replies, strict=True)
            ],
        }

    async def _hosts(self, chosen: Sequence[NodeId]) -> dict[NodeId, Place]:
        """Return where each machine is reached, once all have reached each other there."""
        if len(chosen) == 1:
            is_mac = self._system_of(chosen[0]) == "Darwin"
            return {chosen[0]: Place(host=LOOPBACK, interface="lo0" if is_mac else "lo")}
        proved = await prove_routes(
            Connectivity(self._own, self._peers, self._probes), chosen, reserve=False
        )
        for place in proved.values():
            if ":" in place.host:
                raise BadRouteError(
                    f"a script's ranks need IPv4, and a member is reached at {place.host}",
                    "give the machines IPv4 addresses",
                )
        return proved

    def _system_of(self, member: NodeId) -> str:
        """Return the operating system of a machine; empty where it isn't known."""
        if member == self._own:
            return self._readiness.system
        peer = self._peers.get(member)
        return peer.hardware.system if peer is not None and peer.hardware is not None else ""

    async def _ask(
        self,
        member: NodeId,
        name: str,
        request: script_pb2.PrepareScriptRequest,
        question: LaunchQuestion,
    ) -> script_pb2.PrepareScriptReply:
        if member == self._own:  # jupiterctl runs it here, as whoever called it
            return await self._readiness.prepared(request, question.environment)
        stub = self._peers.require(member).channels.scripts
        try:
            return await stub.Prepare(request, timeout=PREPARE_TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            raise from_rpc(error, name) from error


async def note_refused_connections(
    refused_connections: RefusedConnections, command: ReportRefusedConnections
) -> dict[str, Any]:
    """Count connections that ranks of jupiterctl on this machine refused; raises UsageError."""
    if not 0 < command.count <= MAX_NUMBER:
        raise UsageError(f"count must be from 1 to {MAX_NUMBER}, not {command.count}")
    refused_connections.note(ConnectionsRefused(command.count, list(command.hosts)), "launch")
    return {}


def member_names(members: Mapping[NodeId, NodeAdmitted], peers: Peers) -> dict[NodeId, str]:
    """Return the members with the names that people see."""
    return {
        member: peer.name if (peer := peers.get(member)) and peer.name else fact.name
        for member, fact in members.items()
    }


def chosen_nodes(
    wanted: str, names: Mapping[NodeId, str], alive: frozenset[NodeId], own: NodeId
) -> list[NodeId]:
    """Return the machines that `all`, a number, or names mean; this one first, if it is among them.

    Raises:
        NotFoundError: there is no such machine, or there aren't so many.
        PeerUnreachableError: one that is named isn't alive.
    """
    others = sorted(
        (node for node in alive if node in names and node != own), key=names.__getitem__
    )
    if wanted == "all":
        return [own, *others]
    if wanted.isdecimal():
        count = int(wanted)
        if not 1 <= count <= 1 + len(others):
            raise NotFoundError(
                f"{count} machines were asked for and {1 + len(others)} are alive",
                "jupiterctl node list shows who is here",
            )
        return [own, *others][:count]
    meant = [find_node(names, part.strip()) for part in wanted.split(",") if part.strip()]
    if not meant:
        raise UsageError("no machine was named", "--nodes all, a number, or names with commas")
    for node in meant:
        if node not in alive:
            raise PeerUnreachableError(f"{names[node]} isn't alive just now")
    return sorted(dict.fromkeys(meant), key=lambda node: node != own)

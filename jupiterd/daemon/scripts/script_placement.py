"""A script on several machines, as seen from the daemon that jupiterctl asks: where it may run.

Owns choosing the machines, proving their routes, asking each whether it may and can, and passing
the ranks' events through. Doesn't run anything: jupiterctl runs this machine's ranks, and the
others' daemons (`script_service`) theirs.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import grpc.aio

from jupiterd.cluster.values.bounds import MAX_NUMBER
from jupiterd.cluster.values.node_names import find_node
from jupiterd.daemon.gangs.rendezvous import Place, prove_routes
from jupiterd.daemon.membership.trust import check_trusted
from jupiterd.daemon.scripts.question import LaunchQuestion, place_of
from jupiterd.daemon.scripts.readiness import prepared_here
from jupiterd.errors import (
    BadRouteError,
    NotFoundError,
    PeerUnreachableError,
    UsageError,
)
from jupiterd.ids import NodeId
from jupiterd.net.interfaces import source_address_toward
from jupiterd.protocol.call_errors import from_rpc
from jupiterd.protocol.frames import Knocked
from jupiterd.rpc import script_pb2

if TYPE_CHECKING:
    from jupiterd.daemon.app.node import Node
    from jupiterd.daemon.executor.preflight_listener import PreflightListener
    from jupiterd.daemon.links.peers import Peers

PREPARE_TIMEOUT_S: Final = 15.0
LOOPBACK: Final = "127.0.0.1"

Places = dict[str, Any]


async def prepare_launch(node: "Node", arguments: Mapping[str, Any]) -> Places:
    """Return a place for each machine that is meant, this one first if it is one of them.

    Raises:
        JupiterError: one is unknown, unreachable, unwilling, or lacks the script.
    """
    names, own = member_names(node), node.identity.node_id
    asked = LaunchQuestion.of(arguments)
    chosen = chosen_nodes(asked.nodes, names, node.alive(), own)
    if set(chosen) - {own}:
        check_trusted(node.journal.state, own, "bring scripts")
    requests = asked.requests(chosen, names, own)
    hosts = await _hosts(node, chosen)
    for member, place in hosts.items():
        requests[member].host = place.host
    questions = [_ask(node, member, names[member], requests[member], asked) for member in hosts]
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


async def hear_of_knocks(node: "Node", arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Take in who knocked at ranks that jupiterctl runs on this machine; raises UsageError."""
    count, hosts = int(arguments["count"]), [str(host) for host in arguments["hosts"]]
    if not 0 < count <= MAX_NUMBER:
        raise UsageError(f"nobody can knock {count} times")
    node.runner.knocks.note(Knocked(count, hosts), "launch")
    return {}


def member_names(node: "Node") -> dict[NodeId, str]:
    """Return the members with the names that people see."""
    return {
        member: peer.name if (peer := node.peers.get(member)) and peer.name else fact.name
        for member, fact in node.journal.state.members.items()
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


class _Here:
    """This node as one that lets members prove their routes."""

    def __init__(self, node: "Node") -> None:
        self.self_id: NodeId = node.identity.node_id
        self.probes: PreflightListener = node.probes
        self.peers: Peers = node.peers

    def host_of(self, node: NodeId, *, seen_from: NodeId) -> str:
        """Return the host of a member; our own is the address that leads to the asker."""
        if node != self.self_id:
            return self.peers.require(node).shared_host
        return source_address_toward(self.peers.require(seen_from).shared_host)[0]


async def _hosts(node: "Node", chosen: Sequence[NodeId]) -> dict[NodeId, Place]:
    """Return where each machine is reached, once all have reached each other there."""
    if len(chosen) == 1:
        is_mac = (hardware := node.outlook.hardware_of(chosen[0])) and hardware.system == "Darwin"
        return {chosen[0]: Place(host=LOOPBACK, interface="lo0" if is_mac else "lo")}
    proved = await prove_routes(_Here(node), chosen, reserve=False)
    for place in proved.values():
        if ":" in place.host:
            raise BadRouteError(
                f"a script's ranks need IPv4, and a member is reached at {place.host}",
                "give the machines IPv4 addresses",
            )
    return proved


async def _ask(
    node: "Node",
    member: NodeId,
    name: str,
    request: script_pb2.PrepareScriptRequest,
    asked: LaunchQuestion,
) -> script_pb2.PrepareScriptReply:
    if member == node.identity.node_id:  # jupiterctl runs it here, as whoever called it
        return await prepared_here(node, request, asked.environment)
    stub = node.peers.require(member).channels.scripts
    try:
        return await stub.Prepare(request, timeout=PREPARE_TIMEOUT_S)
    except grpc.aio.AioRpcError as error:
        raise from_rpc(error, name) from error

"""Where the ranks of an attempt meet: proven routes, and a store on rank 0's node, or a ring.

Owns the preflight. Doesn't know what the ranks do once they have met, or how a store answers.
"""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import grpc

from jupiterd.cluster.links.gang_links import Link
from jupiterd.cluster.planning.gang_hosts import gang_hosts
from jupiterd.cluster.training.store_place import StorePlace
from jupiterd.daemon.executor import gang_stores
from jupiterd.daemon.leader.connectivity import Connectivity
from jupiterd.errors import BadRouteError, JupiterError, from_wire
from jupiterd.ids import NodeId
from jupiterd.net.scopes import in_scope, without_scope
from jupiterd.protocol.call_errors import from_rpc
from jupiterd.rpc import peer_pb2

PROBE_TIMEOUT_S = 5.0
LISTEN_TIMEOUT_S = 20.0
"""How long the last rank of a ring waits for the others: a cold start imports for seconds."""

LOOPBACK_HOST = "127.0.0.1"
"""Where the ranks of a gang meet that is on one machine alone."""

Place = peer_pb2.OpenProbeReply
"""Where a member is reached, and the ports that it has opened and found."""


@dataclass(frozen=True)
class Rendezvous:
    """What a rank must know to meet the others; empty for a gang of one."""

    host: str = ""
    """Where rank 0's node is reached."""
    interfaces: Mapping[NodeId, str] = field(default_factory=dict[NodeId, str])
    store: StorePlace | None = None
    """Of a gang of torch."""
    ring: tuple[str, ...] = ()
    """host:port where each rank of an MLX ring will listen."""
    hosts: tuple[str, ...] = ()
    """Where the node of each rank is reached."""
    member_hosts: tuple[str, ...] = ()
    """Where the ranks' connections come from; empty where a member doesn't say."""

    def params(self, node: NodeId) -> dict[str, object]:
        """Return what a rank on this node is told of it: each node has its own name for a link."""
        store = {} if self.store is None else {gang_stores.PARAM: self.store.to_plain()}
        interface = self.interfaces.get(node, "")
        return {
            "first_host": in_scope(self.host, interface),
            "ring": list(self.ring),
            "member_hosts": list(self.member_hosts),
            "interface": interface,
            **store,
        }


class RingListeners:
    """Counts the ranks of a ring that listen: the last rank dials first, and rarely again."""

    def __init__(self) -> None:
        self._listening = asyncio.Semaphore(0)

    def add(self) -> None:
        """Take in that one more rank listens."""
        self._listening.release()

    async def wait_for(self, ranks: int) -> None:
        """Wait until that many ranks listen, or for LISTEN_TIMEOUT_S."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LISTEN_TIMEOUT_S):
                for _ in range(ranks):
                    await self._listening.acquire()


@dataclass(frozen=True)
class Routes:
    """What members found out who tried to reach each other."""

    places: Mapping[NodeId, Place]
    """Where each is reached."""
    bad: Mapping[Link, JupiterError]
    """The links that nothing goes over."""
    unsuited: frozenset[NodeId] = frozenset()
    """Whose addresses won't do: as long as they have no others there is no use in trying."""


class Prove(Protocol):
    """Proves that the members of a gang reach each other."""

    async def __call__(
        self, connectivity: Connectivity, gang: Sequence[NodeId], *, reserve: bool
    ) -> dict[NodeId, Place]:
        """Return where each is reached; see `prove_routes`."""
        ...


async def meet_at_store(
    connectivity: Connectivity, gang: Sequence[NodeId], name: str, prove: Prove | None = None
) -> Rendezvous:
    """Prove the routes, and say where the ranks' store is; rank 0's node opens it with its rank.

    Raises:
        BadRouteError: two members can't reach each other; host, interface and address are named.
    """
    if len(gang) == 1:
        return Rendezvous()
    places = await (prove or prove_routes)(connectivity, gang, reserve=False)
    interfaces = {node: place.interface for node, place in places.items()}
    return Rendezvous(
        places[gang[0]].host,
        interfaces,
        StorePlace.of(name, gang),
        hosts=tuple(places[node].host for node in gang),
        member_hosts=_hosts_of(places),
    )


async def meet_in_ring(
    connectivity: Connectivity, gang: Sequence[NodeId], prove: Prove | None = None
) -> Rendezvous:
    """Prove the routes, on ports of their own, and find one more on each node for the ring.

    The first that connects to a ring's port is taken for a neighbour, so nobody else may touch it.

    Raises:
        BadRouteError: two members can't reach each other, or only over IPv6.
    """
    if len(gang) == 1:
        return Rendezvous()
    places = await (prove or prove_routes)(connectivity, gang, reserve=True)
    return Rendezvous(
        interfaces={node: place.interface for node, place in places.items()},
        ring=tuple(f"{places[node].host}:{places[node].reserved_port}" for node in gang),
        hosts=tuple(places[node].host for node in gang),
        member_hosts=_hosts_of(places),
    )


def _hosts_of(places: Mapping[NodeId, Place]) -> tuple[str, ...]:
    return gang_hosts((place.host, place.addresses) for place in places.values())


async def prove_routes(
    connectivity: Connectivity, gang: Sequence[NodeId], *, reserve: bool
) -> dict[NodeId, Place]:
    """Let every member open a listener and every other connect to it, over real TCP.

    Raises:
        JupiterError: a member can't reach another one, or can't be asked; the message names them.
    """
    routes = await try_routes(connectivity, gang, reserve=reserve)
    for error in routes.bad.values():
        raise error
    return dict(routes.places)


async def try_routes(
    connectivity: Connectivity, gang: Sequence[NodeId], *, reserve: bool
) -> Routes:
    """Do the same, and return what came of it; `reserve`: for a ring, which knows IPv4 alone."""
    members = list(dict.fromkeys(gang))
    opened = await asyncio.gather(
        *(_try_to_open(connectivity, node, members, reserve=reserve) for node in members)
    )
    places: dict[NodeId, Place] = {}
    bad: dict[Link, JupiterError] = {}
    for node, place in zip(members, opened, strict=True):
        if isinstance(place, JupiterError):
            bad[frozenset((connectivity.self_id, node))] = place
        else:
            places[node] = place
    found = await asyncio.gather(*(_unreached(connectivity, node, places) for node in places))
    bad |= {link: error for each in found for link, error in each.items()}
    bad |= _without_ipv4(places) if reserve else {}
    unsuited = [
        node
        for node, place in zip(members, opened, strict=True)
        if isinstance(place, BadRouteError) or (reserve and node in _of_ipv6(places))
    ]
    return Routes(places, bad, frozenset(unsuited))


def _without_ipv4(places: Mapping[NodeId, Place]) -> dict[Link, JupiterError]:
    """Return the links over which no ring can be formed."""
    return {
        frozenset((node, other)): BadRouteError(
            f"an MLX ring needs IPv4, and a member is reached at {places[node].host}",
            "give both machines IPv4 addresses, or start the cycle with --engine torch",
        )
        for node in _of_ipv6(places)
        for other in places
        if other != node
    }


def _of_ipv6(places: Mapping[NodeId, Place]) -> list[NodeId]:
    return [node for node, place in places.items() if ":" in place.host]


async def _try_to_open(
    connectivity: Connectivity, node: NodeId, members: Sequence[NodeId], *, reserve: bool
) -> Place | JupiterError:
    try:
        return await _open_probe(connectivity, node, members, reserve=reserve)
    except JupiterError as error:
        return error


async def _unreached(
    connectivity: Connectivity, node: NodeId, places: Mapping[NodeId, Place]
) -> dict[Link, JupiterError]:
    """Return the links from a node over which it can't reach the other, and why."""
    others = [other for other in places if other != node]
    own = places[node].interface
    targets = [f"{in_scope(places[o].host, own)}:{places[o].port}" for o in others]
    try:
        reply = await _probe(connectivity, node, targets)
    except JupiterError as error:
        return {frozenset((connectivity.self_id, node)): error}
    return {
        frozenset((node, others[number])): BadRouteError(failure.message, failure.hint)
        for number, failure in zip(reply.unreached, reply.failures, strict=False)
        if number < len(others)
    }


async def _open_probe(
    connectivity: Connectivity, node: NodeId, members: Sequence[NodeId], *, reserve: bool
) -> Place:
    other = _neighbour(connectivity, node, members)
    toward = LOOPBACK_HOST if other == node else connectivity.host_of(other, seen_from=node)
    request = peer_pb2.OpenProbeRequest(toward=without_scope(toward), reserve=reserve)
    if node == connectivity.self_id:
        reply = await connectivity.probes.open(request)
    else:
        peer = connectivity.peers.require(node)
        try:
            reply = await peer.channels.control.OpenProbe(request, timeout=PROBE_TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            raise from_rpc(error, peer.name) from error
    if reply.failure.code:
        raise from_wire(reply.failure.code, reply.failure.message, reply.failure.hint)
    return reply


def _neighbour(connectivity: Connectivity, node: NodeId, members: Sequence[NodeId]) -> NodeId:
    """Return another member that we know the way to, ourselves if there is none.

    One that is alone is its own neighbour, and so are we where we know none of the others.
    """
    others = [member for member in members if member != node]
    known = (
        o for o in others if o == connectivity.self_id or connectivity.peers.get(o) is not None
    )
    return next(known, connectivity.self_id if others else node)


async def _probe(
    connectivity: Connectivity, node: NodeId, targets: Sequence[str]
) -> peer_pb2.ProbeRoutesReply:
    request = peer_pb2.ProbeRoutesRequest(targets=targets)
    if node == connectivity.self_id:
        return await connectivity.probes.prove(request)
    peer = connectivity.peers.require(node)
    try:
        return await peer.channels.control.ProbeRoutes(request, timeout=PROBE_TIMEOUT_S)
    except grpc.aio.AioRpcError as error:
        raise from_rpc(error, peer.name) from error

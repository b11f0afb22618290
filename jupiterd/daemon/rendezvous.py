"""Where the ranks of an epoch meet: proven routes, and a store in a process of its own or a ring.

Owns the preflight and the life of the store. Doesn't know what the ranks do once they have met.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol

import grpc

from jupiterd.daemon.leading import Leading
from jupiterd.daemon.peers import Peers
from jupiterd.daemon.probes import Probes
from jupiterd.daemon.work_events import Listening, WorkEvent, WorkOrder
from jupiterd.errors import BadRouteError, TimedOutError, from_wire
from jupiterd.failures import from_rpc
from jupiterd.ids import NodeId
from jupiterd.rpc import peer_pb2

PROBE_TIMEOUT_S = 5.0
LOOPBACK_HOST = "127.0.0.1"
"""Where the ranks of a gang meet that is on one machine alone."""
STORE_TIMEOUT_S = 60.0


class Reach(Protocol):
    """A node that lets members prove their routes: the leader, or one that runs a script."""

    @property
    def self_id(self) -> NodeId:
        """Return its own id."""
        ...

    @property
    def probes(self) -> Probes:
        """Return its own listeners."""
        ...

    @property
    def peers(self) -> Peers:
        """Return its links to the others."""
        ...

    def host_of(self, node: NodeId, *, seen_from: NodeId) -> str:
        """Return where a member is reached."""
        ...


@dataclass(frozen=True)
class Rendezvous:
    """What a rank must know to meet the others; empty for a gang of one."""

    host: str = ""
    port: int = 0
    interfaces: Mapping[NodeId, str] = field(default_factory=dict[NodeId, str])
    ring: tuple[str, ...] = ()
    """host:port where each rank of an MLX ring will listen."""


@asynccontextmanager
async def open_rendezvous(
    leading: Leading, gang: Sequence[NodeId], store_order: WorkOrder
) -> AsyncGenerator[Rendezvous]:
    """Prove the routes, start the store beside rank 0, and end it on leaving.

    Raises:
        BadRouteError: two members can't reach each other; host, interface and address are named.
    """
    if len(gang) == 1:
        yield Rendezvous()
        return
    places = await prove_routes(leading, gang, reserve=False)
    host = places[gang[0]].host
    params = {"world_size": len(gang), "interface": places[gang[0]].interface}
    order = replace(store_order, bind_host=host, params=params)
    async with aclosing(leading.run(gang[0], order)) as events:
        port = await _listening_port(events)
        interfaces = {node: place.interface for node, place in places.items()}
        async with watched(events):
            yield Rendezvous(host, port, interfaces)


@asynccontextmanager
async def watched(store: AsyncIterator[WorkEvent]) -> AsyncGenerator[None]:
    """Let a store that dies end what is done meanwhile."""
    async with asyncio.TaskGroup() as group:
        watch = group.create_task(_outlive(store))
        yield
        watch.cancel()


@asynccontextmanager
async def open_ring(leading: Leading, gang: Sequence[NodeId]) -> AsyncGenerator[Rendezvous]:
    """Prove the routes, on ports of their own, and find one more on each node for the ring.

    The first that connects to a ring's port is taken for a neighbour, so nobody else may touch it.

    Raises:
        BadRouteError: two members can't reach each other, or only over IPv6.
    """
    if len(gang) == 1:
        yield Rendezvous()
        return
    places = await prove_routes(leading, gang, reserve=True)
    for place in places.values():
        if ":" in place.host:
            raise BadRouteError(
                f"an MLX ring needs IPv4, and a member is reached at {place.host}",
                "give both machines IPv4 addresses, or start the cycle with --engine torch",
            )
    yield Rendezvous(
        interfaces={node: place.interface for node, place in places.items()},
        ring=tuple(f"{places[node].host}:{places[node].reserved_port}" for node in gang),
    )


async def _listening_port(events: AsyncIterator[WorkEvent]) -> int:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(STORE_TIMEOUT_S):
            async for event in events:
                if isinstance(event, Listening):
                    return event.port
    raise TimedOutError("the gang's store didn't start")


async def _outlive(events: AsyncIterator[WorkEvent]) -> None:
    """Notice a store that dies: its error ends the epoch."""
    async for _ in events:
        pass


async def prove_routes(
    leading: "Reach", gang: Sequence[NodeId], *, reserve: bool
) -> dict[NodeId, peer_pb2.OpenProbeReply]:
    """Let every member open a listener and every other connect to it, over real TCP."""
    members = list(dict.fromkeys(gang))
    replies = await asyncio.gather(
        *(_open_probe(leading, node, members, reserve=reserve) for node in members)
    )
    places = dict(zip(members, replies, strict=True))
    checks = [
        _probe(
            leading, node, [f"{p.host}:{p.port}" for other, p in places.items() if other != node]
        )
        for node in members
    ]
    for failures in await asyncio.gather(*checks):
        for failure in failures:
            raise BadRouteError(failure.message, failure.hint)
    return places


async def _open_probe(
    leading: "Reach", node: NodeId, members: Sequence[NodeId], *, reserve: bool
) -> peer_pb2.OpenProbeReply:
    other = next((member for member in members if member != node), None)
    toward = LOOPBACK_HOST if other is None else leading.host_of(other, seen_from=node)
    request = peer_pb2.OpenProbeRequest(toward=toward, reserve=reserve)
    if node == leading.self_id:
        reply = await leading.probes.open(request)
    else:
        peer = leading.peers.require(node)
        try:
            reply = await peer.channels.control.OpenProbe(request, timeout=PROBE_TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            raise from_rpc(error, peer.name) from error
    if reply.failure.code:
        raise from_wire(reply.failure.code, reply.failure.message, reply.failure.hint)
    return reply


async def _probe(
    leading: "Reach", node: NodeId, targets: Sequence[str]
) -> Sequence[peer_pb2.Failure]:
    request = peer_pb2.ProbeRoutesRequest(targets=targets)
    if node == leading.self_id:
        return (await leading.probes.prove(request)).failures
    peer = leading.peers.require(node)
    try:
        return (await peer.channels.control.ProbeRoutes(request, timeout=PROBE_TIMEOUT_S)).failures
    except grpc.aio.AioRpcError as error:
        raise from_rpc(error, peer.name) from error

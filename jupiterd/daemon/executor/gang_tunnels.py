"""The tunnels of one rank: its gang sees the others on loopback, and TLS carries it between nodes.

Owns which ends are open for a rank that runs here, and what it gets in place of the others'
addresses. Doesn't know TLS (`net.tunnels`) or what ranks say. Both engines know IPv4 alone here:
between nodes a tunnel goes over whatever address leads there.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

from jupiterd.cluster.training.gang_store import StoreQuestion
from jupiterd.cluster.training.gloo_address import DIALED, NOT_DIALED, port_of, readdressed
from jupiterd.cluster.training.tunnel_plan import PARAM, TunnelPlan
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.errors import MalformedError, NotAMemberError
from jupiterd.ids import NodeId, short
from jupiterd.net.interfaces import LOOPBACK, interface_of
from jupiterd.net.scopes import in_scope
from jupiterd.net.tunnels.contexts import accepting_tls, connecting_tls
from jupiterd.net.tunnels.relay import entrance, exit_of
from jupiterd.ports import Address
from jupiterd.processes.routes import bind_listener, free_port
from jupiterd.protocol.frames import StoreVerb, packed_values, unpacked_values
from jupiterd.source_filter.listeners import close_to_others

_NOBODY: Final = -1

Ask = Callable[[StoreQuestion], Awaitable[bytes]]
"""Asks the store of a rank's gang."""


class RankTunnels:
    """Of one rank; made by `GangTunnels.of` alone."""

    def __init__(
        self, replica: Replica, plan: TunnelPlan, params: Mapping[str, Any], ends: AsyncExitStack
    ) -> None:
        self._replica = replica
        self._plan = plan
        self._rank = int(params.get("rank", 0))
        self._interface = str(params.get("interface", ""))
        self._hosts = list(params.get("member_hosts") or ())
        """To which the kernel closes what listens, where it can."""
        self._ends = ends

    async def ring(self, ring: list[str]) -> list[str]:
        """Open what a rank of a ring needs; return the addresses that it connects to.

        Raises:
            BadRouteError: a port of the ring is taken.
        """
        ports, own = list(ring), free_port(LOOPBACK)
        for rank in self._plan.neighbours(self._rank):
            port = int(ring[rank].rpartition(":")[2])
            ports[rank] = f"{LOOPBACK}:{await self._enter(rank, port)}"
        await self._leave(int(ring[self._rank].rpartition(":")[2]), own)
        ports[self._rank] = f"{LOOPBACK}:{own}"
        return ports

    async def answer(self, question: StoreQuestion, ask: Ask) -> bytes:
        """Ask the gang's store, so that this rank and the others see tunnels as their addresses.

        Where this rank sets its address, the end of its tunnel is opened and added to it. Of two
        ranks the first dials the other: its daemon opens the entrance.

        Raises:
            MalformedError: the published value is no address.
            JupiterError: the store can't be reached, or a tunnel can't be opened.
        """
        rank = _rank_in(question.keys[0]) if question.keys else _NOBODY
        if question.verb == StoreVerb.SET and rank == self._rank:
            port = await self._leave(0, port_of(question.values[0]))
            await ask(StoreQuestion(StoreVerb.SET, (_exit_of(rank),), (str(port).encode(),)))
        value = await ask(question)
        if question.verb == StoreVerb.GET_ALL:
            places = zip(map(_rank_in, question.keys), unpacked_values(value), strict=True)
            return packed_values([await self._seen(of, each, ask) for of, each in places])
        return await self._seen(rank, value, ask) if question.verb == StoreVerb.GET else value

    async def _seen(self, rank: int, value: bytes, ask: Ask) -> bytes:
        """Return what a rank has published, with addresses as this one reaches them."""
        if not self._is_far(rank):
            return value
        if rank < self._rank:
            return readdressed(value, NOT_DIALED, 1)
        port = _port_in(await ask(StoreQuestion(StoreVerb.GET, (_exit_of(rank),))))
        return readdressed(value, DIALED, await self._enter(rank, port))

    def _is_far(self, rank: int) -> bool:
        """Say whether it is a rank of another machine: those of one meet on loopback anyway."""
        gang = self._plan.gang
        return 0 <= rank < len(gang) and gang[rank] != gang[self._rank]

    async def _enter(self, rank: int, port: int) -> int:
        node = self._plan.gang[rank]
        tls = connecting_tls(self._replica.identity, self._certificate(node))
        host = in_scope(self._plan.hosts[rank], self._interface)
        return await self._ends.enter_async_context(entrance(Address(host, port), tls))

    async def _leave(self, at: int, port: int) -> int:
        """Let the gang's nodes reach a port of loopback; return the one that they dial."""
        members = frozenset(self._plan.gang)
        tls = accepting_tls(self._replica.identity, [*map(self._certificate, members)])
        host = in_scope(self._plan.hosts[self._rank], self._interface)
        listener = self._ends.enter_context(bind_listener(host, at))
        close_to_others(listener, self._hosts)
        await self._ends.enter_async_context(
            exit_of(listener, tls, members, port, len(self._plan.gang))
        )
        return int(listener.getsockname()[1])

    def _certificate(self, node: NodeId) -> bytes:
        member = self._replica.state.members.get(node)
        if member is None:
            raise NotAMemberError(f"node {short(node)} is not a member of this cluster")
        return member.certificate_pem


class GangTunnels:
    """Those of this node."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica

    @asynccontextmanager
    async def of(self, params: dict[str, Any]) -> AsyncGenerator[RankTunnels | None]:
        """Open a rank's tunnels for as long as it runs, and change its addresses; None: no tunnels.

        Raises:
            MalformedError: the order doesn't say which tunnels there are.
            JupiterError: they can't be opened.
        """
        if PARAM not in params:
            yield None
            return
        plan, rank = TunnelPlan.from_plain(params.pop(PARAM)), int(params.get("rank", 0))
        if not 0 <= rank < len(plan.gang) or plan.gang[rank] != self._replica.node:
            raise MalformedError("an order names tunnels of another node")
        async with AsyncExitStack() as ends:
            tunnels = RankTunnels(self._replica, plan, params, ends)
            if ring := params.get("ring"):
                params["ring"] = await tunnels.ring(list(ring))
            params |= {"member_hosts": [LOOPBACK], "first_host": LOOPBACK}
            yield tunnels


def on_loopback(environment: Mapping[str, str]) -> dict[str, str]:
    """Return a rank's environment where all that it talks to is on loopback."""
    return {**environment, "GLOO_SOCKET_IFNAME": interface_of(LOOPBACK)}


def _exit_of(rank: int) -> str:
    """Return the key of a gang's store under which a rank's daemon says where its tunnel ends."""
    return f"tunnel-of-{rank}"


def _rank_in(key: str) -> int:
    """Return whose address a key is about, as gloo writes it; -1: nobody's."""
    _, slash, last = key.rpartition("/")
    return int(last) if slash and last.isdecimal() and len(last) < 6 else _NOBODY


def _port_in(text: bytes) -> int:
    if not text.isdigit() or not 0 < int(text[:6]) < 65536:
        raise MalformedError("a gang's store doesn't say where a tunnel ends")
    return int(text)

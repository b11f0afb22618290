"""Who really calls, where all connections come to the gRPC server from our own proxy.

Owns which connection of the proxy belongs to which address. Doesn't know any socket. The proxy
binds each of its connections, so its port is nobody else's on loopback as long as it lasts.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from jupiterd.ids import NodeId
from jupiterd.net.interfaces import LOOPBACK
from jupiterd.net.scopes import with_named_scope


@dataclass
class InboundConnection:
    """One connection from outside."""

    host: str
    has_called: bool = False


MAX_ENDED: Final = 256
"""Connections that are remembered once they have ended: a call of theirs may still be answered."""


MAX_HOSTS_OF_ONE: Final = 4
MAX_MEMBERS: Final = 256


class Callers:
    """Every connection that the proxy passes on."""

    def __init__(self) -> None:
        self._by_peer: dict[str, InboundConnection] = {}
        self._ended: dict[str, InboundConnection] = {}
        self._hosts: dict[NodeId, dict[str, None]] = {}
        """Where members' calls came from, the newest last."""

    @contextmanager
    def known(self, port: int, host: str) -> Generator[InboundConnection]:
        """Know whose the connection is that the proxy makes from a port of its own."""
        peer = f"ipv4:{LOOPBACK}:{port}"
        self._ended.pop(peer, None)
        caller = self._by_peer[peer] = InboundConnection(host)
        try:
            yield caller
        finally:
            self._ended[peer] = self._by_peer.pop(peer)
            if len(self._ended) > MAX_ENDED:
                del self._ended[next(iter(self._ended))]

    def note_call(self, peer: str) -> None:
        """Take note that something was asked; peer: as gRPC names the other end."""
        if (caller := self._by_peer.get(peer)) is not None:
            caller.has_called = True

    def note_member(self, peer: str, who: NodeId) -> None:
        """Take note that a member has called: it may call from an address that nobody knows."""
        if (caller := self._by_peer.get(peer)) is None:
            return
        hosts = self._hosts.pop(who, {})
        hosts.pop(caller.host, None)
        hosts[caller.host] = None
        self._hosts[who] = hosts
        if len(hosts) > MAX_HOSTS_OF_ONE:
            del hosts[next(iter(hosts))]
        if len(self._hosts) > MAX_MEMBERS:
            del self._hosts[next(iter(self._hosts))]

    def hosts(self, is_member: Callable[[NodeId], bool]) -> Iterator[str]:
        """Yield the last addresses from which members have called."""
        for who, hosts in self._hosts.items():
            if is_member(who):
                yield from hosts

    def host_of(self, peer: str) -> str:
        """Return the address that a call comes from; empty where gRPC names none.

        Args:
            peer: as gRPC names the other end, `ipv6:%5B::1%5D:46350` for instance.
        """
        if (caller := self._by_peer.get(peer) or self._ended.get(peer)) is not None:
            return caller.host
        family, _, rest = peer.partition(":")
        if family not in {"ipv4", "ipv6"}:
            return ""
        return with_named_scope(unquote(rest.rpartition(":")[0]).strip("[]"))

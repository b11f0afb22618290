"""Maps a call on the gRPC server to the outside address behind the proxy's connection.

Owns the map from a connection of the proxy to that address. Doesn't know any socket. All calls come
to the gRPC server from the proxy on loopback; the proxy binds each connection to a port, which no
other process can use on loopback as long as the connection lasts.
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
"""Ended connections that are remembered: the server may still handle a call of theirs."""


MAX_HOSTS_OF_ONE: Final = 4
MAX_MEMBERS: Final = 256


class Callers:
    """Every connection that the proxy relays."""

    def __init__(self) -> None:
        self._by_peer: dict[str, InboundConnection] = {}
        self._ended: dict[str, InboundConnection] = {}
        self._hosts: dict[NodeId, dict[str, None]] = {}
        """The addresses from which each member called, the newest last."""

    @contextmanager
    def known(self, port: int, host: str) -> Generator[InboundConnection]:
        """Register the outside host of the proxy's connection from this local port."""
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
        """Record that a call came on this connection; `peer` as gRPC names the other end."""
        if (caller := self._by_peer.get(peer)) is not None:
            caller.has_called = True

    def note_member(self, peer: str, who: NodeId) -> None:
        """Record the address from which a member called: it may be none of its known addresses."""
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
        """Return the address that a call comes from; empty if gRPC names none.

        Args:
            peer: the other end as gRPC names it, for instance `ipv6:%5B::1%5D:46350`.
        """
        if (caller := self._by_peer.get(peer) or self._ended.get(peer)) is not None:
            return caller.host
        family, _, rest = peer.partition(":")
        if family not in {"ipv4", "ipv6"}:
            return ""
        return with_named_scope(unquote(rest.rpartition(":")[0]).strip("[]"))

"""Discovers daemons on the local network by multicast DNS (RFC 6762).

Owns this node's announcement and the browser. Doesn't know who is a member: a sighting is only a
hint.

IPv4 and IPv6 have a `MdnsDiscovery` each, with sockets of their own: on macOS a dual-stack socket
can't join a group of IPv4. A machine without IPv6 announces nothing there, and logs no warning.

The announcement says as little as possible: the service's major version, a random tag that changes
at every start, and a hash of the scope's name if the daemon has a scope. It names no host, user,
model or role; only members may learn those.
"""

import asyncio
import contextlib
import logging
import secrets
import socket
from collections.abc import AsyncIterator
from typing import Final

from blake3 import blake3
from zeroconf import Error as ZeroconfError
from zeroconf import IPVersion, ServiceStateChange, Zeroconf, current_time_millis
from zeroconf._dns import DNSQuestion
from zeroconf._protocol.outgoing import DNSOutgoing
from zeroconf.asyncio import AsyncServiceBrowser, AsyncServiceInfo, AsyncZeroconf

from jupiterd.net.announcement_times import AnnouncementTimes
from jupiterd.net.interface_watch import LOOK_INTERVAL_S, InterfaceAddresses, InterfaceWatch
from jupiterd.net.interfaces import (
    LOOPBACK,
    interface_of,
    local_addresses,
    recent_addresses,
    seen_from_here,
)
from jupiterd.net.scopes import without_scope
from jupiterd.ports import Address

SERVICE_TYPE: Final = "_jupiter._tcp.local."
PROTOCOL_MAJOR: Final = "1"
RESOLVE_TIMEOUT_S: Final = 1.0
SCOPE_TAG_BYTES: Final = 8
MAX_WAITING: Final = 256
"""Most names that wait to be resolved; further ones are dropped, since a network that sends more is
noise."""

QUERY_AGAIN_S: Final = 10.0
"""Time between two queries, in s, whether an unreachable peer is still there."""

_QUERY: Final = 0
_SRV: Final = 33
_INTERNET: Final = 1
"""DNS numbers (query, SRV, IN) that zeroconf doesn't export publicly."""

_log = logging.getLogger(__name__)


class MdnsDiscovery:
    """Announces this node and finds others: on every interface, on those named, or on loopback.

    It sees only daemons of the same scope; without a scope, only those without one.

    `sightings` also follows interfaces that appear and vanish, within a second or two; it does so
    only while the caller iterates.
    """

    def __init__(
        self,
        loopback_only: bool = False,  # noqa: FBT001, FBT002
        interfaces: tuple[str, ...] = (),
        scope: str = "",
        version: IPVersion = IPVersion.V4Only,
        announced: AnnouncementTimes | None = None,
    ) -> None:
        self._version = version
        self._announced = announced
        self._places: dict[str, list[Address]] = {}
        """Name of an announcement -> the addresses that it resolved to."""
        self._loopback_only = loopback_only
        self._interfaces = interfaces
        self._instance = f"{secrets.token_hex(4)}.{SERVICE_TYPE}"
        self._tag = secrets.token_hex(8)
        self._scope_tag = blake3(scope.encode()).hexdigest(SCOPE_TAG_BYTES) if scope else None
        self._port = 0
        self._seen: asyncio.Queue[str | None] = asyncio.Queue(MAX_WAITING)
        self._zeroconf: AsyncZeroconf | None = None
        self._browser: AsyncServiceBrowser | None = None
        self._announcing: asyncio.Future[None] | None = None
        self._watch = InterfaceWatch(self._reading)
        self._is_closed = False

    async def start(self, port: int) -> None:
        """Start to browse and announce this port; without multicast, log that and see nothing.

        The announcement takes most of a second and runs in the background.
        """
        self._port = port
        try:
            if choice := self._choice():
                self._zeroconf = AsyncZeroconf(interfaces=choice, ip_version=self._version)
        except (OSError, RuntimeError, ZeroconfError) as error:
            _log_unavailable(error)
        if self._zeroconf is not None:
            self._restart_browser(self._zeroconf)
            self._announcing = asyncio.ensure_future(self._announce(self._zeroconf))

    async def sightings(self) -> AsyncIterator[Address]:
        """Yield the addresses of other daemons as they are announced, until `close`."""
        loop = asyncio.get_running_loop()
        look_at_s, ask_at_s = loop.time() + LOOK_INTERVAL_S, loop.time() + QUERY_AGAIN_S
        while not self._is_closed:
            name: str | None = ""
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(look_at_s):
                    name = await self._seen.get()
            if name is None:
                return
            if loop.time() >= look_at_s:
                look_at_s = loop.time() + LOOK_INTERVAL_S
                with contextlib.suppress(OSError):  # the process may be out of file descriptors
                    await self._follow_interfaces()
            if loop.time() >= ask_at_s:
                ask_at_s = loop.time() + QUERY_AGAIN_S
                self._query_again()
            for address in await self._resolve(name) if name else ():
                yield address

    async def close(self) -> None:
        """Withdraw the announcement and stop; idempotent."""
        self._is_closed = True
        if self._seen.full():
            self._seen.get_nowait()
        self._seen.put_nowait(None)
        zeroconf, self._zeroconf = self._zeroconf, None
        await self._end_announcing()
        if zeroconf is None:
            return
        if self._browser is not None:
            await self._browser.async_cancel()
        await zeroconf.async_unregister_all_services()
        await zeroconf.async_close()

    async def _announce(self, zeroconf: AsyncZeroconf) -> None:
        """Announce this node. Its name is random, so it isn't probed for conflicts first."""
        try:
            await zeroconf.async_register_service(self._announcement(), cooperating_responders=True)
        except (OSError, ZeroconfError) as error:
            _log_unavailable(error)

    async def _end_announcing(self) -> None:
        announcing, self._announcing = self._announcing, None
        if announcing is not None:
            announcing.cancel()
            await asyncio.wait({announcing})

    async def _follow_interfaces(self) -> None:
        """After a change of addresses, announce and browse on the current ones."""
        if self._loopback_only or not self._watch.has_changed():
            return
        _log.info("interfaces_changed", extra={"addresses": " ".join(self._local_addresses())})
        if self._zeroconf is None:
            await self.start(self._port)
            return
        try:
            # Switch to loopback first, so that zeroconf makes every socket anew: the system dropped
            # the group memberships of an interface that vanished, even if it came back unchanged.
            await self._zeroconf.async_update_interfaces(self._loopback())
            await self._zeroconf.async_update_interfaces(self._choice() or self._loopback())
            await self._zeroconf.async_update_service(self._announcement())
        except (OSError, ZeroconfError) as error:
            _log_unavailable(error)
        if self._browser is not None:
            await self._browser.async_cancel()
        self._restart_browser(self._zeroconf)

    def _restart_browser(self, zeroconf: AsyncZeroconf) -> None:
        """Query for all daemons; a daemon that was seen before is sighted again."""
        self._browser = AsyncServiceBrowser(
            zeroconf.zeroconf, SERVICE_TYPE, handlers=[self._on_change]
        )

    def _reading(self) -> InterfaceAddresses:
        return frozenset() if self._loopback_only else frozenset(recent_addresses(self._interfaces))

    def _on_change(
        self, zeroconf: Zeroconf, service_type: str, name: str, state_change: ServiceStateChange
    ) -> None:
        # zeroconf passes these as keyword arguments.
        del zeroconf, service_type
        if state_change is ServiceStateChange.Removed or name == self._instance:
            self._places.pop(name, None)
            return
        if not self._seen.full():
            self._seen.put_nowait(name)

    async def _resolve(self, name: str) -> list[Address]:
        if self._zeroconf is None:
            return []
        try:
            info = AsyncServiceInfo(SERVICE_TYPE, name)
            known = info.load_from_cache(self._zeroconf.zeroconf) or await info.async_request(
                self._zeroconf.zeroconf, RESOLVE_TIMEOUT_S * 1000
            )
        except (ZeroconfError, ValueError, OSError) as error:
            # Any machine on the network can announce anything.
            _log.debug("announcement_refused", extra={"reason": str(error)})
            return []
        if not known or not info.port or not self._is_of_our_scope(info):
            return []
        # A machine announces its link-local addresses on every link, and zeroconf keeps the scope
        # of one link only, which may be the wrong one.
        hosts = [without_scope(host) for host in info.parsed_scoped_addresses()]
        found = [seen for host in hosts for seen in seen_from_here(Address(host, info.port))]
        self._note_heard(self._zeroconf.zeroconf, name, found)
        return found

    def _note_heard(self, zeroconf: Zeroconf, name: str, places: list[Address]) -> None:
        """Record when the owner of these addresses last announced them."""
        record = zeroconf.cache.get_by_details(name, _SRV, _INTERNET)
        if self._announced is None or record is None or len(self._places) >= MAX_WAITING:
            return
        self._places[name] = places
        for address in places:
            self._announced.note(address, (current_time_millis() - record.created) / 1000)

    def _query_again(self) -> None:
        """Record whether unreachable peers were heard meanwhile, and query them once more.

        zeroconf doesn't query again for a record in its cache, and responders don't answer a query
        that lists the record as known.
        """
        if self._zeroconf is None or self._announced is None or not self._announced.doubted:
            return
        question = DNSOutgoing(_QUERY)
        for name, places in tuple(self._places.items()):
            if not self._announced.doubted.isdisjoint(places):
                self._note_heard(self._zeroconf.zeroconf, name, places)
                question.add_question(DNSQuestion(name, _SRV, _INTERNET))
        if question.questions:
            self._zeroconf.zeroconf.async_send(question)

    def _is_of_our_scope(self, info: AsyncServiceInfo) -> bool:
        tag = self._scope_tag
        return info.properties.get(b"s") == (tag.encode() if tag is not None else None)

    def _announcement(self) -> AsyncServiceInfo:
        label = self._instance.partition(".")[0]
        scope = {} if self._scope_tag is None else {"s": self._scope_tag}
        return AsyncServiceInfo(
            SERVICE_TYPE,
            self._instance,
            port=self._port,
            addresses=[_packed(address) for address in self._local_addresses()],
            server=f"{label}.local.",
            properties={"v": PROTOCOL_MAJOR, "t": self._tag, **scope},
        )

    def _local_addresses(self) -> list[str]:
        addresses = local_addresses(loopback_only=self._loopback_only, interfaces=self._interfaces)
        return [address for address in addresses if (":" in address) is self._is_ipv6]

    def _choice(self) -> list[str | int | tuple[tuple[str, int, int], int]]:
        if self._is_ipv6:
            return [] if self._loopback_only else self._links()
        return list(dict.fromkeys([*self._local_addresses(), *self._loopback()]))

    def _links(self) -> list[str | int | tuple[tuple[str, int, int], int]]:
        """Return the indices of the interfaces on which to join the IPv6 group."""
        names = {interface_of(address) for address in self._local_addresses()}
        with contextlib.suppress(OSError):
            return sorted({socket.if_nametoindex(name) for name in names if name})
        return []

    def _loopback(self) -> list[str | int | tuple[tuple[str, int, int], int]]:
        if self._is_ipv6:
            return [socket.if_nametoindex(interface_of(LOOPBACK))]
        return [LOOPBACK]

    @property
    def _is_ipv6(self) -> bool:
        return self._version is IPVersion.V6Only


def by_mdns(
    *,
    loopback_only: bool,
    interfaces: tuple[str, ...],
    scope: str,
    announced: AnnouncementTimes | None = None,
) -> list[MdnsDiscovery]:
    """Return discovery over IPv4, and over IPv6 too unless this node keeps to loopback.

    Args:
        loopback_only: whether to announce on loopback alone.
        interfaces: names of the interfaces to use; empty for all.
        scope: only daemons of the same scope see each other.
        announced: records when each address was last heard.
    """
    versions = [IPVersion.V4Only] if loopback_only else [IPVersion.V4Only, IPVersion.V6Only]
    return [
        MdnsDiscovery(loopback_only, interfaces, scope, version, announced) for version in versions
    ]


def _log_unavailable(error: Exception) -> None:
    _log.warning("mdns unavailable error=%s hint=use --peer HOST:PORT", error)


def _packed(address: str) -> bytes:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.inet_pton(family, without_scope(address))

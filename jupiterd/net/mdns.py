"""Finding daemons on the local network by multicast DNS.

Owns our announcement and the browsing. Doesn't know who is a member: a sighting is a hint, nothing
more.

IPv4 and IPv6 are two of these, each with sockets of its own: macOS lets a socket that takes both
join no group of IPv4. A machine without IPv6 has nothing to announce there, and is quiet about it.

The announcement says as little as it can: the service's major version, a random tag that changes at
every start, and where this daemon keeps to a scope, a hash of its name. No host name, user, model
or role; whoever wants those has to be let in first.
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
from jupiterd.net.interface_watch import LOOK_INTERVAL_S, InterfaceWatch, Reading
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
"""Names that wait to be looked at; a network that shouts more than this is noise."""

QUERY_AGAIN_S: Final = 10.0
"""Between two questions whether somebody who can't be reached is still there."""

_QUERY: Final = 0
_SRV: Final = 33
_INTERNET: Final = 1
"""Numbers of DNS, which the library keeps to itself."""

_log = logging.getLogger(__name__)


class MdnsDiscovery:
    """Announces us and sees others: on every interface, the ones named, or loopback alone.

    Only daemons of the same scope are seen; without one, only those without one.

    Whoever goes through the sightings also keeps them true: interfaces that come and go are noticed
    there, a second or two later.
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
        """Name of an announcement -> where it leads."""
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
        """Begin to look, and to announce our port; without multicast, log that and see nothing.

        Announcing goes on for most of a second; nobody has to wait for it.
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
        """Yield the addresses of other daemons as they are announced; ends when closed."""
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
                with contextlib.suppress(OSError):  # no file may be left to ask the system with
                    await self._follow_interfaces()
            if loop.time() >= ask_at_s:
                ask_at_s = loop.time() + QUERY_AGAIN_S
                self._query_again()
            for address in await self._resolve(name) if name else ():
                yield address

    async def close(self) -> None:
        """Say goodbye and stop; idempotent."""
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
        """Announce us. Nobody else has our random name, so it isn't asked for first."""
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
        """Where addresses have changed, be heard and hear on those there are now."""
        if self._loopback_only or not self._watch.has_changed():
            return
        _log.info("interfaces_changed", extra={"addresses": " ".join(self._local_addresses())})
        if self._zeroconf is None:
            await self.start(self._port)
            return
        try:
            # By way of loopback alone, so that every socket is made anew: a group that was joined
            # before the interface went away is joined no more, even if all looks as before.
            await self._zeroconf.async_update_interfaces(self._loopback())
            await self._zeroconf.async_update_interfaces(self._choice() or self._loopback())
            await self._zeroconf.async_update_service(self._announcement())
        except (OSError, ZeroconfError) as error:
            _log_unavailable(error)
        if self._browser is not None:
            await self._browser.async_cancel()
        self._restart_browser(self._zeroconf)

    def _restart_browser(self, zeroconf: AsyncZeroconf) -> None:
        """Ask who is there; whoever was seen before is seen once more."""
        self._browser = AsyncServiceBrowser(
            zeroconf.zeroconf, SERVICE_TYPE, handlers=[self._on_change]
        )

    def _reading(self) -> Reading:
        return frozenset() if self._loopback_only else frozenset(recent_addresses(self._interfaces))

    def _on_change(
        self, zeroconf: Zeroconf, service_type: str, name: str, state_change: ServiceStateChange
    ) -> None:
        # zeroconf passes these by name.
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
            # Anybody on the network can announce anything.
            _log.debug("announcement_refused", extra={"reason": str(error)})
            return []
        if not known or not info.port or not self._is_of_our_scope(info):
            return []
        # A link-local address is announced on every link of its machine, and zeroconf keeps the
        # scope of one of them, which may be the wrong one.
        hosts = [without_scope(host) for host in info.parsed_scoped_addresses()]
        found = [seen for host in hosts for seen in seen_from_here(Address(host, info.port))]
        self._note_heard(self._zeroconf.zeroconf, name, found)
        return found

    def _note_heard(self, zeroconf: Zeroconf, name: str, places: list[Address]) -> None:
        """Take note of when somebody last said to be at these addresses."""
        record = zeroconf.cache.get_by_details(name, _SRV, _INTERNET)
        if self._announced is None or record is None or len(self._places) >= MAX_WAITING:
            return
        self._places[name] = places
        for address in places:
            self._announced.note(address, (current_time_millis() - record.created) / 1000)

    def _query_again(self) -> None:
        """Learn whether those who can't be reached were heard meanwhile, and ask once more.

        The library asks no more for what it holds, and is told nothing that it says to know.
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
        """Return the interfaces that IPv6 groups are joined on, by their numbers."""
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
    """Return discovery by multicast over IPv4, and over IPv6 where there may be other machines.

    announced: told when somebody was heard
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

"""Addresses that somebody named, or that were seen before.

Owns repeating them, and looking up names each time: they may mean other addresses by then. Doesn't
know whether anybody answers there.
"""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

from jupiterd.net.interfaces import seen_from_here
from jupiterd.net.scopes import with_named_scope
from jupiterd.ports import Address

_log = logging.getLogger(__name__)

REPEAT_INTERVAL_S = 5.0
"""A peer that is switched on later than we are is found within this time."""

UNKNOWN = "no machine of this name is known here; it is looked up again every few seconds"


class StaticDiscovery:
    """Yields the same addresses again and again."""

    def __init__(self, addresses: Sequence[Address], interval_s: float = REPEAT_INTERVAL_S) -> None:
        self._addresses = tuple(addresses)
        self._interval_s = interval_s
        self._closed = asyncio.Event()
        self.meanings: dict[Address, list[Address]] = {}
        """What each was last found to mean."""

    async def start(self, port: int) -> None:
        """Nothing to announce: whoever knows the addresses comes by itself."""
        del port

    async def sightings(self) -> AsyncIterator[Address]:
        """Yield each address at once, then all of them every few seconds until closed."""
        while not self._closed.is_set():
            for address in self._addresses:
                for seen in await self._looked_up(address):
                    yield seen
            with suppress(TimeoutError):
                async with asyncio.timeout(self._interval_s):
                    await self._closed.wait()

    def meant(self) -> frozenset[Address]:
        """Return every address that they were last found to mean."""
        return frozenset(address for found in self.meanings.values() for address in found)

    async def _looked_up(self, address: Address) -> list[Address]:
        """Return what an address means; whoever mistyped a name is told, once."""
        found = await _resolved(address)
        if not found and self.meanings.get(address, [address]):
            _log.warning("name_unknown", extra={"peer": str(address), "reason": UNKNOWN})
        self.meanings[address] = found
        return found

    async def close(self) -> None:
        """End the sightings."""
        self._closed.set()


async def _resolved(address: Address) -> list[Address]:
    """Return every address that this one means just now; none where its name isn't known."""
    loop = asyncio.get_running_loop()
    found: list[Address] = []
    for seen in seen_from_here(address):
        with suppress(OSError, UnicodeError):  # the latter where it can't be a name at all
            rows = await loop.getaddrinfo(seen.host, seen.port, type=socket.SOCK_STREAM)
            found += [Address(_host(seen, str(row[4][0])), seen.port) for row in rows]
    return list(dict.fromkeys(found))


def _host(requested: Address, answer: str) -> str:
    """Return the answer; where an address was asked for, that stays as it is, with its scope."""
    return requested.host if "%" in requested.host else with_named_scope(answer)

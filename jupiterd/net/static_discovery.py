"""Discovery from a fixed list of addresses: given by the user or seen before.

Owns repeating them and resolving their names each time, as a name may mean other addresses later.
Doesn't know whether a daemon answers there.
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
"""Time between two repetitions, in s: a peer that starts later is found within it."""

UNKNOWN = "no machine of this name is known here; it is looked up again every few seconds"


class StaticDiscovery:
    """Repeats the same addresses until closed."""

    def __init__(self, addresses: Sequence[Address], interval_s: float = REPEAT_INTERVAL_S) -> None:
        self._addresses = tuple(addresses)
        self._interval_s = interval_s
        self._closed = asyncio.Event()
        self.meanings: dict[Address, list[Address]] = {}
        """Each address -> the addresses that it last resolved to."""

    async def start(self, port: int) -> None:
        """Do nothing: this discovery has nothing to announce."""
        del port

    async def sightings(self) -> AsyncIterator[Address]:
        """Yield each address at once, then all of them every `interval_s` seconds until closed."""
        while not self._closed.is_set():
            for address in self._addresses:
                for seen in await self._looked_up(address):
                    yield seen
            with suppress(TimeoutError):
                async with asyncio.timeout(self._interval_s):
                    await self._closed.wait()

    def meant(self) -> frozenset[Address]:
        """Return every address that they last resolved to."""
        return frozenset(address for found in self.meanings.values() for address in found)

    async def _looked_up(self, address: Address) -> list[Address]:
        """Resolve an address; log a warning once when its name becomes unknown."""
        found = await _resolved(address)
        if not found and self.meanings.get(address, [address]):
            _log.warning("name_unknown", extra={"peer": str(address), "reason": UNKNOWN})
        self.meanings[address] = found
        return found

    async def close(self) -> None:
        """End the sightings."""
        self._closed.set()


async def _resolved(address: Address) -> list[Address]:
    """Return every address that this one resolves to; empty if its name isn't known."""
    loop = asyncio.get_running_loop()
    found: list[Address] = []
    for seen in seen_from_here(address):
        with suppress(OSError, UnicodeError):  # UnicodeError: it can't be a host name
            rows = await loop.getaddrinfo(seen.host, seen.port, type=socket.SOCK_STREAM)
            found += [Address(_host(seen, str(row[4][0])), seen.port) for row in rows]
    return list(dict.fromkeys(found))


def _host(requested: Address, answer: str) -> str:
    """Return the resolved address; if the request has a scope, the request itself."""
    return requested.host if "%" in requested.host else with_named_scope(answer)

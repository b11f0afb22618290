"""Addresses that somebody named, or that were seen before.

Owns repeating them. Doesn't know whether anybody answers there.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

from jupiterd.net.interfaces import seen_from_here
from jupiterd.ports import Address

REPEAT_INTERVAL_S = 5.0
"""A peer that is switched on later than we are is found within this time."""


class StaticDiscovery:
    """Yields the same addresses again and again."""

    def __init__(self, addresses: Sequence[Address], interval_s: float = REPEAT_INTERVAL_S) -> None:
        self._addresses = tuple(addresses)
        self._interval_s = interval_s
        self._closed = asyncio.Event()

    async def start(self, port: int) -> None:
        """Nothing to announce: whoever knows the addresses comes by itself."""
        del port

    async def sightings(self) -> AsyncIterator[Address]:
        """Yield each address at once, then all of them every few seconds until closed."""
        while not self._closed.is_set():
            for address in self._addresses:
                for seen in seen_from_here(address):
                    yield seen
            with suppress(TimeoutError):
                async with asyncio.timeout(self._interval_s):
                    await self._closed.wait()

    async def close(self) -> None:
        """End the sightings."""
        self._closed.set()

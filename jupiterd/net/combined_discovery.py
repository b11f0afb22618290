"""Several ways of discovery, used as one.

Owns how they run side by side. Doesn't know any one of them.
"""

import asyncio
from collections.abc import AsyncIterator

from jupiterd.ports import Address, Discovery


class CombinedDiscovery:
    """Starts and closes several discoveries together, and yields the sightings of all."""

    def __init__(self, parts: tuple[Discovery, ...]) -> None:
        self._parts = parts

    async def start(self, port: int) -> None:
        """Start every part with the same port."""
        await asyncio.gather(*(part.start(port) for part in self._parts))

    async def sightings(self) -> AsyncIterator[Address]:
        """Yield each sighting of any part as it arrives; end when all parts have ended."""
        waiting = {_next_of(sightings): sightings for sightings in self._iterators()}
        try:
            while waiting:
                done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for finished in done:
                    sightings = waiting.pop(finished)
                    try:
                        address = finished.result()
                    except StopAsyncIteration:
                        continue
                    waiting[_next_of(sightings)] = sightings
                    yield address
        finally:
            for future in waiting:
                future.cancel()

    async def close(self) -> None:
        """Close every part."""
        await asyncio.gather(*(part.close() for part in self._parts))

    def _iterators(self) -> list[AsyncIterator[Address]]:
        return [part.sightings() for part in self._parts]


def merge(*parts: Discovery) -> Discovery:
    """Return one discovery that combines these."""
    return parts[0] if len(parts) == 1 else CombinedDiscovery(parts)


def _next_of(sightings: AsyncIterator[Address]) -> asyncio.Future[Address]:
    return asyncio.ensure_future(anext(sightings))

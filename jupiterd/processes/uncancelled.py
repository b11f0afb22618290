"""Work that is done to its end though whoever waits for it is cancelled meanwhile.

Owns that one way of waiting. Doesn't know what is done: what ends a process that was killed, say,
and takes moments.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def finished(work: Coroutine[Any, Any, T]) -> T:
    """Return what comes of the work; a cancellation counts once it is done, a second at once."""
    doing = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(doing)
    finally:
        await doing

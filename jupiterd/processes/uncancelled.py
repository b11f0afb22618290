"""Finishes work even if its caller is cancelled meanwhile.

Owns that one way of waiting. Doesn't know the work: for instance clearing up after a killed
process, which takes moments.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def finished(work: Coroutine[Any, Any, T]) -> T:
    """Return the work's result; a cancellation waits for the work, a second one doesn't."""
    doing = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(doing)
    finally:
        await doing
